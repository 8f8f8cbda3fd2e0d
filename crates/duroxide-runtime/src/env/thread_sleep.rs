//! Sleeps without an async runtime.

use std::{sync::mpsc, thread, time::Duration};

use tokio::sync::oneshot;
use tracing::error;

/// Sleeps on a thread of its own, which ends early if the future is dropped. Never resolves if no thread can be
/// started.
pub(super) async fn sleep(delay: Duration) {
    let (wake, woken) = oneshot::channel::<()>();
    let (_keep, dropped) = mpsc::channel::<()>();
    let wait = move || {
        // Nothing is ever sent: `recv_timeout` returns after the delay, or when the future is dropped.
        let _ = dropped.recv_timeout(delay);
        drop(wake);
    };
    if let Err(reason) = thread::Builder::new().name("duroxide-wait".into()).spawn(wait) {
        error!(target: "duroxide::runtime", %reason, "could not start a sleep thread");
        return std::future::pending().await;
    }
    let _ = woken.await;
}
