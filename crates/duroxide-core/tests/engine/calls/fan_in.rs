//! A fan-in costs what its children cost, in all turns together (5.6, B23). Work is counted, not timed.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use duroxide_core::{OrchestrationContext, engine::Outcome};

use crate::story::*;

/// Counts how often a future is polled.
struct Counted<F> {
    polls: Arc<AtomicUsize>,
    inner: F,
}

impl<F: Future + Unpin> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.inner).poll(cx)
    }
}

#[derive(Clone, Copy)]
enum Join {
    Ours,
    FuturesCrate,
}

async fn fan_in(
    ctx: OrchestrationContext,
    n: usize,
    join: Join,
    polls: Arc<AtomicUsize>,
) -> Result<String, String> {
    let calls: Vec<_> = (0..n)
        .map(|i| Counted { polls: Arc::clone(&polls), inner: ctx.schedule_activity("a", i.to_string()) })
        .collect();
    let results = match join {
        Join::Ours => ctx.join(calls).await,
        Join::FuturesCrate => futures::future::join_all(calls).await,
    };
    let in_order = results.iter().enumerate().all(|(i, result)| *result == Ok(i.to_string()));
    Ok(format!("{} {in_order}", results.len()))
}

/// Completes the activities one turn at a time and returns how often children were polled.
fn polls_of(n: usize, join: Join) -> usize {
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polls);
    let mut story = Story::new(move |ctx, _| fan_in(ctx, n, join, Arc::clone(&counter)), Mode::Live);
    let mut turn = story.start();
    assert_eq!(turn.activities.len(), n);
    for i in 0..n {
        assert_eq!(turn.outcome, Outcome::Running);
        turn = story.turn([activity_completed(i as u64 + 2, &i.to_string())]);
    }
    assert_eq!(turn.outcome, completed(&format!("{n} true")));
    polls.load(Ordering::Relaxed)
}

#[test]
fn ten_thousand_children_are_polled_twice_each() {
    for join in [Join::Ours, Join::FuturesCrate] {
        for n in [1_023, 1_024, 1_025, 10_000] {
            let polls = polls_of(n, join);
            assert!(polls <= 2 * n, "{polls} polls for {n} children");
        }
    }
}

/// The same in one batch, and replayed half way.
#[test]
fn a_fan_in_survives_a_restart_half_way() {
    const N: usize = 10_000;
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polls);
    let code = move |ctx, _| fan_in(ctx, N, Join::Ours, Arc::clone(&counter));
    let mut story = Story::new(code.clone(), Mode::Live);
    story.start();
    story.turn((0..N / 2).map(|i| activity_completed(i as u64 + 2, &i.to_string())));
    story.deploy(code);
    let turn = story.turn((N / 2..N).map(|i| activity_completed(i as u64 + 2, &i.to_string())));
    assert_eq!(turn.outcome, completed(&format!("{N} true")));
    assert!(polls.load(Ordering::Relaxed) <= 4 * N);
}

#[test]
fn ten_thousand_futures_are_dropped_at_once() {
    const N: usize = 10_000;
    let mut story = Story::new(
        |ctx: OrchestrationContext, _| async move {
            let calls: Vec<_> = (0..N).map(|_| ctx.schedule_activity("a", "")).collect();
            ctx.schedule_wait("go").await;
            drop(calls);
            Ok(ctx.schedule_wait("end").await)
        },
        Mode::Live,
    );
    story.start();
    assert_eq!(story.turn([raised("go", "")]).cancelled_activities.len(), N);
    assert_eq!(story.turn([raised("end", "ok")]).outcome, completed("ok"));
}
