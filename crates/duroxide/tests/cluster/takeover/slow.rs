//! The role of a process that is in the middle of an activity and of a turn while it cannot reach anybody.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use duroxide::{
    ActivityContext, Client, EventKind, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    providers::{Provider, ProviderError},
    runtime::registry::ActivityRegistry,
};

use crate::{
    fixture::{
        ended,
        intercept::{FullyIntercepted, Intercept},
        node,
        notes::Notes,
        output,
        process::Process,
        quick_options, until,
    },
    schema::{Schema, notes_in, open_in},
    sound::assert_finished,
};

/// The process that waits for [`let_it_end`]; any other one does not wait.
pub const SLOW: &str = "slow";
pub const OTHER: &str = "other";

/// Starts a process of this name that takes work for so long.
pub fn start(schema: &Schema, name: &str, lease: Duration) -> Process {
    Process::start("slow", schema.folder(), &format!("{name} {}", lease.as_millis()))
}

/// Waits until the slow one has begun an activity and a turn.
pub async fn begin(schema: &Schema, client: &Client) {
    client.start_orchestration("calls", "Calls", "").await.unwrap();
    client.start_orchestration("blocks", "Blocks", "").await.unwrap();
    schema.reach_notes(2).await;
}

/// Waits until the other process has completed both.
pub async fn taken_over(client: &Client) {
    for instance in ["calls", "blocks"] {
        assert_eq!(output(ended(client, instance).await), OTHER, "{instance}");
    }
}

/// The slow process may go on with its claims.
pub fn let_it_end(schema: &Schema) {
    std::fs::write(gate(schema.folder()), "").unwrap();
}

/// Waits until the slow one has ended both.
pub async fn has_ended(schema: &Schema) {
    let notes = schema.notes();
    for what in ["activity", "turn"] {
        let line = format!("{what} ends on {SLOW}");
        until("the slow one goes on", async || notes.count(&line) == 1).await;
    }
}

/// The slow process works again, its old claims were refused, and the results of the other one are stored once.
pub async fn assert_refused(schema: &Schema, client: &Client) {
    client.start_orchestration("proof", "Proof", "alive").await.unwrap();
    assert_eq!(output(ended(client, "proof").await), "alive");
    let notes = schema.notes();
    for call in ["ack_work_item", "commit_round"] {
        let line = format!("{call} is refused on {SLOW}");
        // After a lost answer a round is submitted once more.
        until(&line, async || notes.count(&line) >= 1).await;
    }
    taken_over(client).await;
    assert_eq!(notes.count(&format!("activity begins on {OTHER}, attempt 2")), 1, "{:?}", notes.lines());
    let history = client.read_execution_history("calls", 1).await.unwrap();
    let completions =
        history.iter().filter(|event| matches!(event.kind, EventKind::ActivityCompleted { .. }));
    assert_eq!(completions.count(), 1, "{history:?}");
    assert_finished(&schema.snapshot());
}

fn gate(folder: &Path) -> PathBuf {
    folder.join("go")
}

/// Begins, waits for the gate, and ends with the node's name.
#[derive(Clone)]
struct Slow {
    node: String,
    notes: Notes,
    gate: PathBuf,
}

impl Slow {
    fn end(&self, what: &str) -> Result<String, String> {
        self.notes.add(format!("{what} ends on {}", self.node));
        Ok(self.node.clone())
    }

    fn may_end(&self) -> bool {
        self.node != SLOW || self.gate.exists()
    }

    async fn activity(self, attempt: u32) -> Result<String, String> {
        self.notes.add(format!("activity begins on {}, attempt {attempt}", self.node));
        while !self.may_end() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.end("activity")
    }

    /// A turn that blocks: its process holds the lock of the instance.
    fn turn(&self) -> Result<String, String> {
        self.notes.add(format!("turn begins on {}", self.node));
        while !self.may_end() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.end("turn")
    }
}

/// Notes which calls the store refuses for good.
struct Refusals {
    node: String,
    notes: Notes,
}

impl Intercept for Refusals {
    async fn around<T: Send>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ProviderError>> + Send,
    ) -> Result<T, ProviderError> {
        let answer = call.await;
        if answer.as_ref().is_err_and(|error| !error.is_retryable()) {
            self.notes.add(format!("{method} is refused on {}", self.node));
        }
        answer
    }
}

/// The role of such a process. Only the slow one knows `Proof`.
pub async fn work(folder: &Path, detail: &str) {
    let (name, lease) = detail.split_once(' ').expect("a name and a lease");
    let lease = Duration::from_millis(lease.parse().expect("a number of milliseconds"));
    let slow = Slow { node: name.to_owned(), notes: notes_in(folder), gate: gate(folder) };
    let refusals = Refusals { node: name.to_owned(), notes: notes_in(folder) };
    let store: Arc<dyn Provider> = FullyIntercepted::new(open_in(folder).await, refusals);
    let activities = {
        let slow = slow.clone();
        let run = move |ctx: ActivityContext, _input: String| slow.clone().activity(ctx.attempt());
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
    if name == SLOW {
        orchestrations = orchestrations.register("Proof", |_ctx, input| async move { Ok(input) });
    }
    let _runtime = node(&store, activities, orchestrations.build(), options(lease)).await;
    std::future::pending::<()>().await;
}

fn options(lease: Duration) -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        orchestrator_lock_timeout: lease,
        orchestrator_lock_renewal_buffer: lease / 2,
        worker_lock_timeout: lease,
        worker_lock_renewal_buffer: lease / 2,
        session_idle_timeout: 2 * lease,
        handler_capability_filter: true,
        ..quick_options()
    }
}
