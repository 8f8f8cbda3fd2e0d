//! [`CachedAnswer`]: a cached answer that is costly to read, refreshed in the background.
//!
//! A caller gets the cached answer at once. If it is old, one task reads it again, however many callers ask meanwhile.
//! A read that took a time `t` is not repeated for 40 `t` (or another factor), so the reads of one answer never take
//! more than 1/41 of a reader's time.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// An answer is cached this many times as long as its read took, unless the caller sets another factor.
const CACHED_PER_READ: u32 = 40;
/// Minimum time for which an answer is cached.
const SHORTEST: Duration = Duration::from_secs(2);
/// How long a caller waits for the first answer.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// An answer, and how long its read took.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    pub(crate) cost: Duration,
}

#[derive(Debug)]
pub(crate) struct CachedAnswer<T> {
    state: Mutex<State<T>>,
    cached_per_read: u32,
    /// The number of finished reads.
    reads: watch::Sender<u64>,
}

#[derive(Debug)]
struct State<T> {
    answer: Option<Arc<Answer<T>>>,
    not_before: Option<Instant>,
    is_reading: bool,
}

impl<T: Send + Sync + 'static> CachedAnswer<T> {
    pub(crate) fn new() -> Arc<Self> {
        Self::cached_for(CACHED_PER_READ)
    }

    /// an answer that is cached `cached_per_read` times as long as its read took.
    pub(crate) fn cached_for(cached_per_read: u32) -> Arc<Self> {
        let state = State { answer: None, not_before: None, is_reading: false };
        Arc::new(Self { state: Mutex::new(state), cached_per_read, reads: watch::Sender::new(0) })
    }

    /// The cached answer. Starts `read` in the background if the answer is old. `None` if no read has succeeded yet.
    pub(crate) async fn get<F>(self: &Arc<Self>, read: F) -> Option<Arc<Answer<T>>>
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        let mut reads = self.reads.subscribe();
        if self.begin() {
            tokio::spawn(Arc::clone(self).refresh(read));
        }
        let answer = self.lock().answer.clone();
        if answer.is_some() || !self.lock().is_reading {
            return answer;
        }
        // There is no answer yet: a small store is read within this time.
        let _ = timeout(FIRST_WAIT, reads.changed()).await;
        self.lock().answer.clone()
    }

    /// The number of finished reads, by which live streams notice a new answer.
    pub(crate) fn reads(&self) -> u64 {
        *self.reads.borrow()
    }

    fn begin(&self) -> bool {
        let mut state = self.lock();
        let is_old = state.not_before.is_none_or(|not_before| not_before <= Instant::now());
        let begins = is_old && !state.is_reading;
        state.is_reading |= begins;
        begins
    }

    async fn refresh(self: Arc<Self>, read: impl Future<Output = Option<T>>) {
        // A guard, so that a panic also ends the read. Otherwise no later read would begin.
        let end = EndOfRead(&self, Instant::now());
        let value = read.await;
        if let Some(value) = value {
            self.lock().answer = Some(Arc::new(Answer { value, cost: end.1.elapsed() }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct EndOfRead<'a, T: Send + Sync + 'static>(&'a CachedAnswer<T>, Instant);

impl<T: Send + Sync + 'static> Drop for EndOfRead<'_, T> {
    fn drop(&mut self) {
        let now = Instant::now();
        let rest = now.duration_since(self.1).saturating_mul(self.0.cached_per_read).max(SHORTEST);
        let mut state = self.0.lock();
        state.is_reading = false;
        state.not_before = Some(now + rest);
        drop(state);
        self.0.reads.send_modify(|reads| *reads += 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{advance, sleep};

    use super::*;

    async fn ask(cached: &Arc<CachedAnswer<u32>>, reads: &Arc<AtomicU32>, cost: Duration) -> Option<u32> {
        let reads = Arc::clone(reads);
        let read = async move {
            sleep(cost).await;
            Some(reads.fetch_add(1, Ordering::SeqCst) + 1)
        };
        cached.get(read).await.map(|answer| answer.value)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_read_once_however_many_ask() {
        let (cached, reads) = (CachedAnswer::new(), Arc::new(AtomicU32::new(0)));
        let cost = Duration::from_millis(10);
        let asks = (0..20).map(|_| ask(&cached, &reads, cost));
        let answers = futures_util::future::join_all(asks).await;
        assert_eq!(answers, vec![Some(1); 20]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_read_is_answered_at_once_and_repeated_after_forty_times_its_cost() {
        let (cached, reads) = (CachedAnswer::new(), Arc::new(AtomicU32::new(0)));
        let cost = Duration::from_secs(1);
        let begin = Instant::now();
        assert_eq!(ask(&cached, &reads, cost).await, None);
        assert!(begin.elapsed() <= FIRST_WAIT);
        sleep(cost).await;
        assert_eq!(ask(&cached, &reads, cost).await, Some(1));
        advance(Duration::from_millis(39_900)).await;
        assert_eq!(ask(&cached, &reads, cost).await, Some(1));
        sleep(cost * 2).await;
        assert_eq!(reads.load(Ordering::SeqCst), 1, "read again too early");
        let begin = Instant::now();
        assert_eq!(ask(&cached, &reads, cost).await, Some(1), "an old answer is better than waiting");
        assert_eq!(begin.elapsed(), Duration::ZERO);
        sleep(cost * 2).await;
        assert_eq!(ask(&cached, &reads, cost).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_fails_or_panics_is_tried_again() {
        let cached = CachedAnswer::<u32>::new();
        assert!(cached.get(async { None }).await.is_none());
        assert!(cached.get(async { Some(1) }).await.is_none(), "not at once");
        advance(SHORTEST).await;
        assert!(cached.get(async { panic!("a panic of a store") }).await.is_none());
        advance(SHORTEST).await;
        assert_eq!(cached.get(async { Some(3) }).await.unwrap().value, 3);
    }
}
