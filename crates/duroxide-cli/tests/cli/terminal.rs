//! Output that only a terminal gets: colours, questions, a screen of its own. The tests use a pseudoterminal.

use std::{
    fs::{File, OpenOptions},
    io::Read as _,
    os::fd::OwnedFd,
    process::Stdio,
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::fixture::{Shop, program};

/// A pseudoterminal: the user's side, and the program's side.
fn terminal() -> (File, File) {
    let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let program_side = OpenOptions::new().read(true).write(true).open(name).unwrap();
    (File::from(master), program_side)
}

/// Runs the program on a terminal, with `typed` as input. Returns its exit code and everything that the user sees.
fn on_terminal(shop: &Shop, args: &[&str], typed: &str, environment: &[(&str, &str)]) -> (i32, String) {
    use std::io::Write as _;
    let (mut user, side) = terminal();
    user.write_all(typed.as_bytes()).unwrap();
    let share = || Stdio::from(side.try_clone().unwrap());
    let mut child = program()
        .args(["--store", &shop.url()])
        .args(args)
        .envs(environment.iter().copied())
        .stdin(share())
        .stdout(share())
        .stderr(share())
        .spawn()
        .unwrap();
    drop(side);
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    // Reading fails when the program has closed its side.
    while let Ok(read @ 1..) = user.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..read]);
    }
    (child.wait().unwrap().code().unwrap(), String::from_utf8(seen).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_gets_colours_unless_they_are_refused() {
    let shop = Shop::closed().await;
    let (code, seen) = on_terminal(&shop, &["list"], "", &[]);
    assert_eq!(code, 0);
    assert!(seen.contains("\x1b[31mFailed\x1b[0m") && seen.contains("\x1b[32mCompleted\x1b[0m"), "{seen}");
    let (_, seen) = on_terminal(&shop, &["list"], "", &[("NO_COLOR", "1")]);
    assert!(seen.contains("Failed") && !seen.contains('\x1b'), "{seen:?}");
    let (_, seen) = on_terminal(&shop, &["list", "-o", "json"], "", &[]);
    assert!(!seen.contains('\x1b'), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_is_asked_before_something_is_destroyed() {
    let shop = Shop::closed().await;
    let (code, seen) = on_terminal(&shop, &["delete", "echo-1"], "n\n", &[]);
    assert_eq!(code, 4);
    assert!(seen.contains("delete 1 instances with their children? [y/N]"), "{seen}");
    assert!(seen.contains("nothing was changed"), "{seen}");
    shop.cli(&["show", "echo-1"]).printed(&["Completed"]);
    let (code, seen) = on_terminal(&shop, &["delete", "echo-1"], "y\n", &[]);
    assert_eq!(code, 0, "{seen}");
    // A progress bar is drawn, and erased.
    assert!(seen.contains("deleting [") && seen.contains("\r\x1b[K"), "{seen:?}");
    shop.cli(&["show", "echo-1"]).ended(3, "there is no instance");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_has_a_screen_of_its_own_and_gives_it_back() {
    let shop = Shop::closed().await;
    let (code, seen) = on_terminal(&shop, &["watch", "--count", "2", "--interval", "10ms"], "", &[]);
    assert_eq!(code, 0);
    assert!(seen.starts_with("\x1b[?1049h\x1b[?25l\x1b[H"), "{seen:?}");
    assert!(seen.ends_with("\x1b[J\x1b[?25h\x1b[?1049l"), "{seen:?}");
    assert_eq!(seen.matches("\x1b[H").count(), 2);
}
