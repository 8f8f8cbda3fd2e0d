//! Test fixtures of this crate.

pub(crate) mod fake_store;
mod listen;
mod logs;
mod recorder;

pub(crate) use fake_store::FakeStore;
pub(crate) use logs::Logs;
pub(crate) use recorder::Recorder;
