//! The journal and the recorded histories in one list, ordered by time.

use std::{error::Error, fmt};

use duroxide::prelude::*;

use crate::{
    INSTANCE,
    journal::{Entry, Journal},
};

pub(crate) struct Timeline {
    /// The lines of the journal.
    pub(crate) journal: Vec<Entry>,
    /// The recorded events, of the order and then of its child.
    pub(crate) histories: Vec<Vec<Event>>,
}

impl Timeline {
    pub(crate) async fn collect(journal: &Journal, client: &Client) -> Result<Self, Box<dyn Error>> {
        let mut histories = Vec::new();
        for instance in client.get_instance_tree(INSTANCE).await?.all_ids {
            histories.push(client.read_execution_history(&instance, 1).await?);
        }
        Ok(Self { journal: journal.entries()?, histories })
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.histories.iter().flatten()
    }

    fn lines(&self) -> Vec<(u64, String)> {
        let acts = self.journal.iter().map(|entry| {
            let Entry { at_ms, who, what, detail } = entry;
            (*at_ms, format!("{who:<9} {what} {detail}"))
        });
        let records = self.events().filter_map(|event| Some((event.timestamp_ms, recorded(event)?)));
        let mut lines: Vec<_> = acts.chain(records).collect();
        lines.sort_by_key(|(at_ms, _)| *at_ms);
        lines
    }
}

/// Prints the recorded steps and, between them, the runs of activities.
impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines();
        let begin = lines.first().map_or(0, |(at_ms, _)| *at_ms);
        for (at_ms, line) in lines {
            writeln!(f, "{:>6} ms  {line}", at_ms - begin)?;
        }
        Ok(())
    }
}

/// A line for the events that tell the story; schedules show up in the journal as runs.
fn recorded(event: &Event) -> Option<String> {
    let text = match &event.kind {
        EventKind::OrchestrationStarted { name, .. } => format!("{name} started"),
        EventKind::ActivityCompleted { result } => format!("result: {result}"),
        EventKind::ActivityFailed { details } => format!("failure: {}", details.display_message()),
        EventKind::TimerCreated { .. } => "timer set".into(),
        EventKind::TimerFired { .. } => "timer fired".into(),
        EventKind::ExternalSubscribed { name } => format!("waiting for {name}"),
        EventKind::ExternalEvent { name, data } => format!("{name}: {data}"),
        EventKind::SubOrchestrationScheduled { name, .. } => format!("child {name} called"),
        EventKind::SubOrchestrationCompleted { result } => format!("child result: {result}"),
        EventKind::OrchestrationCompleted { .. } => "completed".into(),
        _ => return None,
    };
    Some(format!("recorded  [{} #{}] {text}", event.instance_id, event.event_id))
}
