//! `tree`: an instance with its children.

mod layout;

use std::collections::BTreeMap;

use clap::Args;
use duroxide::InstanceInfo;
use serde_json::{Value, json};

use super::instance;
use crate::{
    command::Context,
    exit::{Exit, Outcome},
    output::{Answer, Line, Text, Tone, clean},
    store::Store,
    time::{age, now_ms},
};

/// `tree`
#[derive(Debug, Args)]
pub struct Tree {
    /// The instance
    instance: String,
    /// Begin at the root that the instance belongs to
    #[arg(long)]
    root: bool,
    /// At most this many instances
    #[arg(long, default_value_t = 1_000)]
    limit: usize,
}

impl Tree {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let top = self.top(&store).await?;
        let ids = match top.status == duroxide::InstanceQuery::PENDING {
            true => vec![top.instance_id.clone()],
            false => store.client.get_instance_tree(&top.instance_id).await?.all_ids,
        };
        let mut infos = Vec::new();
        for id in ids.iter().take(self.limit.max(1)) {
            infos.push(store.instance(id).await?);
        }
        context.out.print(&answer(&top, &infos, ids.len() - infos.len()))?;
        Ok(Exit::Done)
    }

    async fn top(&self, store: &Store) -> Outcome<InstanceInfo> {
        let mut top = store.instance(&self.instance).await?;
        while let (true, Some(parent)) = (self.root, &top.parent_instance_id) {
            // An older release could delete a parent alone, which left its children as roots.
            let Ok(parent) = store.instance(parent).await else { break };
            top = parent;
        }
        Ok(top)
    }
}

fn answer(top: &InstanceInfo, infos: &[InstanceInfo], left_out: usize) -> Answer {
    let by_id: BTreeMap<&str, &InstanceInfo> =
        infos.iter().map(|info| (info.instance_id.as_str(), info)).collect();
    let children: Vec<(&str, &str)> = infos
        .iter()
        .filter(|info| info.instance_id != top.instance_id)
        .filter_map(|info| Some((info.parent_instance_id.as_deref()?, info.instance_id.as_str())))
        .collect();
    let now_ms = now_ms();
    let mut text = Text::default();
    if let Some(parent) = &top.parent_instance_id {
        text = text.line(Line::toned(Tone::Dim, format!("child of {} (--root begins there)", clean(parent))));
    }
    for (branch, id) in layout::lay_out(&top.instance_id, &children) {
        let line = by_id.get(id).map(|info| describe(&branch, info, now_ms));
        text = text.lines(line);
    }
    if left_out > 0 {
        text = text.line(Line::toned(Tone::Dim, format!("and {left_out} more (--limit)")));
    }
    Answer {
        text,
        json: json!({
            "root": top.instance_id,
            "instances": infos.iter().map(instance::to_json).collect::<Vec<Value>>(),
            "left_out": left_out,
        }),
        ids: infos.iter().map(|info| info.instance_id.clone()).collect(),
    }
}

fn describe(branch: &str, info: &InstanceInfo, now_ms: u64) -> Line {
    let name = format!("  {} {}  ", clean(&info.orchestration_name), clean(&info.orchestration_version));
    Line::toned(Tone::Dim, branch)
        .and(Tone::Strong, clean(&info.instance_id))
        .and(Tone::Plain, name)
        .and(Tone::of_status(&info.status), info.status.clone())
        .and(Tone::Dim, format!("  changed {} ago", age(info.updated_at, now_ms)))
}
