//! Sessions: activities of one session run on one worker, where the first of them has loaded its data.
//!
//! Here two runtimes share a store, as two machines would. Each keeps its loaded data in a memory of its own, so a
//! question to the other runtime would find no data. If a worker dies, another takes its sessions over: code that
//! must not fail then loads again.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use duroxide::prelude::*;

async fn study(ctx: OrchestrationContext, book: String) -> Result<String, String> {
    let session = format!("reading {book}");
    ctx.schedule_activity_on_session("Load", book.as_str(), session.as_str()).await?;
    let questions = (1..=4).map(|line| {
        ctx.schedule_activity_on_session_typed::<_, String>("Ask", &(&book, line), session.as_str())
    });
    let answers: Result<Vec<String>, String> = ctx.join(questions.collect()).await.into_iter().collect();
    Ok(answers?.join(", "))
}

/// The activities of one machine.
fn activities() -> ActivityRegistry {
    let memory: Arc<Mutex<HashMap<String, Vec<String>>>> = Arc::default();
    let loaded = memory.clone();
    ActivityRegistry::builder()
        .register("Load", move |_ctx, book: String| {
            let lines = (1..=4).map(|line| format!("{book} {line}")).collect();
            loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(book, lines);
            async { Ok(String::new()) }
        })
        .register_typed("Ask", move |_ctx, (book, line): (String, usize)| {
            let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            let answer = memory.get(&book).and_then(|lines| lines.get(line - 1)).cloned();
            async move { answer.ok_or(format!("{book} is not loaded here")) }
        })
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let mut runtimes = Vec::new();
    for machine in ["machine-a", "machine-b"] {
        let orchestrations = OrchestrationRegistry::builder().register("Study", study).build();
        // With a node id, all slots of the machine share its sessions; without, each slot has its own.
        let options = RuntimeOptions { worker_node_id: Some(machine.into()), ..Default::default() };
        runtimes
            .push(Runtime::start_with_options(store.clone(), activities(), orchestrations, options).await);
    }

    let client = Client::new(store);
    let books = ["Emma", "Ulysses", "Walden", "Dracula", "Middlemarch"];
    for book in books {
        client.start_orchestration(book, "Study", book).await?;
    }
    for book in books {
        let answers: String = client.wait_for_orchestration_typed(book, Duration::from_secs(30)).await??;
        println!("{answers}");
    }

    for runtime in runtimes {
        runtime.shutdown(None).await;
    }
    Ok(())
}
