//! The SQLite store engine, driven directly: time and nonces are arguments, nothing waits. What every engine does is
//! in `stories.rs`; here is what only this one has: files, connections, damage, statements.

#[path = "store/damage.rs"]
mod damage;
#[path = "store/files.rs"]
mod files;
#[path = "store/fixture.rs"]
mod fixture;
#[path = "store/plans.rs"]
mod plans;
#[path = "store/refused_files.rs"]
mod refused_files;
#[path = "store/sharing.rs"]
mod sharing;
