//! Options that all commands have.

use std::fmt;

use clap::Args;

use crate::{exit::Outcome, output::Format, store::Address};

/// Options that all commands have.
#[derive(Clone, Args)]
#[non_exhaustive]
pub struct Options {
    /// The store: `sqlite:orders.db` or `postgres://user@host/database`
    #[arg(long, short, global = true, env = "DUROXIDE_STORE", hide_env_values = true, value_name = "URL")]
    pub store: Option<String>,
    /// The schema of a PostgreSQL database, if it is not `duroxide`
    #[arg(long, global = true, env = "DUROXIDE_SCHEMA")]
    pub schema: Option<String>,
    /// The format of the output
    #[arg(long, short, global = true, value_enum, default_value_t, value_name = "FORM")]
    pub output: Format,
    /// Show payloads whole instead of their first 80 characters
    #[arg(long, global = true)]
    pub full: bool,
}

impl Options {
    pub(crate) fn address(&self) -> Outcome<Address> {
        Address::parse(self.store.as_deref(), self.schema.as_deref())
    }
}

/// A URL may have a password in it.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("output", &self.output)
            .field("full", &self.full)
            .finish_non_exhaustive()
    }
}
