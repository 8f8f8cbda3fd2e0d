//! `show`: everything about one instance except its events.

use clap::Args;
use duroxide::{Client, Event, EventKind, ExecutionInfo, InstanceInfo, OrchestrationStatus};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

use super::instance;
use crate::{
    command::Context,
    exit::{Exit, Outcome},
    output::{Answer, Line, Output, Table, Text, Tone, clean},
    selection::Ids,
    store::Store,
    time::{age, iso, now_ms},
};

/// Maximum number of executions shown, the newest ones.
const EXECUTIONS_MAX: usize = 10;

/// `show`
#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    ids: Ids,
}

impl Show {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let mut all = Vec::new();
        for id in self.ids.read()? {
            all.push(Portrait::read(&store, &id).await?);
        }
        let out = &context.out;
        let json = match all.as_slice() {
            [one] => one.to_json(),
            many => many.iter().map(Portrait::to_json).collect(),
        };
        let text = all.iter().fold(Text::default(), |text, one| one.describe(text, out, now_ms()));
        let ids = all.iter().map(|one| one.info.instance_id.clone()).collect();
        out.print(&Answer { text, json, ids })?;
        Ok(Exit::Done)
    }
}

/// The data that `show` reads about an instance.
struct Portrait {
    info: InstanceInfo,
    input: Option<String>,
    pinned: Option<String>,
    custom_status: Option<String>,
    executions: Vec<ExecutionInfo>,
    executions_total: usize,
    children: usize,
    key_values: BTreeMap<String, String>,
}

impl Portrait {
    async fn read(store: &Store, id: &str) -> Outcome<Self> {
        let client = &store.client;
        let info = store.instance(id).await?;
        let numbers = client.list_executions(id).await?;
        let mut executions = Vec::new();
        for number in numbers.iter().rev().take(EXECUTIONS_MAX) {
            executions.push(client.get_execution_info(id, *number).await?);
        }
        let start = first_event(client, id, info.current_execution_id).await?;
        Ok(Self {
            input: start.as_ref().and_then(input_of),
            pinned: start.map(|start| start.duroxide_version),
            custom_status: custom_status(client.get_orchestration_status(id).await?),
            executions,
            executions_total: numbers.len(),
            children: store.admin()?.list_children(id).await?.len(),
            key_values: client.get_kv_all_values(id).await?.into_iter().collect(),
            info,
        })
    }

    fn to_json(&self) -> Value {
        let mut json = instance::to_json(&self.info);
        let rest = json!({
            "input": self.input,
            "pinned": self.pinned,
            "custom_status": self.custom_status,
            "children": self.children,
            "executions_total": self.executions_total,
            "executions": self.executions.iter().map(execution_json).collect::<Vec<_>>(),
            "key_values": self.key_values,
        });
        let fields = |value: Value| value.as_object().cloned().unwrap_or_else(Map::new);
        if let Some(json) = json.as_object_mut() {
            json.extend(fields(rest));
        }
        json
    }

    fn describe(&self, text: Text, out: &Output, now_ms: u64) -> Text {
        let info = &self.info;
        let field =
            |name: &str, value: String| Line::toned(Tone::Dim, format!("{name:<14}")).and(Tone::Plain, value);
        let payload =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| field(name, out.payload(value)));
        let when = |at| format!("{} ({} ago)", iso(at), age(at, now_ms));
        let plain =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| field(name, clean(value)));
        let name = format!("{} {}", clean(&info.orchestration_name), clean(&info.orchestration_version));
        let status = Line::toned(Tone::Dim, format!("{:<14}", "status"))
            .and(Tone::of_status(&info.status), info.status.clone());
        let lines = [
            Some(Line::toned(Tone::Strong, clean(&info.instance_id))),
            Some(status),
            Some(field("orchestration", name)),
            plain("pinned to", &self.pinned.as_ref().map(|version| format!("duroxide {version}"))),
            Some(field("created", when(info.created_at))),
            Some(field("last changed", when(info.updated_at))),
            plain("parent", &info.parent_instance_id),
            (self.children > 0).then(|| field("children", format!("{} (see `tree`)", self.children))),
            payload("custom status", &self.custom_status),
            payload("input", &self.input),
            payload("output", &info.output),
        ];
        let text = text.lines(lines.into_iter().flatten()).line("");
        let text = self.describe_executions(text, now_ms);
        self.key_values.iter().fold(text, |text, (key, value)| {
            text.line(Line::new(format!("{} = {}", clean(key), out.payload(value))))
        })
    }

    fn describe_executions(&self, text: Text, now_ms: u64) -> Text {
        let mut table = Table::new(["EXECUTION", "STATUS", "BEGAN", "TOOK", "EVENTS"]);
        for execution in &self.executions {
            let end = execution.completed_at.unwrap_or(now_ms);
            table.row([
                execution.execution_id.to_string().into(),
                Line::toned(Tone::of_status(&execution.status), execution.status.clone()),
                iso(execution.started_at).into(),
                age(execution.started_at, end).into(),
                execution.event_count.to_string().into(),
            ]);
        }
        let text = text.table(&table, "no node has begun it: `explain` says why");
        match self.executions_total.saturating_sub(self.executions.len()) {
            0 => text,
            more => text.line(Line::toned(Tone::Dim, format!("and {more} older executions"))),
        }
    }
}

async fn first_event(client: &Client, id: &str, execution_id: u64) -> Outcome<Option<Event>> {
    // An undecodable history is shown by `history --raw`; everything else can be shown here all the same.
    let events = client.read_execution_history(id, execution_id).await.unwrap_or_default();
    Ok(events.into_iter().next())
}

fn input_of(event: &Event) -> Option<String> {
    let EventKind::OrchestrationStarted { input, .. } = &event.kind else { return None };
    Some(input.clone())
}

fn custom_status(status: OrchestrationStatus) -> Option<String> {
    match status {
        OrchestrationStatus::NotFound => None,
        OrchestrationStatus::Running { custom_status, .. }
        | OrchestrationStatus::Completed { custom_status, .. }
        | OrchestrationStatus::Failed { custom_status, .. } => custom_status,
    }
}

fn execution_json(execution: &ExecutionInfo) -> Value {
    json!({
        "execution": execution.execution_id,
        "status": execution.status,
        "began_at": iso(execution.started_at),
        "ended_at": execution.completed_at.map(iso),
        "events": execution.event_count,
        "output": execution.output,
    })
}
