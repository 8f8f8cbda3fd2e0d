//! B15: two processes with session activities on one store.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
    runtime::registry::ActivityRegistry,
};

use crate::fixture::{File, ended, node, notes::Notes, open_in, output, process::Process, quick_options};

const INSTANCES: usize = 24;
const SESSIONS: usize = 6;
const VISITS: usize = 4;

/// The role of a worker process.
pub async fn work(folder: &Path) {
    let store = open_in(folder).await;
    let notes = Notes::new(folder, "visits");
    let activities = ActivityRegistry::builder()
        .register("Visit", move |ctx: ActivityContext, input: String| {
            let (notes, session) = (notes.clone(), ctx.session_id().unwrap_or("none").to_owned());
            let owner = ctx.worker_id().to_owned();
            async move {
                notes.add(format!("begin {session} {owner}"));
                // Long enough that two at once would show.
                tokio::time::sleep(Duration::from_millis(5)).await;
                notes.add(format!("end {session} {owner}"));
                Ok(input)
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Visits", visits).build();
    let options = RuntimeOptions { orchestration_concurrency: 4, worker_concurrency: 4, ..quick_options() };
    let _runtime = node(&store, activities, orchestrations, options).await;
    std::future::pending::<()>().await;
}

async fn visits(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    for _ in 0..VISITS {
        ctx.schedule_activity_on_session("Visit", "", session.clone()).await?;
    }
    Ok(session)
}

/// B15, 13.1, 21.3: at no time do two owners run the same session, and no owner has the name of another.
#[tokio::test]
async fn a_session_never_has_two_owners() {
    let file = File::new();
    let client = Client::new(file.open().await);
    let workers = ["one", "two"].map(|name| Process::start("session worker", file.folder(), name));
    for number in 0..INSTANCES {
        let session = format!("s{}", number % SESSIONS);
        client.start_orchestration(format!("i-{number}"), "Visits", session).await.unwrap();
    }
    for number in 0..INSTANCES {
        assert_eq!(output(ended(&client, &format!("i-{number}")).await), format!("s{}", number % SESSIONS));
    }
    for worker in workers {
        worker.kill();
    }

    let mut running: BTreeMap<String, String> = BTreeMap::new();
    let mut owners = BTreeSet::new();
    let lines = Notes::new(file.folder(), "visits").lines();
    assert_eq!(lines.len(), 2 * INSTANCES * VISITS, "each ran once");
    for line in lines {
        let parts: Vec<&str> = line.split(' ').collect();
        let [what, session, owner] = parts[..] else { panic!("{line}") };
        owners.insert(owner.to_owned());
        if what == "begin" {
            let other = running.insert(session.to_owned(), owner.to_owned());
            assert_eq!(other, None, "{owner} runs session {session} beside another");
        } else {
            assert_eq!(running.remove(session).as_deref(), Some(owner));
        }
    }
    let runtimes: BTreeSet<&str> =
        owners.iter().map(|owner| owner.splitn(3, '-').nth(2).expect("work-slot-id")).collect();
    assert!(runtimes.iter().all(|id| id.len() >= 32), "122 random bits at least: {runtimes:?}");
}
