//! Code that the guard refuses, code that it accepts, and its messages.

use quote::ToTokens;
use syn::ItemFn;

use super::*;

/// The first lines of the messages for a body, and the body as it is left.
fn checked(body: &str) -> (Vec<String>, String) {
    let source = format!("async fn order(ctx: OrchestrationContext, stock: HashMap<u8, u8>) {{ {body} }}");
    let mut function: ItemFn = syn::parse_str(&source).unwrap();
    let errors = check(&function.sig, &mut function.block);
    let texts = errors.iter().map(|error| error.to_string()).collect();
    (texts, function.block.to_token_stream().to_string())
}

#[track_caller]
fn refused(body: &str, what: &str, instead: &str) {
    let (errors, _) = checked(body);
    let expected = format!(
        "{what} is not deterministic: a replay would not do the same\nuse {instead} instead\n{HOW_TO_ALLOW}"
    );
    assert_eq!(errors, [expected], "{body}");
}

#[track_caller]
fn accepted(body: &str) {
    let (errors, _) = checked(body);
    assert_eq!(errors, [] as [String; 0], "{body}");
}

const TASK: &str =
    "`ctx.activity` for work, `ctx.child` for orchestration code, and `ctx.join` to wait for several,";
const TIME: &str = "`ctx.schedule_timer` to wait and `ctx.utc_now` for the time";
const ORDERED: &str = "a `BTreeMap`, a `BTreeSet` or a sorted `Vec`";

#[test]
fn tasks_and_threads_are_refused() {
    refused("tokio::spawn(async {});", "`tokio::spawn`", TASK);
    refused("tokio::task::spawn_blocking(|| 1).await;", "`tokio::task::spawn_blocking`", TASK);
    refused("let t = std::thread::spawn(work);", "`std::thread::spawn`", TASK);
    refused("thread::spawn(work);", "`thread::spawn`", TASK);
}

#[test]
fn clocks_and_timers_are_refused() {
    refused("tokio::time::sleep(second).await;", "`tokio::time::sleep`", TIME);
    refused("tokio::time::timeout(d, call).await;", "`tokio::time::timeout`", TIME);
    refused("std::thread::sleep(second);", "`std::thread::sleep`", TIME);
    refused("let now = std::time::SystemTime::now();", "`std::time::SystemTime::now`", "`ctx.utc_now`");
    refused("let now = Instant::now();", "`Instant::now`", "`ctx.utc_now`");
    refused("if Utc::now() > deadline { }", "`Utc::now`", "`ctx.utc_now`");
}

#[test]
fn random_numbers_are_refused() {
    let random = "`ctx.new_guid`, or an activity that returns the number,";
    refused("let n: u8 = rand::random();", "`rand::random`", random);
    refused("let n = thread_rng().gen();", "`thread_rng`", random);
    refused("let id = uuid::Uuid::new_v4();", "`uuid::Uuid::new_v4`", "`ctx.new_guid`");
}

#[test]
fn input_and_output_are_refused() {
    refused("std::fs::write(path, text)?;", "`std::fs::write`", "an activity");
    refused("let home = std::env::var(\"HOME\");", "`std::env::var`", "an activity");
    refused("TcpStream::connect(address)?;", "`TcpStream::connect`", "an activity");
    refused("std::process::Command::new(\"ls\");", "`std::process::Command::new`", "an activity");
    refused("reqwest::get(url).await?;", "`reqwest::get`", "an activity");
}

#[test]
fn a_select_needs_its_order() {
    let biased = "`ctx.select2`, or begin the `select!` with `biased;`,";
    refused("tokio::select! { a = one => {}, b = two => {} }", "the choice of `select!`", biased);
    refused("select! { a = one => {} }", "the choice of `select!`", biased);
    refused(
        "futures::select! { a = one => {} }",
        "the choice of `select!`",
        "`ctx.select2`, or `futures::select_biased!`,",
    );
    accepted("tokio::select! { biased; a = one => {}, b = two => {} }");
    accepted("futures::select_biased! { a = one => {} }");
}

#[test]
fn the_order_of_hash_maps_is_refused() {
    let order = "the order of a `HashMap` or `HashSet`";
    refused("let m = HashMap::new(); for (k, v) in &m { }", order, ORDERED);
    refused("let m: HashMap<u8, u8> = read(); m.values().sum()", order, ORDERED);
    refused("let m = list.into_boxed().collect::<HashSet<u8>>(); for x in m { }", order, ORDERED);
    refused("for x in stock.keys() { }", order, ORDERED);
    refused("for (key, value) in ctx.get_kv_all_values() { }", order, ORDERED);
    accepted("let mut m = HashMap::new(); m.insert(1, 2); m.get(&1);");
    accepted("let m = HashMap::new(); let m = BTreeMap::from_iter(m); for x in &m { }");
    accepted("let m: BTreeMap<u8, HashMap<u8, u8>> = read(); for x in &m { }");
}

#[test]
fn macros_and_imports_are_looked_into() {
    refused("println!(\"{:?}\", SystemTime::now());", "`SystemTime::now`", "`ctx.utc_now`");
    refused("vec![one(uuid::Uuid::new_v4())];", "`uuid::Uuid::new_v4`", "`ctx.new_guid`");
    refused("use tokio::time::{sleep}; sleep(second).await;", "`tokio::time::sleep`", TIME);
    refused("use rand::*;", "`rand::*`", "`ctx.new_guid`, or an activity that returns the number,");
    refused("let later = async { tokio::spawn(work()) };", "`tokio::spawn`", TASK);
}

#[test]
fn one_place_can_be_allowed_with_a_reason() {
    let (errors, left) = checked(
        "#[duroxide(allow_nondeterminism = \"only logged\")] let at = Instant::now(); let b = Instant::now();",
    );
    assert_eq!(errors.len(), 1, "the second one is refused: {errors:?}");
    assert!(!left.contains("duroxide"), "the attribute is removed: {left}");
    accepted("#[duroxide(allow_nondeterminism = \"only logged\")] println!(\"{:?}\", SystemTime::now());");
    accepted("#[duroxide(allow_nondeterminism = \"sums\")] for v in stock.values() { sum += v; }");
    accepted("#[duroxide(allow_nondeterminism = \"only logged\")] log(SystemTime::now());");
    accepted("let x = #[duroxide(allow_nondeterminism = \"only logged\")] log(SystemTime::now());");
}

#[test]
fn a_reason_must_be_given() {
    for attr in ["#[duroxide(allow_nondeterminism = \" \")]", "#[duroxide()]"] {
        let (errors, _) = checked(&format!("{attr} let x = Instant::now();"));
        assert_eq!(errors, ["say why: `allow_nondeterminism = \"reason\"`"], "{attr}");
    }
    let (errors, _) = checked("#[duroxide(allow = \"x\")] let x = 1;");
    assert_eq!(errors, ["expected `allow_nondeterminism = \"reason\"`"]);
}

#[test]
fn deterministic_code_is_accepted() {
    accepted("ctx.schedule_timer(std::time::Duration::from_secs(1)).await;");
    accepted("ctx.schedule_timer(tokio::time::Duration::from_secs(1)).await;");
    accepted("let now = ctx.utc_now().await?; let id = ctx.new_guid().await?;");
    accepted("let command = Command::new(\"start\"); let address = std::net::Ipv4Addr::new(1, 2, 3, 4);");
    accepted("crate::process::exit(order); self::fs::read(order); let rand = 5; rand + 1;");
    accepted("tokio::join!(one, two); tokio::try_join!(one, two);");
    accepted("let arch = std::env::consts::ARCH;");
}

/// The work of a step is recorded and not replayed.
#[test]
fn everything_is_allowed_in_the_work_of_a_step() {
    accepted("ctx.step(\"now\", || async { Ok::<_, String>(SystemTime::now()) }).retry(policy).await?;");
    let (errors, _) = checked("ctx.step(Uuid::new_v4(), || async { Ok(1) }).await?; tokio::spawn(work);");
    assert_eq!(errors.len(), 2, "only the work: {errors:?}");
}
