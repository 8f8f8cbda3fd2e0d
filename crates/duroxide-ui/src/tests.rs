//! The whole console through its router, on a store with a running node.

mod actions;
mod fixture;
mod hostile;
mod live;
mod login;
mod pages;
mod prefixes;
mod walk;
