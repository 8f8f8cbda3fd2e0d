//! A gigabyte at the door is refused without the memory for another one.
//!
//! The peak of a process's memory cannot be reset, so this program has one test.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]

use std::sync::Arc;

use duroxide::{Client, ClientError, providers::sqlite::SqliteProvider};
use serde::{Serialize, Serializer, ser::SerializeSeq as _};

const MIB: usize = 1 << 20;

/// A gigabyte of untouched memory, which occupies almost none itself.
fn gigabyte() -> String {
    String::from_utf8(vec![0; 1 << 30]).expect("NUL is a character")
}

/// A value whose text would have 32 MiB, made of one repeated piece.
struct Repeated;

impl Serialize for Repeated {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let piece = "x".repeat(MIB);
        let mut pieces = serializer.serialize_seq(Some(32))?;
        for _ in 0..32 {
            pieces.serialize_element(&piece)?;
        }
        pieces.end()
    }
}

/// The most memory this process ever had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("there is a peak");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("in KiB");
    kib << 10
}

#[track_caller]
fn refused(result: Result<(), ClientError>, what: &str) {
    match result {
        Err(ClientError::InvalidInput { message }) => {
            assert!(
                message.starts_with(what) && message.ends_with("exceeds limit (16777216 bytes)"),
                "{message}"
            );
        }
        other => panic!("expected InvalidInput, got {other:?}"),
    }
}

/// 15.3
#[tokio::test]
async fn a_huge_input_is_refused_without_the_memory_for_it() {
    let client = Client::new(Arc::new(SqliteProvider::new_in_memory().await.expect("a store")));
    client.start_orchestration("small", "Echo", "").await.expect("everything is warm");
    let before = peak();

    refused(
        client.start_orchestration("i", "Echo", gigabyte()).await,
        "orchestration input size (1073741824",
    );
    refused(client.start_orchestration(gigabyte(), "Echo", "").await, "instance id size (1073741824");
    refused(client.raise_event("i", "e", gigabyte()).await, "event data size (1073741824");
    refused(client.enqueue_event("i", "q", gigabyte()).await, "queue message data size (1073741824");
    refused(client.cancel_instance("i", gigabyte()).await, "cancellation reason size (1073741824");

    // Each piece has quotes and a comma around it.
    let text = 32 * (MIB + 3) + 1;
    let size = |what: &str| format!("{what} size ({text} bytes)");
    refused(client.start_orchestration_typed("i", "Echo", Repeated).await, &size("orchestration input"));
    refused(client.raise_event_typed("i", "e", &Repeated).await, &size("event data"));
    refused(client.enqueue_event_typed("i", "q", &Repeated).await, &size("queue message data"));

    let grown = peak() - before;
    assert!(grown < 16 * MIB, "{} MiB were needed to refuse", grown / MIB);
    assert_eq!(
        client.get_queue_depths().await.expect("the store answers").orchestrator_queue,
        1,
        "only the small one"
    );
}
