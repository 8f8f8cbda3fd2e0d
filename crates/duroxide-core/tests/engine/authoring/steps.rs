//! Steps that run in place.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use duroxide_core::{
    BackoffStrategy, Clock, Either2, Event, FnOrchestration, OrchestrationContext, OrchestrationHandlerRef,
    RetryPolicy, RuntimeLimits, WorkItem,
    engine::{Execution, Outcome, Seed, Setup, StepWork, Turn},
};
use futures::{FutureExt, future::join_all};

use crate::story::{ManualClock, cancel, completed, failure, json, lines, raised, timer_fired};

/// Runs an execution with its steps, as a runtime does.
struct Node {
    handler: OrchestrationHandlerRef,
    clock: Arc<ManualClock>,
    limits: RuntimeLimits,
    history: Vec<Event>,
    execution: Option<Execution>,
    running: BTreeMap<u64, (String, StepWork)>,
}

impl Node {
    fn new<F, Fut>(code: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self {
            handler: Arc::new(FnOrchestration(code)),
            clock: Arc::default(),
            limits: RuntimeLimits::default(),
            history: Vec::new(),
            execution: None,
            running: BTreeMap::new(),
        }
    }

    fn setup(&self) -> Setup {
        Setup {
            handler: Arc::clone(&self.handler),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            limits: self.limits.clone(),
            worker_id: None,
            kv: BTreeMap::new(),
        }
    }

    /// Forgets everything that is not stored.
    fn crash(&mut self) {
        self.execution = None;
        self.running.clear();
    }

    /// One turn with its steps until they wait; its events are stored.
    fn turn(&mut self, messages: impl IntoIterator<Item = WorkItem>) -> Turn {
        let mut execution = self.execution.take().unwrap_or_else(|| self.load());
        let mut turn = execution.turn(messages.into_iter().collect());
        loop {
            for step in execution.begin_steps() {
                self.running.insert(step.number, (step.name, (step.begin)()));
            }
            self.running.retain(|number, _| execution.waits_for_step(*number));
            let ended: Vec<_> = self
                .running
                .iter_mut()
                .filter_map(|(number, (name, work))| {
                    work.as_mut().now_or_never().map(|result| (*number, name.clone(), result))
                })
                .collect();
            if ended.is_empty() || turn.outcome != Outcome::Running {
                break;
            }
            self.running.retain(|number, _| ended.iter().all(|(other, ..)| other != number));
            turn = turn.followed_by(execution.steps_ended(ended));
        }
        self.history.extend(turn.delta.iter().cloned());
        assert_eq!(execution.last_event_id(), self.history.len() as u64);
        self.execution = Some(execution);
        turn
    }

    fn load(&self) -> Execution {
        if !self.history.is_empty() {
            return Execution::replay(self.history.clone(), self.setup());
        }
        let seed = Seed {
            instance: "order".into(),
            execution_id: 1,
            name: "Order".into(),
            version: "1.0.0".into(),
            input: "in".into(),
            parent: None,
            carried: Vec::new(),
            custom_status: None,
        };
        Execution::start(seed, self.setup())
    }
}

/// Counts how often work runs.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU32>);

impl Runs {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Three steps, a wait, and one more.
fn three(
    runs: &Runs,
) -> impl Fn(OrchestrationContext, String) -> futures::future::BoxFuture<'static, Result<String, String>> + use<>
{
    let runs = runs.clone();
    move |ctx, _| {
        let runs = runs.clone();
        async move {
            let mut sum = 0;
            for number in 0..3_u32 {
                let runs = runs.clone();
                sum += ctx
                    .step("add", move || {
                        let runs = runs.clone();
                        async move { Ok::<_, String>(number + runs.next()) }
                    })
                    .await?;
            }
            let more = ctx.schedule_wait("more").await;
            Ok(format!("{sum} {more}"))
        }
        .boxed()
    }
}

/// Quick steps in a row are events of one turn, and run once.
#[test]
fn steps_in_a_row_share_a_turn() {
    let runs = Runs::default();
    let mut node = Node::new(three(&runs));
    let turn = node.turn([]);
    assert_eq!(
        lines(&turn.delta),
        ["1 OrchestrationStarted", "2 StepEnded", "3 StepEnded", "4 StepEnded", "5 ExternalSubscribed"]
    );
    assert_eq!(node.turn([raised("more", "x")]).outcome, completed("9 x"));
    assert_eq!(runs.count(), 3);
}

/// 2.14: recorded steps are not run again, and the replayed execution goes on like the live one.
#[test]
fn a_recorded_step_does_not_run_again() {
    let runs = Runs::default();
    let mut live = Node::new(three(&runs));
    live.turn([]);
    let mut replayed = Node::new(three(&runs));
    replayed.history.clone_from(&live.history);
    let turns = [&mut live, &mut replayed].map(|node| node.turn([raised("more", "x")]));
    assert_eq!(runs.count(), 3);
    assert_eq!(json(&turns[0].delta), json(&turns[1].delta));
}

/// At least once: a step whose result was not stored runs again.
#[test]
fn a_step_runs_again_after_a_crash() {
    let runs = Runs::default();
    let mut node = Node::new(three(&runs));
    node.turn([]);
    node.history.truncate(2);
    node.crash();
    assert_eq!(lines(&node.turn([]).delta), ["3 StepEnded", "4 StepEnded", "5 ExternalSubscribed"]);
    assert_eq!(runs.count(), 5, "the first result was stored");
}

/// The work of a step whose future was dropped is dropped too, and leaves no event.
#[test]
fn a_step_that_loses_a_race_leaves_no_trace() {
    let mut node = Node::new(|ctx: OrchestrationContext, _| async move {
        let slow = ctx.step("slow", std::future::pending::<Result<(), String>>);
        let deadline = ctx.schedule_timer(Duration::from_secs(1));
        match ctx.select2(slow.into_future(), deadline).await {
            Either2::First(_) => Ok("never".to_owned()),
            Either2::Second(()) => Ok(ctx.schedule_wait("w").await),
        }
    });
    node.turn([]);
    assert_eq!(node.running.len(), 1);
    node.turn([timer_fired(2)]);
    assert!(node.running.is_empty());
    assert_eq!(lines(&node.history)[1..], ["2 TimerCreated", "3 TimerFired <- 2", "4 ExternalSubscribed"]);
    node.crash();
    assert_eq!(node.turn([raised("w", "done")]).outcome, completed("done"));
}

/// Two steps end at the same moment, and the code drops one of them when it sees the other's result.
#[test]
fn of_steps_that_race_and_end_together_one_wins() {
    let mut node = Node::new(|ctx: OrchestrationContext, _| async move {
        let [first, second] = ["first", "second"].map(|name| {
            ctx.step(name, move || async move { Ok::<_, String>(name.to_owned()) }).into_future()
        });
        let winner = match ctx.select2(first, second).await {
            Either2::First(name) | Either2::Second(name) => name?,
        };
        Ok(winner + &ctx.schedule_wait("w").await)
    });
    assert_eq!(node.turn([]).outcome, Outcome::Running);
    node.crash();
    assert_eq!(node.turn([raised("w", "!")]).outcome, completed("first!"));
}

/// A result that arrives after the code gave its step up is not recorded: a replay would find no step that waits for it.
#[test]
fn a_result_that_comes_too_late_is_not_recorded() {
    let code = |ctx: OrchestrationContext, _| async move {
        let slow = ctx.step("slow", std::future::pending::<Result<(), String>>);
        ctx.select2(slow.into_future(), ctx.schedule_timer(Duration::from_secs(1))).await;
        Ok(ctx.schedule_wait("w").await)
    };
    let mut node = Node::new(code);
    node.turn([]);
    node.turn([timer_fired(2)]);
    let execution = node.execution.as_mut().unwrap();
    let turn = execution.steps_ended(vec![(1, "slow".to_owned(), Ok("null".to_owned()))]);
    assert_eq!(lines(&turn.delta), Vec::<String>::new());
}

/// 6.1: a cancellation ends an instance whose step runs.
#[test]
fn a_cancellation_ends_a_step() {
    let mut node = Node::new(|ctx: OrchestrationContext, _| async move {
        ctx.step("slow", std::future::pending::<Result<String, String>>).await.map_err(String::from)
    });
    assert_eq!(node.turn([]).outcome, Outcome::Running, "waiting for a step is no foreign wait");
    assert!(failure(&node.turn([cancel("enough")])).contains("enough"));
}

/// Each attempt is recorded, with the timer between them.
#[test]
fn a_step_is_retried() {
    let runs = Runs::default();
    let of_code = runs;
    let mut node = Node::new(move |ctx: OrchestrationContext, _| {
        let runs = of_code.clone();
        async move {
            let delay = Duration::from_secs(1);
            let policy = RetryPolicy::new(3).with_backoff(BackoffStrategy::Fixed { delay });
            let work = move || {
                let run = runs.next();
                async move { if run < 2 { Err(format!("attempt {run}")) } else { Ok(run) } }
            };
            Ok(ctx.step("flaky", work).retry(policy).await?.to_string())
        }
    });
    node.turn([]);
    assert_eq!(lines(&node.history)[1..], ["2 StepEnded", "3 TimerCreated"]);
    assert_eq!(node.turn([timer_fired(3)]).outcome, completed("2"));
}

/// Errors come back as themselves, panics and oversized results as failures.
#[test]
fn steps_fail_like_activities() {
    let mut node = Node::new(|ctx: OrchestrationContext, _| async move {
        let failed = ctx.step("fails", || async { Err::<(), _>("sold out".to_owned()) }).await;
        let panicked = ctx.step("panics", || async { panic!("ouch") as Result<(), String> }).await;
        let large = ctx.step("large", || async { Ok::<_, String>("x".repeat(100)) }).await;
        let large = large.map_err(|error| error.to_string()).unwrap_err();
        Ok(format!("{failed:?} {panicked:?} {}", large.len()))
    });
    node.limits.max_payload_bytes = Some(90);
    let turn = node.turn([]);
    let Outcome::Completed { output } = &turn.outcome else { panic!("{turn:?}") };
    let text = "Step output size (102 bytes) exceeds limit (90 bytes)";
    let expected = format!("Err(Failed(\"sold out\")) Err(Panicked(\"ouch\")) {}", text.len());
    assert_eq!(*output, expected);
}

/// Parallel steps are identified by their numbers, in whichever order they end.
#[test]
fn steps_side_by_side_replay() {
    let code = |ctx: OrchestrationContext, _| async move {
        let steps = (0..3_u32)
            .map(|number| ctx.step("number", move || async move { Ok::<_, String>(number) }).into_future());
        let results: Result<Vec<_>, _> = join_all(steps).await.into_iter().collect();
        let go = ctx.schedule_wait("go").await;
        Ok(format!("{:?} {go}", results?))
    };
    let mut node = Node::new(code);
    node.turn([]);
    // As if the last one had ended first.
    let (first, last) = (node.history[1].kind.clone(), node.history[3].kind.clone());
    node.history[1].kind = last;
    node.history[3].kind = first;
    node.crash();
    assert_eq!(node.turn([raised("go", "on")]).outcome, completed("[0, 1, 2] on"));
}

/// 4.5: code that has no such step, or one of another name, does not match.
#[test]
fn changed_steps_are_found() {
    let runs = Runs::default();
    let mut node = Node::new(three(&runs));
    node.turn([]);
    let changed = |node: &mut Node, name: &'static str| {
        node.handler = Arc::new(FnOrchestration(move |ctx: OrchestrationContext, _| async move {
            if !name.is_empty() {
                ctx.step(name, || async { Ok::<_, String>(1) }).await?;
            }
            Ok(ctx.schedule_wait("more").await)
        }));
        node.execution = None;
        failure(&node.load().turn(vec![raised("more", "x")]))
    };
    let text = changed(&mut node, "subtract");
    assert!(
        text.contains("step mismatch: code=step 1 ('subtract') vs event=step 1 ('add') (event 2)"),
        "{text}"
    );
    let text = changed(&mut node, "");
    assert!(
        text.contains("history StepEnded of step 1 ('add') but no such step is open (event 2)"),
        "{text}"
    );
}
