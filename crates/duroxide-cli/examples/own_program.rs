//! A program with handlers that has the command line as a subcommand.
//!
//! ```text
//! cargo run -p duroxide-cli --example own_program -- serve
//! cargo run -p duroxide-cli --example own_program -- admin --store sqlite:shop.db list
//! ```
//!
//! Without arguments the program runs both, on a store of its own.

use std::{error::Error, process::ExitCode, sync::Arc};

use clap::{Parser, Subcommand};
use duroxide::{prelude::*, typed::Handlers};

#[duroxide::orchestration]
async fn order(ctx: OrchestrationContext, _item: String) -> Result<String, String> {
    let by: String = ctx.schedule_wait_typed("approval").await;
    Ok(format!("shipped, approved by {by}"))
}

/// One list of handlers serves the node and `verify`.
fn handlers() -> Handlers {
    Handlers::new().orchestration::<order>()
}

#[derive(Debug, Parser)]
#[command(name = "shop")]
struct Shop {
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run a node on a store until it is interrupted
    Serve {
        #[arg(long, default_value = "sqlite:shop.db")]
        store: String,
    },
    /// Look into the store and steer its instances
    Admin(duroxide_cli::Cli),
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    match Shop::parse().task {
        Some(Task::Serve { store }) => {
            let runtime = start(Arc::new(SqliteProvider::new(&store, None).await?)).await?;
            tokio::signal::ctrl_c().await?;
            runtime.shutdown(None).await;
            Ok(ExitCode::SUCCESS)
        }
        Some(Task::Admin(cli)) => Ok(duroxide_cli::run(cli, handlers()).await.into()),
        None => show().await,
    }
}

async fn start(store: Arc<SqliteProvider>) -> Result<Arc<Runtime>, Box<dyn Error>> {
    Ok(Runtime::builder(store).handlers(handlers()).build().await?)
}

/// Runs a node and the commands that an operator would type.
async fn show() -> Result<ExitCode, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("duroxide-own-program-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let url = format!("sqlite:{}", folder.join("shop.db").display());
    let store = Arc::new(SqliteProvider::new(&url, None).await?);
    let runtime = start(store.clone()).await?;
    let client = Client::new(store);
    let handle = client.start::<order>("order-1", "teapot".to_owned()).await?;
    while client.get_orchestration_stats("order-1").await?.is_none_or(|stats| stats.history_event_count < 2) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    admin(&url, &["list", "-o", "ids"]).await?;
    println!("$ shop admin explain order-1");
    println!("order-1 {}", first_reason(&client).await?);
    admin(&url, &["verify"]).await?;
    admin(&url, &["raise", "order-1", "approval", "\"Ada\""]).await?;
    println!("order-1: {}", handle.result().await??);
    let exit = admin(&url, &["show", "nobody"]).await?;
    println!("exit code {}", exit.code());
    runtime.shutdown(None).await;
    std::fs::remove_dir_all(&folder)?;
    Ok(ExitCode::SUCCESS)
}

async fn admin(url: &str, args: &[&str]) -> Result<duroxide_cli::Exit, Box<dyn Error>> {
    let typed: Vec<String> = args
        .iter()
        .map(|arg| if arg.contains('"') { format!("'{arg}'") } else { (*arg).to_owned() })
        .collect();
    println!("$ shop admin {}", typed.join(" "));
    let line = ["shop", "admin", "--store", url].into_iter().chain(args.iter().copied());
    let Some(Task::Admin(cli)) = Shop::try_parse_from(line)?.task else { return Err("no command".into()) };
    Ok(duroxide_cli::run(cli, handlers()).await)
}

/// The first reason of `explain`, without the time, which differs from run to run.
async fn first_reason(client: &Client) -> Result<String, ClientError> {
    let lines = client.explain("order-1").await?.lines();
    let first = lines.first().cloned().unwrap_or_default();
    Ok(first.split(" since ").next().unwrap_or_default().to_owned())
}
