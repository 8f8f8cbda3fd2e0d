//! `copy`: a SQLite file into a new schema of a PostgreSQL database.

use clap::Args;
use duroxide::providers::{
    copy_sqlite_to_postgres,
    postgres::{CopyError, CopyProgress},
};
use serde_json::json;

use crate::{
    command::Context,
    exit::{Exit, Failure, Outcome},
    output::{Answer, Line, Text, Tone},
    progress::Progress,
    store::Address,
};

/// `copy`
#[derive(Debug, Args)]
pub struct Copy {
    /// The database: postgres://user@host/database
    #[arg(long, value_name = "URL")]
    to: String,
    /// The new schema, which must not exist
    #[arg(long, value_name = "SCHEMA")]
    to_schema: Option<String>,
}

impl Copy {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let source = context.address()?;
        let target = Address::parse(Some(&self.to), self.to_schema.as_deref())?;
        let (url, options) = (source.sqlite_url()?, target.postgres_options()?);
        let mut progress = Progress::new("copying");
        let show = move |CopyProgress { copied, total, .. }| progress.show(copied, total);
        let copied = copy_sqlite_to_postgres(url, options, show).await;
        let copied = copied.map_err(|error| failure(&error, &target))?;
        let said = format!("copied {copied} instances, compared them, and checked the guarantees");
        context.out.print(&Answer {
            text: Text::default().line(Line::toned(Tone::Good, said)),
            json: json!({ "copied": copied }),
            ids: Vec::new(),
        })?;
        Ok(Exit::Done)
    }
}

fn failure(error: &CopyError, target: &Address) -> Failure {
    if let CopyError::Target(error) = error {
        return target.open_failure(error);
    }
    let text = target.without_secrets(&error.to_string());
    if let CopyError::SchemaExists { .. } | CopyError::WorkingSchemaExists { .. } = error {
        return Failure::refused(text).advise("--to-schema names another one");
    }
    // A source with a permanent error is in use, or is not a store.
    let is_in_use = matches!(error, CopyError::Source(error) if !error.is_retryable());
    let is_refused = is_in_use || matches!(error, CopyError::Busy { .. });
    if is_refused { Failure::refused(text) } else { Failure::failed(text) }
}
