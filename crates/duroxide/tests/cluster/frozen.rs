//! A process that was stopped for longer than its leases, and goes on.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use duroxide::{
    ActivityContext, Client, EventKind, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::{
    fixture::{ended, node, notes::Notes, output, process::Process, quick_options, until},
    schema::{Schema, notes_in, open_in},
    sound::assert_finished,
};

const LEASE: Duration = Duration::from_millis(1_500);
const FROZEN: &str = "frozen";

fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        orchestrator_lock_timeout: LEASE,
        orchestrator_lock_renewal_buffer: LEASE / 2,
        worker_lock_timeout: LEASE,
        worker_lock_renewal_buffer: LEASE / 2,
        ..quick_options()
    }
}

fn gate(folder: &Path) -> PathBuf {
    folder.join("go")
}

/// What a node does while its process is stopped: it begins, waits for the gate, and ends with the node's name.
#[derive(Clone)]
struct Slow {
    node: String,
    notes: Notes,
    gate: PathBuf,
}

impl Slow {
    fn begin(&self, what: &str) {
        self.notes.add(format!("{what} begins on {}", self.node));
    }

    fn end(&self, what: &str) -> Result<String, String> {
        self.notes.add(format!("{what} ends on {}", self.node));
        Ok(self.node.clone())
    }

    /// Only the process that will be frozen waits.
    fn may_end(&self) -> bool {
        self.node != FROZEN || self.gate.exists()
    }

    async fn activity(self) -> Result<String, String> {
        self.begin("activity");
        while !self.may_end() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.end("activity")
    }

    /// A turn that blocks: its process holds the lock of the instance.
    fn turn(&self) -> Result<String, String> {
        self.begin("turn");
        while !self.may_end() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.end("turn")
    }
}

/// The role of a worker process of this name. Only the one that will be frozen knows `Proof`.
pub async fn work(folder: &Path, name: &str) {
    let store = open_in(folder).await;
    let slow = Slow { node: name.to_owned(), notes: notes_in(folder), gate: gate(folder) };
    let activities = {
        let slow = slow.clone();
        let run = move |_ctx: ActivityContext, _input: String| slow.clone().activity();
        ActivityRegistry::builder().register("Slow", run).build()
    };
    let mut orchestrations = OrchestrationRegistry::builder()
        .register("Calls", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Slow", input).await
        })
        .register("Blocks", move |_ctx: OrchestrationContext, _input: String| {
            let slow = slow.clone();
            async move { slow.turn() }
        });
    if name == FROZEN {
        orchestrations = orchestrations.register("Proof", |_ctx, input| async move { Ok(input) });
    }
    let options = RuntimeOptions { handler_capability_filter: true, ..options() };
    let _runtime = node(&store, activities, orchestrations.build(), options).await;
    std::future::pending::<()>().await;
}

/// D10, I09, 16.1: a frozen process keeps its connections, so only its leases end. Whoever took over has the last word:
/// when the frozen one goes on, what it had begun is refused.
#[tokio::test]
async fn a_frozen_process_whose_leases_were_taken_over_cannot_commit() {
    let Some(schema) = Schema::new() else { return };
    let client = Client::new(schema.open().await);
    let notes = schema.notes();
    let frozen = Process::start("slow", schema.folder(), FROZEN);
    client.start_orchestration("calls", "Calls", "").await.unwrap();
    client.start_orchestration("blocks", "Blocks", "").await.unwrap();
    schema.reach_notes(2).await;
    frozen.stop().await;

    let _other = Process::start("slow", schema.folder(), "other");
    assert_eq!(output(ended(&client, "calls").await), "other");
    assert_eq!(output(ended(&client, "blocks").await), "other");

    std::fs::write(gate(schema.folder()), "").unwrap();
    frozen.resume();
    for what in ["activity", "turn"] {
        let line = format!("{what} ends on {FROZEN}");
        until("the frozen one goes on", async || notes.count(&line) == 1).await;
    }
    // It works again, and whatever it handed in before has been answered.
    client.start_orchestration("proof", "Proof", "alive").await.unwrap();
    assert_eq!(output(ended(&client, "proof").await), "alive");

    for instance in ["calls", "blocks"] {
        assert_eq!(output(ended(&client, instance).await), "other", "{instance}");
    }
    let history = client.read_execution_history("calls", 1).await.unwrap();
    let completions =
        history.iter().filter(|event| matches!(event.kind, EventKind::ActivityCompleted { .. }));
    assert_eq!(completions.count(), 1, "{history:?}");
    assert_finished(&schema.snapshot());
}
