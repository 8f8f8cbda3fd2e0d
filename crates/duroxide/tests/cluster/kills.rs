//! kill -9 of one of three workers, again and again, while a mix of workflows runs.

pub mod by_a_turn;

use std::{collections::BTreeSet, path::Path, time::Duration};

use duroxide::{Client, EventKind};
use duroxide_provider::store::StoreSnapshot;

use crate::{
    fixture::{node, process::Process},
    luck::Luck,
    mix,
    schema::{Schema, notes_in, open_in},
    sound::{assert_finished, assert_sound, events, instance},
};

const WORKERS: usize = 3;
const COPIES: usize = 12;
const KILLS: usize = 9;
const SEED: u64 = 7;
/// At least this many kills hit a worker while instances were running.
const KILLS_AT_WORK_MIN: usize = 5;

/// The role of a worker process: it works until it is killed.
pub async fn work(folder: &Path) {
    let store = open_in(folder).await;
    let activities = mix::activities(&notes_in(folder));
    let _runtime = node(&store, activities, mix::orchestrations(), mix::options()).await;
    std::future::pending::<()>().await;
}

/// S4.1, S4.2, S4.39, I05, I10, I17, I18: the workers are killed in turn, each after some activity and a little more, and
/// replaced at once. After each kill the store is sound; in the end everything was done, and recorded once.
#[tokio::test]
async fn kills_among_three_processes_lose_nothing_and_repeat_nothing() {
    let Some(schema) = Schema::new() else { return };
    let client = Client::new(schema.open().await);
    let notes = schema.notes();
    let mut luck = Luck::new(SEED);
    mix::start(&client, COPIES).await;
    let mut workers: Vec<Process> =
        (0..WORKERS).map(|_| Process::start("worker", schema.folder(), "")).collect();

    let mut at_work = 0;
    for _ in 0..KILLS {
        let enough = notes.lines().len() + 1 + luck.below(12) as usize;
        // Late in the run there may be too little left to do.
        tokio::select! {
            () = schema.reach_notes(enough) => {}
            () = mix::completed(&client, COPIES) => {}
        }
        tokio::time::sleep(Duration::from_micros(luck.below(8_000))).await;
        workers.remove(0).kill();
        let snapshot = schema.snapshot();
        assert_sound(&snapshot);
        at_work += usize::from(is_running(&snapshot));
        workers.push(Process::start("worker", schema.folder(), ""));
    }

    println!("{at_work} of {KILLS} kills while instances were running");
    assert!(at_work >= KILLS_AT_WORK_MIN, "{at_work} of {KILLS} kills while instances were running");
    mix::completed(&client, COPIES).await;
    workers.into_iter().for_each(Process::kill);
    let snapshot = schema.snapshot();
    assert_finished(&snapshot);
    assert_ran_at_least_once(&snapshot, &notes.lines(), COPIES);
    for copy in 0..COPIES {
        let again = instance(&snapshot, &format!("Again-{copy}"));
        assert_eq!(again.executions.len(), 5, "one activity per execution, and one that returns");
        let family = format!("Family-{copy}");
        let children = snapshot.instances.iter().filter(|child| child.parent.as_deref() == Some(&*family));
        assert_eq!(children.count(), 2, "I17: each child exists once");
    }
}

/// Whether an instance has begun and has not ended.
fn is_running(snapshot: &StoreSnapshot) -> bool {
    let last = snapshot.instances.iter().filter_map(|instance| instance.executions.last());
    last.into_iter().any(|execution| execution.status == "Running" && !execution.events.is_empty())
}

/// Activities recorded as done have run: the workers' own notes show it.
pub fn assert_ran_at_least_once(snapshot: &StoreSnapshot, notes: &[String], copies: usize) {
    let ran: BTreeSet<&str> = notes.iter().map(String::as_str).collect();
    let mut scheduled = 0;
    for instance in &snapshot.instances {
        for event in instance.executions.iter().flat_map(events) {
            if let EventKind::ActivityScheduled { input, .. } = &event.kind {
                scheduled += 1;
                let note = format!("{} {input}", instance.instance);
                assert!(ran.contains(note.as_str()), "{note} is recorded and never ran");
            }
        }
    }
    assert_eq!(scheduled, copies * (4 + 5 + 2 + 8 + 4));
    println!("{} runs of {scheduled} activities", notes.len());
}
