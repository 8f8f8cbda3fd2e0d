//! `explain`: why an instance does not move.

mod next;

use clap::Args;
use duroxide::Explanation;
use serde_json::{Value, json};

use crate::{
    command::Context,
    exit::{Exit, Failure, Outcome},
    output::{Answer, Line, Text, Tone, clean, note},
    selection::Ids,
};

/// `explain`
#[derive(Debug, Args)]
pub struct Explain {
    #[command(flatten)]
    ids: Ids,
}

impl Explain {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let ids = self.ids.read()?;
        let store = context.reader().await?;
        let (mut found, mut exit) = (Vec::new(), Exit::Done);
        for id in &ids {
            match store.client.explain(id).await.map_err(Failure::from) {
                Ok(explanation) => found.push(explanation),
                // The remaining instances are explained all the same.
                Err(failure) => {
                    note(&format!("error: {failure}"));
                    exit = failure.exit;
                }
            }
        }
        if !found.is_empty() {
            context.out.print(&answer(&found))?;
        }
        Ok(exit)
    }
}

fn answer(found: &[Explanation]) -> Answer {
    Answer {
        text: found.iter().fold(Text::default(), describe),
        json: match found {
            [one] => json!(one),
            many => many.iter().map(|one| json!(one)).collect::<Value>(),
        },
        ids: found.iter().map(|one| one.instance.clone()).collect(),
    }
}

fn describe(text: Text, found: &Explanation) -> Text {
    let Explanation { instance, name, version, status, execution_id, .. } = found;
    let heading = Line::toned(Tone::Strong, clean(instance))
        .and(Tone::Plain, format!("  {} {}, execution {execution_id}: ", clean(name), clean(version)))
        .and(Tone::of_status(status), clean(status));
    let sentences = found.lines().into_iter().map(|line| Line::new(format!("  {}", clean(&line))));
    let next = next::next_command(found);
    let next = next.map(|command| Line::toned(Tone::Dim, format!("  next: `{}`", clean(&command))));
    text.line(heading).lines(sentences).lines(next)
}
