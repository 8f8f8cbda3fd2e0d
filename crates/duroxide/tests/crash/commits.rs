//! Death right before and right after a commit.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use duroxide::{Client, SystemStats, providers::Provider};
use duroxide_core::Timestamp;
use duroxide_provider::{
    DeadLetter, ExecutionInfo, InstanceInfo, InstanceQuery, OrchestrationClaim, QueueDepths, SystemMetrics,
    WorkClaim,
    store::{
        ActivityOrder, Answer, ApplyError, Claimed, DeadLetterNote, EventRow, InstanceNeeds, InstanceOrder,
        Op, Readies, ReadyActivity, ReadyInstance, SelectedInstance, StoreEngine, StoreFailure, StoreReader,
        StoreSnapshot, StoredDescriptor, StoredExecution, StoredNode, StoredStatus,
    },
};
use duroxide_sqlite::{SqliteEngine, SqliteOptions};
use duroxide_store::StoreProvider;
use futures::future::join_all;

use crate::{
    fixture::{File, node, notes::Notes, process::Process, url_in},
    mix,
    sound::{assert_finished, assert_sound},
};

/// How many cases run at the same time.
const AT_ONCE: usize = 6;

/// S4.10, S4.24, S4.27, S4.41, I10, I11: a process dies on one side of its n-th commit, whatever is in it: rounds,
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
    let engine = SqliteEngine::open(&url_in(folder), SqliteOptions::default()).unwrap();
    let engine = Mortal { engine, commits: 0, dies_at: number.parse().unwrap(), before: side == "before" };
    let store: Arc<dyn Provider> = Arc::new(StoreProvider::builder(engine).start().unwrap());
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

macro_rules! forward {
    ($(fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        $(fn $name(&mut self $(, $argument: $type)*) -> $result {
            self.engine.$name($($argument),*)
        })*
    };
}

impl StoreEngine for Mortal {
    fn commit(&mut self) -> Result<(), StoreFailure> {
        self.commits += 1;
        let dies = self.commits == self.dies_at;
        if dies && self.before {
            std::process::abort();
        }
        self.engine.commit()?;
        if dies {
            std::process::abort();
        }
        Ok(())
    }

    forward! {
        fn begin(&mut self, now: Timestamp) -> Result<(), StoreFailure>;
        fn apply(&mut self, op: &Op, handed_in: Timestamp) -> Result<Answer, ApplyError>;
        fn promote(&mut self) -> Result<Vec<DeadLetterNote>, StoreFailure>;
        fn claim_instances(&mut self, order: &InstanceOrder, nonce: u128)
            -> Result<Claimed<OrchestrationClaim>, StoreFailure>;
        fn claim_activities(&mut self, order: &ActivityOrder, nonce: u128)
            -> Result<Claimed<WorkClaim>, StoreFailure>;
        fn rollback(&mut self) -> ();
        fn next_wake(&mut self) -> Result<Option<Timestamp>, StoreFailure>;
        fn changed_elsewhere(&mut self) -> Result<bool, StoreFailure>;
        fn may_be_ready(&mut self) -> Result<Readies, StoreFailure>;
        fn reopen(&mut self) -> Result<(), StoreFailure>;
        fn maintain(&mut self) -> Result<(), StoreFailure>;
    }
}

impl StoreReader for Mortal {
    forward! {
        fn history(&mut self, instance: &str, execution_id: Option<u64>)
            -> Result<Vec<EventRow>, StoreFailure>;
        fn load(&mut self, instance: &str, execution_id: u64) -> Result<StoredExecution, StoreFailure>;
        fn status(&mut self, instance: &str) -> Result<Option<StoredStatus>, StoreFailure>;
        fn descriptor(&mut self, instance: &str) -> Result<Option<StoredDescriptor>, StoreFailure>;
        fn last_event_id(&mut self, instance: &str, execution_id: u64) -> Result<Option<u64>, StoreFailure>;
        fn custom_status(&mut self, instance: &str) -> Result<Option<(Option<String>, u64)>, StoreFailure>;
        fn kv_value(&mut self, instance: &str, key: &str) -> Result<Option<String>, StoreFailure>;
        fn kv_values(&mut self, instance: &str) -> Result<BTreeMap<String, String>, StoreFailure>;
        fn stats(&mut self, instance: &str) -> Result<Option<SystemStats>, StoreFailure>;
        fn instances(&mut self, status: Option<&str>) -> Result<Vec<String>, StoreFailure>;
        fn select_instances(&mut self, query: &InstanceQuery, below: Option<u64>, max: usize)
            -> Result<Vec<SelectedInstance>, StoreFailure>;
        fn mailbox_holds(&mut self, instance: &str, at_least: u64) -> Result<bool, StoreFailure>;
        fn executions(&mut self, instance: &str) -> Result<Vec<u64>, StoreFailure>;
        fn current_execution(&mut self, instance: &str) -> Result<Option<u64>, StoreFailure>;
        fn instance_info(&mut self, instance: &str) -> Result<Option<InstanceInfo>, StoreFailure>;
        fn execution_info(&mut self, instance: &str, execution_id: u64)
            -> Result<Option<ExecutionInfo>, StoreFailure>;
        fn system_metrics(&mut self) -> Result<SystemMetrics, StoreFailure>;
        fn queue_depths(&mut self) -> Result<QueueDepths, StoreFailure>;
        fn children(&mut self, instance: &str) -> Result<Vec<String>, StoreFailure>;
        fn running_starts(&mut self) -> Result<Vec<String>, StoreFailure>;
        fn dead_letters(&mut self, limit: Option<u32>) -> Result<Vec<DeadLetter>, StoreFailure>;
        fn nodes(&mut self) -> Result<Vec<StoredNode>, StoreFailure>;
        fn ready_instances(&mut self, wanted: &dyn Fn(&InstanceNeeds) -> bool, max: usize)
            -> Result<Vec<ReadyInstance>, StoreFailure>;
        fn ready_activities(&mut self, wanted: &dyn Fn(&str, Option<&str>) -> bool, max: usize)
            -> Result<Vec<ReadyActivity>, StoreFailure>;
        fn snapshot(&mut self) -> Result<StoreSnapshot, StoreFailure>;
    }
}
