//! 2.6, B25, I13: random programs under random messages do the same live and replayed, to the byte.

use std::{sync::Arc, time::Duration};

use duroxide_core::{Either2, OrchestrationContext, WorkItem, engine::Outcome};
use proptest::prelude::*;

use crate::story::*;

/// One step of a program.
#[derive(Debug, Clone)]
enum Step {
    Activity,
    Timer,
    Child,
    Wait(u8),
    Dequeue(u8),
    Cancelled,
    SetKey(u8),
    ClearKey(u8),
    Status,
    Detached,
    /// Schedules two things, keeps the first to finish, drops the other.
    Race(Box<Step>, Box<Step>),
    /// Schedules two things and waits for both.
    Both(Box<Step>, Box<Step>),
    /// Schedules and drops at once.
    Drop(Box<Step>),
    /// Schedules something and holds it to the end.
    Hold(Box<Step>),
    Prune,
}

type Held = Vec<std::pin::Pin<Box<dyn Future<Output = String> + Send>>>;

fn schedule(
    ctx: &OrchestrationContext,
    step: &Step,
    n: usize,
) -> std::pin::Pin<Box<dyn Future<Output = String> + Send>> {
    match step {
        Step::Timer => {
            let timer = ctx.schedule_timer(Duration::from_millis(n as u64));
            Box::pin(async move {
                timer.await;
                "t".to_owned()
            })
        }
        Step::Child => Box::pin(ctx.schedule_sub_orchestration("c", n.to_string()).map(|r| format!("{r:?}"))),
        Step::Wait(name) => Box::pin(ctx.schedule_wait(format!("w{name}"))),
        Step::Dequeue(name) => Box::pin(ctx.dequeue_event(format!("q{name}"))),
        Step::Cancelled => Box::pin(ctx.cancel_requested()),
        _ => Box::pin(ctx.schedule_activity("a", n.to_string()).map(|r| format!("{r:?}"))),
    }
}

async fn run(ctx: OrchestrationContext, program: Arc<Vec<Step>>) -> Result<String, String> {
    let mut output = String::new();
    let mut held: Held = Vec::new();
    for (n, step) in program.iter().enumerate() {
        match step {
            Step::SetKey(key) => ctx.set_kv_value(format!("k{key}"), output.len().to_string()),
            Step::ClearKey(key) => ctx.clear_kv_value(format!("k{key}")),
            Step::Status => ctx.set_custom_status(output.clone()),
            Step::Detached => ctx.schedule_orchestration("o", format!("other-{n}"), output.clone()),
            Step::Prune => output += &ctx.prune_kv_values_updated_before(40).to_string(),
            Step::Race(a, b) => {
                let (a, b) = (schedule(&ctx, a, n), schedule(&ctx, b, n));
                match ctx.select2(a, b).await {
                    Either2::First(value) => output += &format!("1{value}"),
                    Either2::Second(value) => output += &format!("2{value}"),
                }
            }
            Step::Both(a, b) => {
                let calls = vec![schedule(&ctx, a, n), schedule(&ctx, b, n)];
                output += &ctx.join(calls).await.concat();
            }
            Step::Drop(step) => drop(schedule(&ctx, step, n)),
            Step::Hold(step) => held.push(schedule(&ctx, step, n)),
            call => output += &schedule(&ctx, call, n).await,
        }
    }
    Ok(output)
}

fn call() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Activity),
        Just(Step::Timer),
        Just(Step::Child),
        (0..2u8).prop_map(Step::Wait),
        (0..2u8).prop_map(Step::Dequeue),
        Just(Step::Cancelled),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let boxed = || call().prop_map(Box::new);
    prop_oneof![
        4 => call(),
        1 => (0..3u8).prop_map(Step::SetKey),
        1 => (0..3u8).prop_map(Step::ClearKey),
        1 => Just(Step::Status),
        1 => Just(Step::Detached),
        1 => Just(Step::Prune),
        3 => (boxed(), boxed()).prop_map(|(a, b)| Step::Race(a, b)),
        2 => (boxed(), boxed()).prop_map(|(a, b)| Step::Both(a, b)),
        1 => boxed().prop_map(Step::Drop),
        1 => boxed().prop_map(Step::Hold),
    ]
}

/// The messages of one turn: completions of some open calls, and events.
#[derive(Debug, Clone)]
struct Move {
    finish: Vec<prop::sample::Index>,
    raise: Option<u8>,
    queue: Option<u8>,
    cancel: bool,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let finish = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
    let event = || prop::option::of(0..2u8);
    let a_move = (finish, event(), event(), prop::bool::weighted(0.05))
        .prop_map(|(finish, raise, queue, cancel)| Move { finish, raise, queue, cancel });
    prop::collection::vec(a_move, 1..30)
}

/// Plays the moves and returns everything that could be seen.
fn play(program: &Arc<Vec<Step>>, moves: &[Move], mode: Mode) -> (Vec<String>, Vec<String>) {
    let program = Arc::clone(program);
    let mut story = Story::new(move |ctx, _| run(ctx, Arc::clone(&program)), mode);
    let mut open: Vec<WorkItem> = Vec::new();
    let mut seen = Vec::new();
    let mut turn = story.start();
    for a_move in moves {
        open.extend(turn.activities.iter().chain(&turn.messages).filter_map(completion_of));
        seen.push(format!("{turn:?}"));
        assert_eq!(story.check_replay(), Ok(()), "the code does what it did");
        if turn.outcome != Outcome::Running {
            break;
        }
        story.clock.advance_ms(7);
        let mut messages = Vec::new();
        for pick in &a_move.finish {
            if !open.is_empty() {
                messages.push(open.remove(pick.index(open.len())));
            }
        }
        messages.extend(a_move.raise.map(|name| raised(&format!("w{name}"), "e")));
        messages.extend(a_move.queue.map(|name| queued(&format!("q{name}"), &seen.len().to_string())));
        messages.extend(a_move.cancel.then(|| cancel("random")));
        turn = story.turn(messages);
    }
    (json(&story.history), seen)
}

fn completion_of(item: &WorkItem) -> Option<WorkItem> {
    match item {
        WorkItem::ActivityExecute { id, input, .. } => Some(activity_completed(*id, input)),
        WorkItem::TimerFired { id, .. } => Some(timer_fired(*id)),
        WorkItem::StartOrchestration { parent_id: Some(id), .. } => Some(child_completed(*id, "child")),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn live_and_replayed_are_the_same(
        program in prop::collection::vec(step(), 1..10).prop_map(Arc::new),
        moves in moves(),
    ) {
        let live = play(&program, &moves, Mode::Live);
        let replayed = play(&program, &moves, Mode::Replayed);
        prop_assert_eq!(live, replayed);
    }
}
