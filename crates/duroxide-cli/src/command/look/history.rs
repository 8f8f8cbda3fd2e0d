//! `history`: the events of an instance, as a timeline.

mod timeline;

use std::time::Duration;

use clap::Args;
use duroxide::{Client, Event, EventKind, OrchestrationStatus};
use duroxide_provider::RawEvent;
use serde_json::{Value, json};

use self::timeline::Timeline;
use crate::{
    command::Context,
    exit::{Exit, Failure, Outcome},
    output::{Answer, Format, Line, Output, Table, Text, Tone, clean},
    store::Store,
    time::parse_duration,
};

/// `history`
#[derive(Debug, Args)]
pub struct History {
    /// The instance
    instance: String,
    /// Show this execution instead of the current one
    #[arg(long, short)]
    execution: Option<u64>,
    /// Show all executions
    #[arg(long, conflicts_with_all = ["execution", "follow"])]
    all_executions: bool,
    /// Show new events as they come, until the instance has ended
    #[arg(long, short, conflicts_with_all = ["execution", "raw"])]
    follow: bool,
    /// Interval at which new events are read
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_duration)]
    interval: Duration,
    /// Events as they are stored, also those that cannot be decoded
    #[arg(long)]
    raw: bool,
}

impl History {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let info = store.instance(&self.instance).await?;
        if self.follow {
            return self.follow(&store, &context.out, info.current_execution_id).await;
        }
        let known = store.client.list_executions(&self.instance).await?;
        let wanted = match self.execution {
            _ if self.all_executions => known,
            Some(number) if !known.contains(&number) => {
                return Err(Failure::not_found(format!("'{}' has no execution {number}", self.instance))
                    .advise("`show` lists its executions"));
            }
            number => vec![number.unwrap_or(info.current_execution_id)],
        };
        for execution in wanted {
            let answer = match self.raw {
                true => raw_answer(self.read_raw(&store, execution).await?),
                false => self.answer(&self.read(&store.client, execution).await?, execution, &context.out),
            };
            context.out.print(&answer)?;
        }
        Ok(Exit::Done)
    }

    /// Prints events as they come, from the current execution on.
    async fn follow(&self, store: &Store, out: &Output, first: u64) -> Outcome {
        let (mut execution, mut timeline, mut shown) = (first, Timeline::default(), 0);
        loop {
            let events = self.read_if_more(&store.client, execution, shown).await?;
            for event in events.iter().skip(shown) {
                match out.format {
                    Format::Table => out.print(&line_answer(timeline.add(event, out)))?,
                    Format::Json => out.print_json_line(&json!(event))?,
                    Format::Ids => out.write(&format!("{}\n", event.event_id))?,
                }
            }
            shown = shown.max(events.len());
            match events.last().map(|last| &last.kind) {
                Some(EventKind::OrchestrationContinuedAsNew { .. }) => {
                    (execution, timeline, shown) = (execution + 1, Timeline::default(), 0);
                }
                Some(EventKind::OrchestrationCompleted { .. }) => return Ok(Exit::Done),
                Some(EventKind::OrchestrationFailed { .. }) => return Ok(Exit::Done),
                _ => tokio::time::sleep(self.interval).await,
            }
        }
    }

    /// The history, if it has more than `seen` events. Counting events is cheaper than reading them.
    async fn read_if_more(&self, client: &Client, execution: u64, seen: usize) -> Outcome<Vec<Event>> {
        let Ok(info) = client.get_execution_info(&self.instance, execution).await else {
            // No node has begun the instance or the execution, or the instance was deleted.
            let status = client.get_orchestration_status(&self.instance).await?;
            let is_gone = status == OrchestrationStatus::NotFound;
            return if is_gone { Err(Failure::no_instance(&self.instance)) } else { Ok(Vec::new()) };
        };
        if info.event_count <= seen { Ok(Vec::new()) } else { self.read(client, execution).await }
    }

    async fn read(&self, client: &Client, execution: u64) -> Outcome<Vec<Event>> {
        let events = client.read_execution_history(&self.instance, execution).await;
        events.map_err(|error| {
            Failure::from(error).advise("if events cannot be decoded, --raw shows them as they are stored")
        })
    }

    async fn read_raw(&self, store: &Store, execution: u64) -> Outcome<Vec<RawEvent>> {
        Ok(store.admin()?.read_raw_history(&self.instance, execution).await?)
    }

    fn answer(&self, events: &[Event], execution: u64, out: &Output) -> Answer {
        let mut timeline = Timeline::default();
        let heading = format!("{}, execution {execution}", clean(&self.instance));
        let lines: Vec<Line> = events.iter().map(|event| timeline.add(event, out)).collect();
        let text = Text::default().line(Line::toned(Tone::Strong, heading));
        Answer {
            text: match lines.is_empty() {
                true => text.line(Line::toned(Tone::Dim, "no node has begun it: `explain` says why")),
                false => text.lines(lines),
            },
            json: json!({ "instance": self.instance, "execution": execution, "events": events }),
            ids: events.iter().map(|event| event.event_id.to_string()).collect(),
        }
    }
}

fn line_answer(line: Line) -> Answer {
    Answer { text: Text::default().line(line), ..Answer::default() }
}

fn raw_answer(events: Vec<RawEvent>) -> Answer {
    let mut table = Table::new(["EVENT", "KIND", "STORED"]);
    for event in &events {
        table.row([
            event.event_id.to_string().into(),
            clean(&event.event_type).into(),
            clean(&event.data).into(),
        ]);
    }
    let to_json = |event: &RawEvent| -> Value {
        json!({ "event_id": event.event_id, "type": event.event_type, "data": event.data })
    };
    Answer {
        text: Text::default().table(&table, "no events"),
        json: events.iter().map(to_json).collect(),
        ids: events.iter().map(|event| event.event_id.to_string()).collect(),
    }
}
