//! A store with instances of every kind, made by a real runtime, and the program that reads it.

use std::{
    future::Future,
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::Arc,
    time::Duration,
};

use duroxide::{
    EventKind,
    prelude::*,
    providers::sqlite::{SqliteOptions, SqliteProvider},
    runtime::registry::ActivityRegistry,
};
use serde_json::Value;
use tempfile::TempDir;

/// A timeout longer than any step of these tests.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Handlers for instances of every kind.
pub(crate) fn handlers() -> (ActivityRegistry, OrchestrationRegistry) {
    let activities = ActivityRegistry::builder()
        .register(
            "Charge",
            |_: ActivityContext, amount: String| async move { Ok(format!("charged {amount}")) },
        )
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Order", |ctx: OrchestrationContext, amount: String| async move {
            ctx.set_custom_status("waits for a signature");
            ctx.set_kv_value("amount", &amount);
            let by = ctx.schedule_wait("Approval").await;
            let charged = ctx.schedule_activity("Charge", amount).await?;
            Ok(format!("{charged}, approved by {by}"))
        })
        .register("Fail", |_: OrchestrationContext, why: String| async move { Err(why) })
        .register("Echo", |_: OrchestrationContext, text: String| async move { Ok(text) })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_sub_orchestration_with_id("Order", "child-1", input).await
        })
        .register("Count", |ctx: OrchestrationContext, count: String| async move {
            let count: u32 = count.parse().map_err(|_| "no number".to_owned())?;
            if count == 0 {
                Ok("counted".to_owned())
            } else {
                ctx.continue_as_new((count - 1).to_string()).await
            }
        })
        .register("Inbox", |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.dequeue_event("mail").await)
        })
        .build();
    (activities, orchestrations)
}

/// A store that a runtime has filled, and the runtime if it still runs.
pub(crate) struct Shop {
    pub(crate) folder: TempDir,
    pub(crate) client: Client,
    store: Arc<dyn Provider>,
    runtime: Option<Arc<Runtime>>,
}

impl Shop {
    /// Instances that ended, that wait, and one that no node has begun.
    pub(crate) async fn closed() -> Self {
        let mut shop = Self::open().await;
        shop.close().await;
        shop.client.start_orchestration("pending-1", "Order", "5").await.unwrap();
        shop
    }

    /// Like [`Self::closed`], with a node that runs.
    pub(crate) async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions { orphan_message_ttl: Duration::from_millis(1), ..Default::default() };
        let url = format!("sqlite:{}", folder.path().join("shop.db").display());
        let store: Arc<dyn Provider> = Arc::new(SqliteProvider::new(&url, Some(options)).await.unwrap());
        let mut shop = Self { folder, client: Client::new(store.clone()), store, runtime: None };
        shop.run().await;
        fill(&shop.client).await;
        shop
    }

    /// Runs a node.
    pub(crate) async fn run(&mut self) {
        let (activities, orchestrations) = handlers();
        self.runtime = Some(Runtime::start_with_store(self.store.clone(), activities, orchestrations).await);
    }

    /// Ends the node.
    pub(crate) async fn close(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown(None).await;
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("shop.db")
    }

    /// Runs the program on this store.
    pub(crate) fn cli(&self, args: &[&str]) -> Ran {
        self.cli_with_input(args, "")
    }

    pub(crate) fn cli_with_input(&self, args: &[&str], input: &str) -> Ran {
        run(program().args(["--store", &self.url()]).args(args), input)
    }

    /// Runs the program, which must succeed, and reads its JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let ran = self.cli(&[args, &["-o", "json"]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

/// Starts an instance of every kind and waits until each has reached its state.
pub(crate) async fn fill(client: &Client) {
    for (id, name, input) in [
        ("waiting-1", "Order", "60"),
        ("failed-1", "Fail", "no money"),
        ("echo-1", "Echo", "hello"),
        ("parent-1", "Parent", "7"),
        ("count-1", "Count", "3"),
        ("inbox-1", "Inbox", ""),
    ] {
        client.start_orchestration(id, name, input).await.unwrap();
    }
    for ended in ["failed-1", "echo-1", "count-1"] {
        client.wait_for_orchestration(ended, LONG).await.unwrap();
    }
    for waiting in ["waiting-1", "child-1", "inbox-1"] {
        until(async || waits(client, waiting).await).await;
    }
}

async fn waits(client: &Client, id: &str) -> bool {
    let events = client.read_execution_history(id, 1).await.unwrap();
    let is_wait = |kind: &EventKind| {
        matches!(kind, EventKind::ExternalSubscribed { .. } | EventKind::QueueSubscribed { .. })
    };
    events.iter().any(|event| is_wait(&event.kind))
}

/// Polls until `condition` holds.
pub(crate) async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, wait).await.expect("it does not happen");
}

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Asserts the exit code, and that stderr contains `said`.
    #[track_caller]
    pub(crate) fn ended(&self, code: i32, said: &str) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains(said), "{said} is missing in {self:?}");
        self
    }

    /// Asserts success, and that stdout contains all `texts`.
    #[track_caller]
    pub(crate) fn printed(&self, texts: &[&str]) -> &Self {
        assert_eq!(self.code, 0, "{self:?}");
        for text in texts {
            assert!(self.stdout.contains(text), "`{text}` is missing in {self:?}");
        }
        self
    }

    pub(crate) fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The program, without environment variables that would change its behaviour.
pub(crate) fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_duroxide"));
    program.env_remove("DUROXIDE_STORE").env_remove("DUROXIDE_SCHEMA").env_remove("NO_COLOR");
    program
}

pub(crate) fn run(program: &mut Command, input: &str) -> Ran {
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that does not read its input may end before the input is written.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap().into()
}
