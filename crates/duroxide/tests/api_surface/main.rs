//! The public surface, named item by item: paths, signatures, derives, fields and variants.
//!
//! Most of this file only has to compile. A method is taken as a function pointer, a struct is built in full, an enum
//! is matched in full, a trait is implemented with exactly its required methods. Each change that breaks code written against
//! the documented API breaks one of these first.

#![allow(clippy::let_underscore_future, reason = "futures are only typed here, never awaited")]
#![allow(clippy::type_complexity, reason = "signatures are spelled out on purpose")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "this is a test")]
#![allow(clippy::needless_update, reason = "users build these structs so, because fields may be added")]
#![allow(unreachable_pub, dead_code, reason = "most of it is never called")]

mod authoring;
mod bounds;
mod client;
mod errors;
mod events;
#[cfg(feature = "provider-test")]
mod kits;
mod management;
mod observability;
mod options;
mod provider;
mod registries;
mod root;
mod runtime;
mod work_items;
