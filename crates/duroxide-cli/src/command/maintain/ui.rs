//! `ui`: the web console on loopback.

use clap::Args;
use duroxide_ui::{ServeOptions, serve};
use serde_json::json;

use crate::{
    command::Context,
    exit::{Exit, Failure, Outcome},
    output::{Answer, Text},
    store::Access,
};

/// `ui`
#[derive(Debug, Args)]
pub struct Ui {
    /// The port on 127.0.0.1; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Refuse all changes
    #[arg(long)]
    read_only: bool,
}

impl Ui {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let access = if self.read_only { Access::Read } else { Access::Write };
        let store = context.open(access).await?;
        let mut options = ServeOptions::default();
        (options.port, options.read_only) = (self.port, self.read_only);
        let served = serve(store.client.clone(), &options).await;
        let served = served.map_err(|error| Failure::failed(error.to_string()))?;
        context.out.print(&answer(served.link()))?;
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Ok(Exit::Done),
            ended = served.wait() => {
                ended.map_err(|error| Failure::failed(format!("the console ended: {error}")))?;
                Ok(Exit::Done)
            }
        }
    }
}

/// The link in every output format. Anyone who has the link can open the console with it, once.
fn answer(link: &str) -> Answer {
    let text = Text::default()
        .line(link.to_owned())
        .line("The link works once, on this machine. Ctrl-C ends the console.".to_owned());
    Answer { text, json: json!({ "link": link }), ids: vec![link.to_owned()] }
}
