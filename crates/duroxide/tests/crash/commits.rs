//! Death right before and right after a commit.

use std::{path::Path, sync::Arc};

use duroxide::{Client, providers::Provider};
use duroxide_provider::{
    layers::EngineLayer,
    store::{Batch, Done, Fault, StoreEngine as _},
};
use duroxide_sqlite::{SqliteEngine, SqliteOptions};
use duroxide_store::StoreBuilder;
use futures_util::future::join_all;

use crate::{
    fixture::{File, node, notes::Notes, process::Process, url_in},
    mix,
    sound::{assert_finished, assert_sound},
};

/// How many cases run at the same time.
const AT_ONCE: usize = 6;

/// S4.10, S4.24, S4.27, S4.41, I10, I11: a process dies on one side of its n-th commit, for all kinds of operations: rounds,
/// results, claims. Either all of it is there or nothing; another process ends the work, and nothing is there twice.
#[tokio::test]
async fn a_commit_happened_or_not_and_another_process_goes_on() {
    let numbers = (1..=10).chain([12, 15, 18, 22, 26]);
    let cases: Vec<String> = numbers.flat_map(|n| [format!("before {n}"), format!("after {n}")]).collect();
    let mut deaths = 0;
    for group in cases.chunks(AT_ONCE) {
        let died = join_all(group.iter().map(|case| die_and_go_on(case))).await;
        deaths += died.into_iter().filter(|died| *died).count();
    }
    assert!(deaths >= 20, "only {deaths} of {} processes reached their last commit", cases.len());
}

/// Returns whether the first process died; if the work needed fewer commits, it ended.
async fn die_and_go_on(case: &str) -> bool {
    let file = File::new();
    let store = file.open().await;
    let client = Client::new(Arc::clone(&store));
    mix::start(&client, 1).await;
    let status = Process::start("dies at a commit", file.folder(), case).ended().await;
    assert!(status.success() || status.code().is_none(), "{case}: {status}");
    assert_sound(&file.snapshot());

    let notes = Notes::new(file.folder(), "notes");
    let runtime = node(&store, mix::activities(&notes), mix::orchestrations(), mix::options()).await;
    mix::completed(&client, 1).await;
    runtime.shutdown(None).await;
    assert_finished(&file.snapshot());
    !status.success()
}

/// The role of the process that dies. `case` is a side and a number.
pub async fn work(folder: &Path, case: &str) {
    let (side, number) = case.split_once(' ').expect("a side and a number");
    let (url, dies_at, before) = (url_in(folder), number.parse().unwrap(), side == "before");
    let store = StoreBuilder::opening(move || {
        let engine = SqliteEngine::open(&url, SqliteOptions::default())?;
        Ok(Mortal { engine, commits: 0, dies_at, before })
    });
    let store: Arc<dyn Provider> = Arc::new(store.start().unwrap());
    let notes = Notes::new(folder, "notes");
    let _runtime = node(&store, mix::activities(&notes), mix::orchestrations(), mix::options()).await;
    mix::completed(&Client::new(store), 1).await;
}

/// The SQLite engine, but its process dies at a commit.
struct Mortal {
    engine: SqliteEngine,
    commits: u64,
    dies_at: u64,
    before: bool,
}

impl EngineLayer for Mortal {
    type Engine = SqliteEngine;

    fn with_engine<T>(&mut self, call: impl FnOnce(&mut SqliteEngine) -> T) -> T {
        call(&mut self.engine)
    }

    fn transact(&mut self, batch: &Batch<'_>) -> Result<Done, Fault> {
        self.commits += 1;
        let dies = self.commits == self.dies_at;
        if dies && self.before {
            std::process::abort();
        }
        let done = self.engine.transact(batch)?;
        if dies {
            std::process::abort();
        }
        Ok(done)
    }
}
