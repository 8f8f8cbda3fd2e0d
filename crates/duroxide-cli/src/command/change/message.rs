//! Shared by `start`, `raise` and `enqueue`: the payload, and the check that an instance can take a message.

use std::{fs, io::Read as _, path::PathBuf};

use clap::Args;
use duroxide::OrchestrationStatus;

use crate::{
    exit::{Failure, Outcome},
    store::Store,
};

/// A payload: on the command line or in a file.
#[derive(Debug, Clone, Args)]
pub(crate) struct Payload {
    /// The payload; empty if it is left out. A string of typed code is JSON: '"Ada"'
    payload: Option<String>,
    /// Read the payload from a file; `-` reads stdin
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    file: Option<PathBuf>,
}

impl Payload {
    pub(super) fn read(&self) -> Outcome<String> {
        let Some(file) = &self.file else { return Ok(self.payload.clone().unwrap_or_default()) };
        let mut text = String::new();
        let read = match file.to_str() {
            Some("-") => std::io::stdin().lock().read_to_string(&mut text).map(|_| text),
            _ => fs::read_to_string(file),
        };
        read.map_err(|error| {
            Failure::failed(format!("cannot read the payload from {}: {error}", file.display()))
                .advise("name a readable file of UTF-8 text")
        })
    }
}

/// Refuses an instance that cannot take a message. A message for an unknown instance would wait for its start and then
/// become a dead letter, which is seldom what the user wants.
pub(super) async fn check_open(store: &Store, id: &str) -> Outcome<()> {
    match store.client.get_orchestration_status(id).await? {
        OrchestrationStatus::Running { .. } => Ok(()),
        OrchestrationStatus::NotFound => Err(Failure::no_instance(id)),
        OrchestrationStatus::Completed { .. } | OrchestrationStatus::Failed { .. } => {
            Err(Failure::refused(format!("instance '{id}' has ended, so nothing was sent"))
                .advise("`show` says how it ended; start a new instance under another id"))
        }
    }
}
