//! A web console for [duroxide]: shows what instances do and why they wait, and changes them.
//!
//! The console is an axum [`Router`](axum::Router) that a service nests under any path:
//!
//! ```
//! # use std::sync::Arc;
//! # async fn mount(store: Arc<dyn duroxide::providers::Provider>) -> Result<axum::Router, duroxide_ui::WeakToken> {
//! use duroxide_ui::{Auth, Role};
//!
//! let client = duroxide::Client::new(store);
//! let token = std::env::var("CONSOLE_TOKEN").unwrap_or_default();
//! let auth = Auth::token("operators", token, Role::Operator)?;
//! let service = axum::Router::new().nest("/duroxide", duroxide_ui::router(client, auth));
//! # Ok(service)
//! # }
//! ```
//!
//! or a server of its own on loopback: [`serve`].
//!
//! # Security
//!
//! Nothing is open by default: the constructor takes an [`Auth`], which has no default. Viewers read, operators also change.
//! Changes carry a token of their session and are refused from other sites, pages have a content security policy
//! without inline script, payloads are escaped and can be hidden ([`Console::redact`]), and every change is audited
//! ([`AuditEntry`]).
//!
//! # Cost
//!
//! Lists and instances are read by index seeks. The overview's counts need a pass over the store, so they are read in
//! the background, during at most 1/40 of the time, and cached. [`Limits`] bounds pages, forms and live streams.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod audit;
mod auth;
mod charts;
mod console;
mod format;
mod limits;
mod live;
mod overview_cache;
mod pages;
mod redact;
mod request;
mod routes;
mod serve;
#[cfg(test)]
mod tests;

use overview_cache::cached_answer;
use request::{changed, csrf, failure, fields, guard, links, response, visit};

pub use audit::{AuditEntry, AuditOutcome};
pub use auth::{Auth, Principal, Role, WeakToken};
pub use console::Console;
pub use limits::Limits;
pub use redact::{Payload, PayloadKind};
pub use serve::{ServeError, ServeOptions, Served, serve};

/// The router of a console on a client's store, to be nested into a service's router. [`Console`] has more settings.
pub fn router(client: duroxide::Client, auth: Auth) -> axum::Router {
    Console::new(client, auth).router()
}

/// The snippets of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/console.md")]
struct Guide;
