//! The test kit: everything a program on duroxide needs to test its own handlers.
//!
//! * [`TestCluster`]: the real runtime on a real store, on one thread and in virtual time, with crashes and faults on
//!   request and everything random from one seed. [`for_seeds`] tries a crash at every await.
//! * [`Mock`], [`TextMock`]: stand-ins for activities.
//! * [`replay_dir`]: recorded histories against the code of today.
//! * [`verify_open_instances`]: everything that runs in a store against the code of today, before it is deployed.

// A wildcard arm would hide a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod cluster;
mod dice;
mod mock;
mod replay;
mod seeds;
mod verify;

pub use cluster::{ClusterBuilder, StoreFault, TestCluster};
pub use mock::{Mock, TextMock};
pub use replay::{ReplayDirError, ReplayError, replay, replay_dir};
pub use seeds::for_seeds;
pub use verify::{FindingReport, Progress, VerifyError, VerifyReport, verify_open_instances};
