//! The test kit: everything a program on duroxide needs to test its own handlers.
//!
//! * [`TestCluster`]: the real runtime on a real store, on one thread and in virtual time, with crashes and faults on
//!   request and all random numbers from one seed. [`for_seeds`] tries a crash at every await.
//! * [`Mock`], [`TextMock`]: mocks of activities. [`TestActivity`]: contexts for unit tests of activities.
//! * [`MockClient`]: a client for tests of code that starts orchestrations.
//! * [`replay_dir`]: replays recorded histories with the current code.
//! * [`verify_open_instances`]: replays every running instance of a store with new code before it is deployed.

// A wildcard arm would hide a new event kind, action or work item: see docs/adding-an-event-kind.md.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod activity;
mod cluster;
mod dice;
mod mock;
mod mock_client;
mod replay;
mod seeds;
mod verify;

pub use activity::TestActivity;
pub use cluster::{ClusterBuilder, StoreFault, TestCluster};
pub use mock::{Mock, TextMock};
pub use mock_client::{MockClient, MockClientBuilder};
pub use replay::{ReplayDirError, ReplayError, replay, replay_dir};
pub use seeds::for_seeds;
pub use verify::{FindingReport, Progress, VerifyError, VerifyReport, verify_open_instances};
