//! The lines of the log.

use std::{
    io,
    pin::pin,
    sync::{Arc, Mutex, Once},
    task::Poll,
    time::Duration,
};

use duroxide_core::WorkItem;
use duroxide_provider::{InstanceFilter, Provider, ProviderAdmin, store::FailureClass};
use duroxide_store::StoreProvider;

use crate::support::*;

/// Everything logged while it is the subscriber.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn capture<T>(&self, run: impl FnOnce() -> T) -> T {
        // While no subscriber exists, `tracing` caches that a log line is not wanted, and a test in another thread may
        // have caused that. A subscriber that takes all lines makes `tracing` ask for each line again.
        static TAKES_EVERYTHING: Once = Once::new();
        TAKES_EVERYTHING.call_once(|| {
            tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
        });
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone()).finish();
        tracing::subscriber::with_default(subscriber, run)
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Whether one line has all of these.
    fn has(&self, parts: &[&str]) -> bool {
        self.lines().iter().any(|line| parts.iter().all(|part| line.contains(part)))
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// B14: the thread goes on, but not silently. It logs where its starter logs.
#[test]
fn a_panic_in_the_engine_is_logged_as_an_error() {
    let log = Log::default();
    log.capture(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let plan = Plan::default();
        plan.panic_at_ops_with("bad");
        let provider = StoreProvider::builder(scripted_engine(&plan)).named("mine", "1").start().unwrap();
        runtime.block_on(provider.enqueue_for_orchestrator(start("bad"), None)).unwrap_err();
    });
    assert!(
        log.has(&[
            "ERROR",
            "duroxide::providers::store",
            "store engine panicked",
            "store=\"mine\"",
            "call=\"apply\""
        ]),
        "{:?}",
        log.lines()
    );
}

/// 16.11: queue messages for an instance that does not exist become dead letters at the first fetch, with a warning each.
#[test]
fn stray_queue_messages_are_logged_as_a_warning() {
    let log = Log::default();
    log.capture(|| {
        let Fixture { provider, mut store, .. } = fixture();
        let stray = WorkItem::QueueMessage {
            instance: "ghost".to_owned(),
            name: "q".to_owned(),
            data: "secret".to_owned(),
        };
        complete(&mut store, provider.enqueue_for_orchestrator(stray, None)).unwrap();
        let fetch = provider.fetch_orchestration_item(LOCK, std::time::Duration::ZERO, None);
        assert!(complete(&mut store, fetch).unwrap().is_none());
    });
    let told =
        ["WARN", "instance=\"ghost\"", "dead_letter=1", "no such instance", "moved to the dead letters"];
    assert!(log.has(&told), "{:?}", log.lines());
    assert!(!log.has(&["secret"]), "payloads are not logged");
}

#[test]
fn an_unknown_commit_outcome_and_the_reopen_are_logged() {
    let log = Log::default();
    log.capture(|| {
        let Fixture { provider, mut store, clock, plan } = fixture();
        plan.fail_next(Point::Commit, FailureClass::OutcomeUnknown);
        complete(&mut store, provider.enqueue_for_orchestrator(start("a"), None)).unwrap_err();
        clock.advance(std::time::Duration::from_millis(10));
        store.run();
    });
    assert!(log.has(&["ERROR", "outcome of a commit is unknown", "ops=1"]), "{:?}", log.lines());
    assert!(log.has(&["INFO", "store reopened"]), "{:?}", log.lines());
}

/// 19: a long delete logs its progress once a second.
#[test]
fn the_progress_of_a_bulk_delete_is_logged() {
    const INSTANCES: usize = 150;
    let log = Log::default();
    log.capture(|| {
        let mut f = fixture();
        for number in 0..INSTANCES {
            let instance = format!("i{number}");
            let claim = claim_new(&mut f, &instance);
            let mut round = last_round(&instance);
            round.history_delta.insert(0, started(&instance));
            round.metadata.orchestration_name = Some("Hello".to_owned());
            complete(&mut f.store, f.provider.commit_round(&claim.lock_token, round)).unwrap();
        }
        let Fixture { provider, mut store, clock, .. } = f;
        let mut delete = pin!(provider.delete_instance_bulk(InstanceFilter::default()));
        let deleted = loop {
            if let Poll::Ready(deleted) = poll(&mut delete) {
                break deleted.unwrap();
            }
            clock.advance(Duration::from_millis(500));
            store.run();
        };
        assert_eq!(deleted.instances_deleted, INSTANCES as u64);
    });
    let progress: Vec<_> =
        log.lines().into_iter().filter(|line| line.contains("removing rows of deleted instances")).collect();
    assert_eq!(progress.len(), 2, "one a second: {progress:?}");
    let first = ["INFO", "operation=\"delete_instance_bulk\"", "instances_deleted=64", "instances_left=86"];
    assert!(log.has(&first), "{progress:?}");
}
