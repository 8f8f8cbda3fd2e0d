//! `join`, `join2`, `join3`, `select2` and `select3`.

mod either;

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use futures_util::{StreamExt, future, stream::FuturesUnordered};

pub use self::either::{Either2, Either3};
use super::OrchestrationContext;

/// # Combinators
///
/// The combinators accept any future. The history fixes the order of completions, so a replay has the same winners.
impl OrchestrationContext {
    /// Waits for all futures; results come in the order of the arguments. Only woken futures are polled, so a
    /// fan-in of n costs O(n) in all.
    pub async fn join<T, F: Future<Output = T>>(&self, futures: Vec<F>) -> Vec<T> {
        let mut results: Vec<Option<T>> = futures.iter().map(|_| None).collect();
        let numbered = futures.into_iter().enumerate();
        let mut pending: FuturesUnordered<_> =
            numbered.map(|(index, future)| async move { (index, future.await) }).collect();
        while let Some((index, result)) = pending.next().await {
            if let Some(slot) = results.get_mut(index) {
                *slot = Some(result);
            }
        }
        results.into_iter().flatten().collect()
    }

    /// Waits for both futures.
    pub async fn join2<T1, T2>(
        &self,
        f1: impl Future<Output = T1>,
        f2: impl Future<Output = T2>,
    ) -> (T1, T2) {
        future::join(f1, f2).await
    }

    /// Waits for all three futures.
    pub async fn join3<T1, T2, T3>(
        &self,
        f1: impl Future<Output = T1>,
        f2: impl Future<Output = T2>,
        f3: impl Future<Output = T3>,
    ) -> (T1, T2, T3) {
        future::join3(f1, f2, f3).await
    }

    /// Waits for the first of two futures. The other one is dropped, which asks its work to stop. Pass `&mut future` to
    /// keep a future that loses.
    pub async fn select2<T1, T2>(
        &self,
        f1: impl Future<Output = T1>,
        f2: impl Future<Output = T2>,
    ) -> Either2<T1, T2> {
        let (mut f1, mut f2) = (pin!(f1), pin!(f2));
        poll_fn(|cx| {
            if let Poll::Ready(value) = f1.as_mut().poll(cx) {
                return Poll::Ready(Either2::First(value));
            }
            f2.as_mut().poll(cx).map(Either2::Second)
        })
        .await
    }

    /// Waits for the first of three futures. The others are dropped, which asks their work to stop.
    pub async fn select3<T1, T2, T3>(
        &self,
        f1: impl Future<Output = T1>,
        f2: impl Future<Output = T2>,
        f3: impl Future<Output = T3>,
    ) -> Either3<T1, T2, T3> {
        let (mut f1, mut f2, mut f3) = (pin!(f1), pin!(f2), pin!(f3));
        poll_fn(|cx| {
            if let Poll::Ready(value) = f1.as_mut().poll(cx) {
                return Poll::Ready(Either3::First(value));
            }
            if let Poll::Ready(value) = f2.as_mut().poll(cx) {
                return Poll::Ready(Either3::Second(value));
            }
            f3.as_mut().poll(cx).map(Either3::Third)
        })
        .await
    }
}
