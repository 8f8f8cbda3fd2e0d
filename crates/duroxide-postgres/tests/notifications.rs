//! Whom a transaction notifies.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod fixture;

use std::{collections::BTreeMap, time::Duration};

use duroxide_core::WorkItem;
use duroxide_postgres::{PostgresOptions, PostgresProvider};
use duroxide_provider::{
    NodeAnnouncement, OrchestrationClaim, OrchestrationFetch, Provider, TagFilter, WorkFetch,
    testing::{Turn, items},
};
use fixture::{fresh_options, sql::Admin};
use futures_util::future::join_all;
use postgres_server::Server;

const STARTS: usize = 200;

/// The part of the server's log behind a place.
struct Log<'a> {
    server: &'a Server,
    behind: usize,
}

impl<'a> Log<'a> {
    fn from_now(server: &'a Server) -> Self {
        Self { server, behind: std::fs::read(server.log()).unwrap().len() }
    }

    fn count(&self, is_counted: impl Fn(&&str) -> bool) -> usize {
        let log = std::fs::read(self.server.log()).unwrap();
        let log = log.get(self.behind..).unwrap_or_default();
        String::from_utf8_lossy(log).lines().filter(is_counted).count()
    }

    /// How many statements have written instances.
    fn writes(&self) -> usize {
        self.count(|line| line.contains("LOG:  execute ") && line.contains("WITH part_0"))
    }

    /// How many statements have notified of work. A process that begins to listen announces itself.
    fn notifications(&self, schema: &str) -> usize {
        self.count(|line| is_notification(line, schema))
    }
}

/// Whether a line has the parameters of a notification. (Their title is spelled differently from version to version.)
fn is_notification(line: &str, schema: &str) -> bool {
    line.contains(&format!(": $1 = '{schema}', $2 = '")) && !line.contains("'hello ")
}

async fn start(store: &PostgresProvider, prefix: &str, count: usize) {
    let starts =
        (0..count).map(|n| store.enqueue_for_orchestrator(items::start(&format!("{prefix}-{n}")), None));
    join_all(starts).await.into_iter().for_each(Result::unwrap);
}

/// 24.9: one notification covers all ready items that a transaction leaves, and a node that is alone sends none.
#[tokio::test]
async fn a_transaction_notifies_once_and_only_if_another_node_may_wait() {
    let Some(server) = Server::own() else { return };
    server.configure("log_statement = 'all'");
    server.restart_immediately();
    let options = fresh_options(&server);
    let schema = options.schema.to_string();

    let alone = Log::from_now(&server);
    let one = PostgresProvider::open(options.clone()).await.unwrap();
    start(&one, "alone", STARTS).await;
    assert!(alone.writes() > 0);
    assert_eq!(alone.notifications(&schema), 0);

    let _other = PostgresProvider::open(options).await.unwrap();
    // The first learns of the other while it works.
    for round in 0.. {
        start(&one, &format!("meanwhile-{round}"), 1).await;
        if alone.notifications(&schema) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let together = Log::from_now(&server);
    start(&one, "together", STARTS).await;
    let (notifications, writes) = (together.notifications(&schema), together.writes());
    assert!(writes < STARTS, "{writes} transactions for {STARTS} starts");
    assert!((1..=writes).contains(&notifications), "{notifications} of {writes} transactions");
}

/// 24.11: a claim locks one row more than it takes. To tell all others of it would make them all look for one row, with every claim.
#[tokio::test]
async fn what_a_claim_leaves_is_left_to_one_process() {
    let Some(server) = Server::own() else { return };
    server.configure("log_statement = 'all'");
    server.restart_immediately();
    let options = fresh_options(&server);
    let schema = options.schema.to_string();
    let one = PostgresProvider::open(options.clone()).await.unwrap();
    let other = PostgresProvider::open(options).await.unwrap();
    let schema = schema.as_str();
    let told = |log: &Log<'_>, kind: &str| {
        log.count(|line| {
            is_notification(line, schema) && line.rsplit("$2 = '").next().unwrap().contains(kind)
        })
    };
    let starting = Log::from_now(&server);
    for round in 0.. {
        start(&one, &format!("left-{round}"), 3).await;
        if told(&starting, " i") > 0 {
            break;
        }
    }
    let claiming = Log::from_now(&server);
    assert_eq!(fetch(&other, 1, Duration::ZERO).await.len(), 1);
    assert_eq!(fetch(&other, 1, Duration::ZERO).await.len(), 1);
    assert!(told(&claiming, " n") > 0, "the rest is left to one process");
    assert_eq!(told(&claiming, " i"), 0, "and not to all");
}

const LEASE: Duration = Duration::from_secs(60);
/// Less than the poll interval of a store that listens.
const SOON: Duration = Duration::from_secs(20);

async fn fetch(store: &PostgresProvider, max: usize, wait: Duration) -> Vec<OrchestrationClaim> {
    store.fetch_orchestration_items(&OrchestrationFetch::new(LEASE, wait).with_max(max, max)).await.unwrap()
}

/// Starts instances, gives each an activity, completes those, and raises an event for each, which wakes it.
async fn work(one: &PostgresProvider, other: &PostgresProvider, instances: usize) {
    start(one, "work", instances).await;
    let turns = fetch(one, instances, Duration::ZERO).await.into_iter().map(|claim| async move {
        let round = Turn::first(&claim.instance).activity().round();
        one.commit_round(&claim.lock_token, round).await.unwrap();
    });
    join_all(turns).await;
    let tags = TagFilter::default();
    let works = WorkFetch::new(LEASE, Duration::ZERO, &tags).with_max(instances, instances);
    let works = one.fetch_work_items(&works).await.unwrap();
    let acks = works.iter().map(|work| {
        let WorkItem::ActivityExecute { instance, id, .. } = &work.item else { unreachable!("an activity") };
        one.ack_work_item(&work.lock_token, Some(items::completed(instance, *id)))
    });
    join_all(acks).await.into_iter().for_each(Result::unwrap);
    for claim in fetch(one, instances, Duration::ZERO).await {
        one.commit_round(&claim.lock_token, Turn::later(&claim).completed(2).round()).await.unwrap();
        other.enqueue_for_orchestrator(items::raise(&claim.instance, "go"), None).await.unwrap();
    }
}

/// For each connection of the server its writes and notifications, one letter each: `w`rote, or `n`otified.
fn stories(log: &Log<'_>, schema: &str) -> BTreeMap<String, String> {
    let text = std::fs::read(log.server.log()).unwrap();
    let text = String::from_utf8_lossy(text.get(log.behind..).unwrap_or_default()).into_owned();
    let mut stories: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let is_write =
            line.contains("LOG:  execute ") && (line.contains("WITH part_0") || line.contains("WITH woken"));
        let letter = if is_write {
            'w'
        } else if is_notification(line, schema) {
            'n'
        } else {
            continue;
        };
        let connection = line.split(' ').next().unwrap_or_default().to_owned();
        stories.entry(connection).or_default().push(letter);
    }
    stories
}

/// 24.9: turns, acks and events that wake an instance by a statement of their own: no transaction notifies twice.
#[tokio::test]
async fn no_transaction_notifies_twice() {
    const INSTANCES: usize = 30;
    let Some(server) = Server::own() else { return };
    server.configure("log_statement = 'all'\nlog_line_prefix = '%c '");
    server.restart_immediately();
    let options = fresh_options(&server);
    let schema = options.schema.to_string();
    let one = PostgresProvider::open(options.clone()).await.unwrap();
    let other = PostgresProvider::open(options).await.unwrap();
    let log = Log::from_now(&server);
    // Both know of each other when both have notified.
    for round in 0.. {
        start(&one, &format!("one-{round}"), 1).await;
        start(&other, &format!("other-{round}"), 1).await;
        if stories(&log, &schema).values().filter(|story| story.contains('n')).count() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fetch(&one, 1_000, Duration::ZERO).await;
    let log = Log::from_now(&server);
    work(&one, &other, INSTANCES).await;
    let stories = stories(&log, &schema);
    println!("{stories:#?}");
    let woken = log.count(|line| line.contains("LOG:  execute ") && line.contains("WITH woken"));
    assert!(woken >= INSTANCES / 2, "{woken} events woke their instances");
    assert!(stories.values().filter(|story| story.contains('n')).count() == 2, "{stories:#?}");
    assert!(stories.values().all(|story| !story.contains("nn")), "{stories:#?}");
}

/// Ends the session connection of a store: the one that listens.
async fn end_session(server: &Server, name: &str) {
    const END: &str =
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = $1
        AND (query LIKE '%pg_notify%' OR query LIKE '%AS listeners%' OR query LIKE '%LISTEN%')";
    let admin = Admin::connect(server).await;
    assert_eq!(admin.client().query(END, &[&name]).await.unwrap().len(), 1, "the session connection");
}

fn named(options: &PostgresOptions, name: &str) -> PostgresOptions {
    let mut options = options.clone();
    options.config.application_name(name);
    options
}

/// 24.10: a store that has lost its session connection listens again, and is notified of later commits.
#[tokio::test]
async fn a_waiting_fetch_is_notified_again_after_its_session_was_lost() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let name = options.schema.to_string();
    let waiting = PostgresProvider::open(named(&options, &name)).await.unwrap();
    let other = PostgresProvider::open(named(&options, "other")).await.unwrap();
    for round in 0..3 {
        let (claims, ()) = tokio::join!(fetch(&waiting, 1, SOON), async {
            tokio::task::yield_now().await;
            end_session(server, &name).await;
            listens_again(server, &name).await;
            start(&other, &format!("round-{round}"), 1).await;
        });
        assert_eq!(claims.len(), 1, "it was notified");
    }
}

/// Waits until the session connection of this name is open, and has read which processes listen.
async fn listens_again(server: &Server, name: &str) {
    const LISTENS: &str =
        "SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND query LIKE '%AS listeners%'";
    let admin = Admin::connect(server).await;
    while admin.client().query(LISTENS, &[&name]).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// 24.10: where no connection can be kept, a store asks for changes.
#[tokio::test]
async fn without_notifications_a_waiting_fetch_asks_for_work() {
    let Some(server) = postgres_server::server() else { return };
    let quiet = PostgresOptions { notifications: false, ..fresh_options(server) };
    let waiting = PostgresProvider::open(named(&quiet, quiet.schema.as_str())).await.unwrap();
    let other = PostgresProvider::open(quiet.clone()).await.unwrap();
    for round in 0..3 {
        let (claims, ()) = tokio::join!(fetch(&waiting, 1, SOON), async {
            tokio::task::yield_now().await;
            start(&other, &format!("round-{round}"), 1).await;
        });
        assert_eq!(claims.len(), 1);
    }
    let sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = $1";
    let connections = Admin::connect(server).await.client().query(sql, &[&quiet.schema.as_str()]).await;
    assert_eq!(connections.unwrap().len(), 3, "one that writes and two that read");
}

/// 24.10: a lost notification delays work, and loses none: a store that listens also polls, every half minute.
#[tokio::test]
async fn work_without_a_notification_is_found_by_polling() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let waiting = PostgresProvider::open(options.clone()).await.unwrap();
    // Such a store sends no notifications.
    let quiet = PostgresOptions { notifications: false, ..options };
    let silent = PostgresProvider::open(quiet).await.unwrap();
    let (claims, ()) = tokio::join!(fetch(&waiting, 1, 3 * SOON), start(&silent, "unsent_news", 1));
    assert_eq!(claims.len(), 1);
}

/// 24.11: a process that stores many starts leaves a share of them to the others. It claims the rest itself a moment later: the
/// others may lack the handler, or have no free slot.
#[tokio::test]
async fn new_instances_are_left_to_another_process_and_claimed_if_it_does_not() {
    let Some(server) = postgres_server::server() else { return };
    let options = fresh_options(server);
    let one = PostgresProvider::open(options.clone()).await.unwrap();
    let other = PostgresProvider::open(options).await.unwrap();
    let mut memberships = Vec::new();
    for (store, name) in [(&one, "one"), (&other, "other")] {
        let node = NodeAnnouncement { name: name.to_owned(), ..NodeAnnouncement::default() };
        memberships.push(store.join_node(&node).await.unwrap().unwrap());
    }
    for round in 0.. {
        let name = format!("left-{round}");
        let (own, ()) = tokio::join!(fetch(&one, STARTS, SOON), start(&one, &name, STARTS));
        let left = fetch(&other, STARTS, Duration::ZERO).await;
        if !left.is_empty() {
            assert!(!own.is_empty());
            break;
        }
        // The first has not noticed the other yet, or has claimed all of it by now.
        assert!(round < 200, "nothing was left");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    while !fetch(&one, STARTS, Duration::from_secs(1)).await.is_empty() {}
    let claim_all = async {
        let mut claimed = 0;
        while claimed < STARTS {
            claimed += fetch(&one, STARTS, SOON).await.len();
        }
        claimed
    };
    let all = tokio::time::timeout(SOON, async { tokio::join!(claim_all, start(&one, "all", STARTS)) });
    assert_eq!(all.await.unwrap().0, STARTS);
}

/// 24.6, D10: a process that is alone checks for dead nodes seldom. From the moment another one comes it checks as often as both
/// have to, so that it would notice the death of the other within two seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_alone_checks_often_once_another_one_has_come() {
    let Some(server) = Server::own() else { return };
    server.configure("log_statement = 'all'\nlog_line_prefix = '%a '");
    server.restart_immediately();
    let checks = || {
        let log = std::fs::read(server.log()).unwrap();
        let log = String::from_utf8_lossy(&log).into_owned();
        log.lines()
            .filter(|line| {
                line.starts_with("first ")
                    && line.contains(": SELECT (SELECT count(*) FROM pg_catalog.pg_locks")
            })
            .count()
    };
    let reach = async |count: usize| {
        while checks() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let mut options = fresh_options(&server);
    options.config.application_name("first");
    let first = PostgresProvider::open(options.clone()).await.unwrap();
    let node = |name: &str| NodeAnnouncement { name: name.to_owned(), ..NodeAnnouncement::default() };
    let _first = first.join_node(&node("first")).await.unwrap().unwrap();
    // One when its connection was made, and one when it joined.
    tokio::time::timeout(Duration::from_secs(20), reach(2)).await.unwrap();
    options.config.application_name("second");
    let second = PostgresProvider::open(options).await.unwrap();
    let before = checks();
    let _second = second.join_node(&node("second")).await.unwrap().unwrap();
    tokio::time::timeout(Duration::from_secs(7), reach(before + 3)).await.expect("it checks often");
}
