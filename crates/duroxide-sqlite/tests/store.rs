//! The SQLite store engine, driven directly: time and nonces are arguments, nothing waits.

#[path = "store/fixture.rs"]
mod fixture;
#[path = "store/rounds.rs"]
mod rounds;
