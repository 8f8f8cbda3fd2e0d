//! kill -9 while a mix of workflows runs.

use std::time::Duration;

use duroxide::Client;
use duroxide_provider::store::{InstanceSnapshot, StoreSnapshot};

use crate::{
    fixture::{File, notes::Notes, process::Process},
    mix,
    seeded_random::Luck,
    sound::{assert_finished, assert_sound, instance},
};

const COPIES: usize = 8;
const KILLS: usize = 20;
const SEED: u64 = 42;

/// S4.1, S4.2, S4.8 to S4.11, S4.16, S4.17, S4.20, S4.39, I10, I18: a worker is killed after some activity and a little
/// more, again and again. After each kill the store is sound; in the end everything was done, and recorded once.
#[tokio::test]
async fn kills_at_any_moment_lose_nothing_and_repeat_nothing() {
    let file = File::new();
    let client = Client::new(file.open().await);
    let notes = Notes::new(file.folder(), "notes");
    let mut luck = Luck::new(SEED);
    mix::start(&client, COPIES).await;

    let mut kills_at_work = 0;
    for _ in 0..KILLS {
        let worker = Process::start("worker", file.folder(), "");
        let enough = notes.lines().len() + 1 + luck.below(8) as usize;
        // Late in the run there may be too little left to do.
        tokio::select! {
            () = notes.reach(enough) => {}
            () = mix::completed(&client, COPIES) => {}
        }
        tokio::time::sleep(Duration::from_micros(luck.below(8_000))).await;
        worker.kill();
        let snapshot = file.snapshot();
        assert_sound(&snapshot);
        kills_at_work += usize::from(has_locks(&snapshot));
    }
    assert!(kills_at_work > KILLS / 2, "only {kills_at_work} kills met a worker that held something");

    let worker = Process::start("worker", file.folder(), "");
    mix::completed(&client, COPIES).await;
    worker.kill();
    let snapshot = file.snapshot();
    assert_finished(&snapshot);
    for copy in 0..COPIES {
        let again = instance(&snapshot, &format!("Again-{copy}"));
        assert_eq!(again.executions.len(), 5, "one activity per execution, and one that returns");
        let family = format!("Family-{copy}");
        let children = snapshot.instances.iter().filter(|child| child.parent.as_deref() == Some(&*family));
        assert_eq!(children.count(), 2, "I17: each child exists once");
    }
}

fn has_locks(snapshot: &StoreSnapshot) -> bool {
    let locked = |instance: &InstanceSnapshot| {
        instance.lock.is_some() || instance.activities.iter().any(|activity| activity.lock.is_some())
    };
    snapshot.instances.iter().any(locked)
}
