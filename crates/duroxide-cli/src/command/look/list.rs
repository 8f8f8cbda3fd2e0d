//! `list`: instances, newest first, page by page.

use clap::Args;
use duroxide::{InstanceInfo, InstanceQuery};
use serde_json::{Value, json};

use super::instance;
use crate::{
    command::Context,
    exit::{Exit, Outcome},
    output::{Answer, Format, Text, note},
    selection::Filter,
    time::now_ms,
};

/// `list`
#[derive(Debug, Args)]
pub struct List {
    /// At most this many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Begin behind the page whose end has this cursor
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    #[command(flatten)]
    filter: Filter,
}

impl List {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let mut query = self.filter.query();
        query.cursor = self.after.clone();
        let mut left = if self.all { usize::MAX } else { self.limit as usize };
        let (mut listed, mut printed) = (Vec::new(), false);
        loop {
            // The store limits the size of a page.
            let page_size = u32::try_from(left).unwrap_or(u32::MAX).min(InstanceQuery::MAX_LIMIT);
            let page = store.client.query_instances(&query.clone().limit(page_size)).await?;
            left -= page.instances.len().min(left);
            let is_last = left == 0 || page.next.is_none();
            // Text and ids are printed page by page; JSON is one document.
            listed.extend(page.instances);
            let is_due = context.out.format != Format::Json && !listed.is_empty();
            if is_due || (is_last && !(printed && listed.is_empty())) {
                context.out.print(&answer(&listed, page.next.as_deref()))?;
                listed.clear();
                printed = true;
            }
            match page.next {
                Some(next) if is_last => {
                    note(&format!("there are more: --after {next} shows the next, --all everything"));
                    return Ok(Exit::Done);
                }
                Some(next) => query = query.after(next),
                None => return Ok(Exit::Done),
            }
        }
    }
}

fn answer(instances: &[InstanceInfo], next: Option<&str>) -> Answer {
    Answer {
        text: Text::default().table(&instance::table(instances, now_ms()), "no instances"),
        json: json!({
            "instances": instances.iter().map(instance::to_json).collect::<Vec<Value>>(),
            "next": next,
        }),
        ids: instances.iter().map(|info| info.instance_id.clone()).collect(),
    }
}
