//! One of three processes is killed, and the others take over its claims.

use std::time::Instant;

use super::{
    super::{node::Node, outcome::Outcome, process::Sibling, scratch::Scratch, setting::Setting},
    batch,
};

/// One of three processes is killed with all activities in flight: how long until the others have run all of them.
#[derive(Debug, clap::Args)]
pub struct Takeover {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances, each with one activity in flight.
    #[arg(long, default_value_t = 1_000)]
    instances: u64,
}

impl Takeover {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let mut all = self.setting.clone();
        all.slots = Some(self.instances as usize);
        let mut args = all.sibling_args("victim", scratch);
        args.extend(["--instances".to_owned(), self.instances.to_string()]);
        let victim = Sibling::start(&args)?;
        let _helper = Sibling::start(&all.sibling_args("helper", scratch))?;
        let node = Node::start(&all, &scratch.file()).await?;
        victim.kill()?;

        let begin = Instant::now();
        let outcome = batch(self.instances).outcome(&node.client, begin, self.setting.limit()).await;
        node.stop().await;
        Ok(outcome)
    }
}
