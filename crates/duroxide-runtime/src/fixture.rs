//! Test fixtures of this crate.

pub(crate) mod fake_store;
mod listen;
mod logs;
mod recorder;

pub(crate) use fake_store::FakeStore;
pub(crate) use logs::Logs;
pub(crate) use recorder::Recorder;

/// The largest allocation that glibc's `malloc` serves from its per-thread cache. Larger ones are many times slower.
pub(crate) const CACHED_ALLOCATION_MAX: usize = 1_032;

/// The size of the future that a function returns.
pub(crate) fn future_size<Arguments, F: Future>(_: impl FnOnce(Arguments) -> F) -> usize {
    size_of::<F>()
}
