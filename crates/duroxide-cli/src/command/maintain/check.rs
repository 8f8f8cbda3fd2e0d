//! `check`: the guarantees of a store, over its whole content.

use clap::Args;
use duroxide_provider::invariant::{self, Violation};
use serde_json::{Value, json};

use crate::{
    command::Context,
    exit::{Exit, Outcome},
    output::{Answer, Line, Table, Text, Tone, clean},
};

/// `check`
#[derive(Debug, Args)]
pub struct Check {}

impl Check {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let snapshot = store.snapshot().await?;
        let violations = invariant::check(&snapshot);
        context.out.print(&answer(snapshot.instances.len(), &violations))?;
        Ok(if violations.is_empty() { Exit::Done } else { Exit::Failed })
    }
}

fn answer(instances: usize, violations: &[Violation]) -> Answer {
    let mut table = Table::new(["GUARANTEE", "INSTANCE", "FOUND"]);
    for Violation { invariant, instance, detail } in violations {
        table.row([Line::toned(Tone::Bad, *invariant), clean(instance).into(), clean(detail).into()]);
    }
    let summary = format!("{instances} instances checked, {} guarantees broken", violations.len());
    let text = match violations.is_empty() {
        true => Text::default(),
        false => Text::default().table(&table, ""),
    };
    Answer {
        text: text.line(summary),
        json: json!({ "instances": instances, "violations": violations.iter().map(to_json).collect::<Vec<_>>() }),
        ids: violations.iter().map(|violation| violation.instance.clone()).collect(),
    }
}

fn to_json(violation: &Violation) -> Value {
    json!({
        "guarantee": violation.invariant,
        "instance": violation.instance,
        "found": violation.detail,
    })
}
