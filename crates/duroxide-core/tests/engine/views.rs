//! The reads of a live execution by the shell.

use std::sync::Arc;

use duroxide_core::{
    Clock, FnOrchestration, OrchestrationContext, RuntimeLimits,
    engine::{Execution, HistoryCheck, Setup},
};

use crate::story::*;

fn setup(clock: &Arc<ManualClock>) -> Setup {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.set_kv_value("k", "v");
        ctx.schedule_wait("e").await;
        ctx.dequeue_event("q").await;
        Ok(ctx.schedule_activity("a", "").await.unwrap_or_default())
    };
    Setup {
        handler: Arc::new(FnOrchestration(code)),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        limits: RuntimeLimits::default(),
        worker_id: None,
        kv: Default::default(),
    }
}

/// Where it stands, who called it, and its keys.
#[test]
fn an_execution_says_where_it_stands() {
    let link = duroxide_core::ParentLink { instance: "p".into(), event_id: 4, execution_id: Some(2) };
    let mut story = Story::new(|_, _| std::future::pending(), Mode::Live);
    story.seed.parent = Some(link.clone());
    story.clock.advance_ms(5_000);
    let mut live = Execution::start(story.seed.clone(), setup(&story.clock));
    assert_eq!((live.last_event_id(), live.started_at_ms()), (1, 5_000));
    story.clock.advance_ms(1);
    let turn = live.turn(vec![]);
    let replayed = Execution::replay(turn.delta, setup(&story.clock));
    for execution in [live, replayed] {
        assert_eq!((execution.last_event_id(), execution.started_at_ms()), (3, 5_000));
        assert_eq!(execution.parent(), Some(&link));
        assert_eq!(execution.key_values()["k"].value, "v");
        assert!(format!("{execution:?}").contains("last_event_id: 3"));
    }
}

/// A check knows the end.
#[test]
fn a_history_check_knows_the_last_event_and_the_end() {
    let mut story = Story::new(|_, _| async { Ok("done".into()) }, Mode::Live);
    story.start();
    let mut check = HistoryCheck::new();
    assert_eq!((check.last_event_id(), check.has_ended()), (0, false));
    for (event, ended) in story.history.iter().zip([false, true]) {
        check.push(event).unwrap();
        assert_eq!((check.last_event_id(), check.has_ended()), (event.event_id, ended));
    }
}

/// 2.9: a waker counts, by whichever of its two methods it is woken.
#[test]
fn code_that_wakes_itself_is_polled_again() {
    tell(
        |_, _| async move {
            for by_value in [true, false] {
                let mut woken = false;
                std::future::poll_fn(|cx| {
                    if woken {
                        return std::task::Poll::Ready(());
                    }
                    woken = true;
                    let waker = cx.waker().clone();
                    if by_value {
                        waker.wake();
                    } else {
                        waker.wake_by_ref();
                    }
                    std::task::Poll::Pending
                })
                .await;
            }
            Ok("both".into())
        },
        |story| assert_eq!(story.start().outcome, completed("both")),
    );
}

/// Panics when it is dropped.
struct Grumpy;

impl Drop for Grumpy {
    fn drop(&mut self) {
        panic!("not now");
    }
}

/// 2.11: destructors of parked code are user code, and may panic wherever an execution is dropped.
#[test]
fn an_execution_whose_code_panics_when_dropped_can_be_dropped() {
    let mut story = Story::new(
        |ctx, _| async move {
            let _grumpy = Grumpy;
            Ok(ctx.schedule_wait("never").await)
        },
        Mode::Live,
    );
    story.start();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(story)));
    assert!(outcome.is_ok());
}
