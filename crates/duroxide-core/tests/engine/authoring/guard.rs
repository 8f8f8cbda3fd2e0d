//! Mistakes that are found at run time: code that uses its context outside of its turn, or that waits without an open call.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use duroxide_core::{
    ConfigErrorKind, DurableFuture, ErrorDetails, OrchestrationContext,
    engine::{Outcome, Turn},
};
use futures::{
    FutureExt, StreamExt,
    channel::oneshot,
    future::{join_all, select},
    stream::FuturesUnordered,
};

use crate::story::{
    Mode, Story, activity_completed, cancel, completed, failure, lines, queued, raised, tell, timer_fired,
};

/// Runs something on another thread and returns the text of its panic.
fn refusal<T: Send>(misuse: impl FnOnce() -> T + Send) -> String {
    let caught =
        thread::scope(|scope| scope.spawn(|| catch_unwind(AssertUnwindSafe(misuse)).err()).join().unwrap());
    let payload = caught.expect("the call was not refused");
    payload.downcast_ref::<String>().expect("a text").clone()
}

fn assert_refused(text: &str) {
    assert!(text.contains("the context of orchestration 'Order' (instance 'order')"), "{text}");
    assert!(text.contains("used outside of its turn"), "{text}");
}

/// A call in another thread records nothing, whether the code is being polled or not.
#[test]
fn calls_of_another_thread_are_refused_and_not_recorded() {
    let misuses: [fn(&OrchestrationContext); 6] = [
        |ctx| drop(ctx.schedule_activity("a", "")),
        |ctx| drop(ctx.schedule_timer(Duration::from_secs(1))),
        |ctx| drop(ctx.dequeue_event("q")),
        |ctx| ctx.set_kv_value("k", "v"),
        |ctx| ctx.clear_all_kv_values(),
        |ctx| ctx.set_custom_status("s"),
    ];
    for misuse in misuses {
        let code = move |ctx: OrchestrationContext, _| async move {
            let beside = ctx.clone();
            assert_refused(&refusal(move || misuse(&beside)));
            assert_eq!((ctx.get_kv_length(), ctx.get_custom_status()), (0, None));
            Ok(ctx.schedule_wait("w").await)
        };
        tell(code, |story| {
            story.start();
            assert_eq!(story.turn([raised("w", "done")]).outcome, completed("done"));
            assert_eq!(story.history[1].kind.wire_name(), "ExternalSubscribed");
        });
    }
}

type Leak<T> = Arc<Mutex<Option<T>>>;

/// Between two turns, and after the end, no call of a context is allowed.
#[test]
fn a_context_is_refused_between_turns_and_after_the_end() {
    let leaked: Leak<OrchestrationContext> = Arc::default();
    let code = {
        let leaked = Arc::clone(&leaked);
        move |ctx: OrchestrationContext, _| {
            *leaked.lock().unwrap() = Some(ctx.clone());
            async move { Ok(ctx.schedule_wait("w").await) }
        }
    };
    let mut story = Story::new(code, Mode::Live);
    story.start();
    let beside = leaked.lock().unwrap().take().unwrap();
    assert_refused(&refusal(|| beside.set_kv_value("k", "v")));
    // The thread that ran the turn is no exception: a task may run on it later.
    let same_thread = catch_unwind(AssertUnwindSafe(|| beside.set_kv_value("k", "v")));
    assert!(same_thread.is_err());
    assert_eq!(story.turn([raised("w", "done")]).outcome, completed("done"));
    assert_refused(&refusal(|| beside.set_kv_value("k", "v")));
}

/// A future that a task polls is refused, and one that a task drops counts as still held.
#[test]
fn futures_are_polled_and_dropped_by_their_code_only() {
    let leaked: Leak<DurableFuture<Result<String, String>>> = Arc::default();
    let code = {
        let leaked = Arc::clone(&leaked);
        move |ctx: OrchestrationContext, _| {
            *leaked.lock().unwrap() = Some(ctx.schedule_activity("a", ""));
            async move { Ok(ctx.schedule_wait("w").await) }
        }
    };
    let mut story = Story::new(code, Mode::Live);
    story.start();
    let mut future = leaked.lock().unwrap().take().unwrap();
    assert_refused(&refusal(|| (&mut future).now_or_never()));
    thread::scope(|scope| scope.spawn(move || drop(future)).join().unwrap());
    let turn = story.turn([queued("q", "unrelated")]);
    assert_eq!(lines(&turn.delta), ["4 ExternalEventPersistent"]);
    assert_eq!(turn.cancelled_activities, [0; 0]);
}

/// What another thread drops in the middle of a turn is not recorded as dropped.
#[test]
fn a_drop_by_another_thread_is_not_recorded() {
    let code = |ctx: OrchestrationContext, _| async move {
        let activity = ctx.schedule_activity("a", "");
        ctx.schedule_wait("w").await;
        thread::scope(|scope| scope.spawn(move || drop(activity)).join()).unwrap();
        Ok(ctx.schedule_wait("w").await)
    };
    tell(code, |story| {
        story.start();
        let turn = story.turn([raised("w", "")]);
        assert_eq!(lines(&turn.delta), ["4 ExternalEvent", "5 ExternalSubscribed"]);
        assert_eq!(turn.cancelled_activities, [0; 0]);
    });
}

/// A destructor of the code may call its context while the execution is evicted. That is not a mistake.
#[test]
fn a_destructor_may_use_the_context_while_its_execution_is_dropped() {
    struct Farewell(OrchestrationContext, Arc<Mutex<bool>>);
    impl Drop for Farewell {
        fn drop(&mut self) {
            self.0.set_custom_status("gone");
            *self.1.lock().unwrap() = true;
        }
    }
    let said = Arc::new(Mutex::new(false));
    let code = {
        let said = Arc::clone(&said);
        move |ctx: OrchestrationContext, _| {
            let farewell = Farewell(ctx.clone(), Arc::clone(&said));
            async move {
                let data = ctx.schedule_wait("w").await;
                drop(farewell);
                Ok(data)
            }
        }
    };
    let mut story = Story::new(code, Mode::Live);
    story.start();
    drop(story);
    assert!(*said.lock().unwrap(), "the destructor panicked");
}

fn assert_foreign_wait(turn: &Turn, place: &str) {
    let Outcome::Failed { details } = &turn.outcome else { panic!("{:?}", turn.outcome) };
    assert!(
        matches!(details, ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, .. }),
        "{details:?}"
    );
    let text = details.display_message();
    assert!(text.contains(&format!("orchestration 'Order' waits, {place}, for something")), "{text}");
}

/// Code that waits for a channel fails in the turn in which it begins to wait, with the call after which it waits.
#[test]
fn a_wait_for_something_foreign_fails_at_once() {
    let at_first = |_: OrchestrationContext, _| async {
        let (_sender, receiver) = oneshot::channel::<String>();
        receiver.await.map_err(|_| "closed".to_owned())
    };
    tell(at_first, |story| {
        assert_foreign_wait(&story.start(), "before any of its calls resolved");
        assert_eq!(story.lines(), ["1 OrchestrationStarted", "2 OrchestrationFailed"]);
    });
    let after_a_call = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("charge", "").await?;
        pending().await
    };
    tell(after_a_call, |story| {
        assert_eq!(story.start().outcome, Outcome::Running);
        let turn = story.turn([activity_completed(2, "")]);
        assert_foreign_wait(&turn, "after its activity 'charge' (event 2) resolved");
    });
}

/// A call that has resolved and is not awaited cannot wake the code.
#[test]
fn a_resolved_call_that_is_held_does_not_hide_a_foreign_wait() {
    let code = |ctx: OrchestrationContext, _| async move {
        let timer = ctx.schedule_timer(Duration::from_secs(1));
        pending::<()>().await;
        timer.await;
        Ok(String::new())
    };
    tell(code, |story| {
        assert_eq!(story.start().outcome, Outcome::Running, "the timer is still open");
        assert_foreign_wait(&story.turn([timer_fired(2)]), "before any of its calls resolved");
    });
}

/// 5.3: calls that were dropped do not count, and are given up as in every turn.
#[test]
fn dropped_calls_do_not_hide_a_foreign_wait() {
    let code = |ctx: OrchestrationContext, _| async move {
        let loser = ctx.schedule_activity("slow", "");
        ctx.select2(ctx.schedule_timer(Duration::from_secs(1)), loser).await;
        pending().await
    };
    tell(code, |story| {
        story.start();
        let turn = story.turn([timer_fired(3)]);
        assert_foreign_wait(&turn, "after its timer (event 3) resolved");
        assert_eq!(turn.cancelled_activities, [2]);
        assert_eq!(lines(&turn.delta)[1..], ["5 ActivityCancelRequested <- 2", "6 OrchestrationFailed"]);
    });
}

/// 2.10: a cancellation and a continue-as-new come before it.
#[test]
fn code_that_ends_otherwise_may_wait_for_nothing() {
    let cancelled = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_wait("w").await;
        pending().await
    };
    tell(cancelled, |story| {
        story.start();
        let turn = story.turn([raised("w", ""), cancel("enough")]);
        assert!(failure(&turn).contains("enough"), "{:?}", turn.outcome);
    });
    tell(
        |ctx: OrchestrationContext, _| async move { ctx.continue_as_new("next").await },
        |story| assert!(matches!(story.start().outcome, Outcome::ContinuedAsNew(_))),
    );
}

/// S2.16: an execution of an older version rests as it did.
#[test]
fn an_execution_of_an_older_version_may_rest() {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_wait("w").await;
        pending().await
    };
    tell(code, |story| {
        story.start();
        story.history[0].duroxide_version = "0.4.0".into();
        assert_eq!(story.reload_and_turn([raised("w", "")]).outcome, Outcome::Running);
    });
}

/// No false alarm for combinators of durable futures, in whichever order their calls resolve.
#[test]
fn combinators_of_durable_futures_are_no_foreign_waits() {
    let activities =
        |ctx: &OrchestrationContext| [0, 1, 2].map(|number| ctx.schedule_activity("a", number.to_string()));
    let joined = move |ctx: OrchestrationContext, _| async move {
        let results: Result<Vec<_>, _> = join_all(activities(&ctx)).await.into_iter().collect();
        results.map(|all| all.concat())
    };
    let unordered = move |ctx: OrchestrationContext, _| async move {
        let mut all: FuturesUnordered<_> = activities(&ctx).into_iter().collect();
        let mut text = String::new();
        while let Some(result) = all.next().await {
            text += &result?;
        }
        Ok(text)
    };
    let shared = move |ctx: OrchestrationContext, _| async move {
        let all = activities(&ctx).map(FutureExt::shared);
        let twice = join_all(all.iter().chain(&all).cloned()).await;
        let results: Result<Vec<_>, _> = twice.into_iter().take(3).collect();
        results.map(|all| all.concat())
    };
    let selected = move |ctx: OrchestrationContext, _| async move {
        let [first, second, third] = activities(&ctx);
        let (one, rest) = select(first, second).await.factor_first();
        let (two, rest) = select(rest, third).await.factor_first();
        let three = rest.await?;
        Ok([one?, two?, three].concat())
    };
    let channel = move |ctx: OrchestrationContext, _| async move {
        // One branch waits for the other, which waits for an activity.
        let (sender, receiver) = oneshot::channel();
        let all = activities(&ctx);
        let sending = async move { drop(sender.send(join_all(all).await)) };
        let (results, ()) = futures::join!(receiver, sending);
        let results: Result<Vec<_>, _> = results.map_err(|_| "closed".to_owned())?.into_iter().collect();
        results.map(|all| all.concat())
    };
    fn check(story: &mut Story) {
        assert_eq!(story.start().outcome, Outcome::Running);
        for id in [3, 2] {
            assert_eq!(story.turn([activity_completed(id, &id.to_string())]).outcome, Outcome::Running);
        }
        let Outcome::Completed { output } = story.turn([activity_completed(4, "4")]).outcome else {
            panic!("not completed")
        };
        let mut letters: Vec<char> = output.chars().collect();
        letters.sort_unstable();
        assert_eq!(letters, ['2', '3', '4']);
    }
    tell(joined, check);
    tell(unordered, check);
    tell(shared, check);
    tell(channel, check);
    // Which of its two children a select polls is known, so its order of arrival is given.
    tell(selected, |story| {
        story.start();
        for id in [3, 2] {
            assert_eq!(story.turn([activity_completed(id, &id.to_string())]).outcome, Outcome::Running);
        }
        assert_eq!(story.turn([activity_completed(4, "4")]).outcome, completed("324"));
    });
}
