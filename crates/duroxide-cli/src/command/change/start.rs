//! `start`: a new instance.

use std::time::Duration;

use clap::Args;
use duroxide::{OrchestrationStatus, StartOutcome};
use serde_json::json;

use super::message::Payload;
use crate::{
    command::Context,
    exit::{Exit, Failure, Outcome},
    output::{Answer, Line, Text, Tone, clean},
    store::Store,
    time::parse_duration,
};

/// `start`
#[derive(Debug, Args)]
pub struct Start {
    /// The orchestration's name
    name: String,
    /// The id of the new instance
    instance: String,
    #[command(flatten)]
    input: Payload,
    /// Use exactly this handler version, instead of the one that the node's policy chooses
    #[arg(long, value_name = "VERSION")]
    handler_version: Option<String>,
    /// Wait for its end and print how it ended; fails if the instance does
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    timeout: Duration,
}

impl Start {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let input = self.input.read()?;
        let store = context.writer().await?;
        let outcome = self.start(&store, input).await?;
        let said = match outcome {
            StartOutcome::Created => "started",
            StartOutcome::Found => "exists already, with the same name and input",
            StartOutcome::FoundUnknown => "exists already; its name and input cannot be read",
            StartOutcome::FoundDifferent => {
                return Err(Failure::refused(format!(
                    "instance '{}' exists already, with another name or input",
                    self.instance
                ))
                .advise("choose another id; `show` says what it is"));
            }
        };
        if !self.wait {
            context.out.print(&self.answer(Line::new(said), json!({ "outcome": said })))?;
            return Ok(Exit::Done);
        }
        let status = store.client.wait_for_orchestration(&self.instance, self.timeout).await?;
        let (exit, line, json) = ended(&status, context);
        context.out.print(&self.answer(line, json))?;
        Ok(exit)
    }

    async fn start(&self, store: &Store, input: String) -> Outcome<StartOutcome> {
        let (client, id, name) = (&store.client, self.instance.as_str(), self.name.as_str());
        Ok(match &self.handler_version {
            None => client.start_orchestration_if_new(id, name, input).await?,
            Some(version) => {
                client.start_orchestration_versioned_if_new(id, name, version.as_str(), input).await?
            }
        })
    }

    fn answer(&self, line: Line, result: serde_json::Value) -> Answer {
        let text = Text::default().line(Line::new(format!("{}: ", clean(&self.instance))).then(line));
        Answer {
            text,
            json: json!({ "instance": self.instance, "result": result }),
            ids: vec![self.instance.clone()],
        }
    }
}

fn ended(status: &OrchestrationStatus, context: &Context<'_>) -> (Exit, Line, serde_json::Value) {
    let out = &context.out;
    match status {
        OrchestrationStatus::Completed { output, .. } => {
            let line = Line::toned(Tone::Good, "completed: ").and(Tone::Plain, out.payload(output));
            (Exit::Done, line, json!({ "outcome": "completed", "output": output }))
        }
        OrchestrationStatus::Failed { details, .. } => {
            let error = details.to_string();
            let line = Line::toned(Tone::Bad, "failed: ").and(Tone::Plain, out.payload(&error));
            (Exit::Failed, line, json!({ "outcome": "failed", "error": error }))
        }
        OrchestrationStatus::Running { .. } | OrchestrationStatus::NotFound => {
            (Exit::Failed, Line::new("has not ended"), json!({ "outcome": "running" }))
        }
    }
}
