//! Several processes work on one store.

use std::{
    io::{self, Read},
    path::PathBuf,
};

use super::{
    hello,
    node::Node,
    outcome::Outcome,
    process::{READY, Sibling},
    scratch::Scratch,
    setting::Setting,
};

/// One activity per instance, all at once, with several processes on one store.
#[derive(Debug, clap::Args)]
pub struct TwoProcesses {
    #[command(flatten)]
    pub setting: Setting,
    /// How many instances.
    #[arg(long, default_value_t = 2_000)]
    instances: u64,
    /// How many processes, this one included.
    #[arg(long, default_value_t = 2)]
    processes: usize,
}

impl TwoProcesses {
    pub async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        let helper = |_| Sibling::start(&self.setting.sibling_args("helper", scratch));
        let _helpers: Vec<Sibling> = (1..self.processes).map(helper).collect::<Result<_, _>>()?;
        let node = Node::start(&self.setting, &scratch.file()).await?;
        let outcome = hello::greetings(self.instances).run(&node.client, self.setting.limit()).await;
        node.stop().await;
        Ok(outcome)
    }
}

/// Another process (started by `two-processes` and others).
#[derive(Debug, clap::Args)]
pub struct Helper {
    #[command(flatten)]
    pub setting: Setting,
    /// The database file.
    #[arg(long)]
    file: PathBuf,
}

impl Helper {
    /// Works until the process that started it has ended.
    pub async fn run(&self) -> Result<Outcome, String> {
        let node = Node::start(&self.setting, &self.file).await?;
        println!("{READY}");
        let end = tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new()));
        end.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        node.stop().await;
        Ok(Outcome::default())
    }
}
