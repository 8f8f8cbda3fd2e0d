//! The named guarantees, checked over a snapshot of a store.
