//! Clients that get `Ok` and are then killed, and a reader that is killed while it reads.

use std::{collections::BTreeSet, path::Path, time::Duration};

use duroxide::{Client, OrchestrationContext, OrchestrationRegistry, runtime::registry::ActivityRegistry};

use crate::{
    fixture::{File, ended, node, notes::Notes, open_in, output, process::Process, recorded},
    mix,
    seeded_random::Luck,
    sound::{assert_finished, assert_sound, instance},
};

const CLIENTS: [&str; 2] = ["ann", "bob"];
const MESSAGES: usize = 60;
const KILLS: usize = 16;
const SEED: u64 = 7;

/// The role of a client process: it sends numbered messages, now and then starts an instance, and notes each call that
/// was acknowledged. After a kill it goes on after the last one that it had written down.
pub async fn send(folder: &Path, name: &str) {
    let client = Client::new(open_in(folder).await);
    let acknowledged = Notes::new(folder, name);
    let lives = Notes::new(folder, &format!("{name}-lives"));
    lives.add("begun");
    let life = lives.lines().len();
    for number in acknowledged.lines().len()..MESSAGES {
        if number % 10 == 0 {
            client.start_orchestration(format!("{name}-{number}"), "Echo", "x").await.unwrap();
        }
        // The number of the process distinguishes a message from its repetition after a kill.
        let message = format!("{name} {number} {life}");
        client.enqueue_event("reader", "q", &message).await.unwrap();
        acknowledged.add(message);
        // It is to be at work still when it is killed.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The role of a reader process.
pub async fn work(folder: &Path) {
    let store = open_in(folder).await;
    let orchestrations = OrchestrationRegistry::builder()
        .register("Echo", |_ctx: OrchestrationContext, input: String| async move { Ok(input) })
        .register_typed("Reader", reader)
        .build();
    let _runtime = node(&store, ActivityRegistry::default(), orchestrations, mix::options()).await;
    std::future::pending::<()>().await;
}

/// Reads one message per execution.
async fn reader(ctx: OrchestrationContext, mut read: Vec<String>) -> Result<String, String> {
    let message = ctx.dequeue_event("q").await;
    if message == "end" {
        return Ok(read.join("\n"));
    }
    read.push(message);
    ctx.continue_as_new_typed(&read).await
}

/// B27, S4.19, I11, I15, I16, I18: clients and the reader are killed at any moment. Acknowledged messages are stored;
/// every message is read once, in the order of its client, whichever execution reads it.
#[tokio::test]
async fn acknowledged_messages_are_read_once_and_in_order() {
    let file = File::new();
    let folder = file.folder();
    let parent = Client::new(file.open().await);
    let mut luck = Luck::new(SEED);
    parent.start_orchestration_typed("reader", "Reader", Vec::<String>::new()).await.unwrap();
    let mut reading = Process::start("reader", folder, "");
    recorded(&parent, "reader", |event| event.event_id == 1).await;
    let mut sending: Vec<Process> =
        CLIENTS.iter().map(|name| Process::start("client", folder, name)).collect();

    for _ in 0..KILLS {
        // At any moment.
        tokio::time::sleep(Duration::from_millis(30 + luck.below(70))).await;
        match luck.below(4) {
            victim @ (0 | 1) => {
                let victim = victim as usize;
                sending.remove(victim).kill();
                sending.insert(victim, Process::start("client", folder, CLIENTS[victim]));
            }
            _ => {
                reading.kill();
                assert_sound(&file.snapshot());
                reading = Process::start("reader", folder, "");
            }
        }
    }
    for client in sending {
        client.succeeded().await;
    }
    parent.enqueue_event("reader", "q", "end").await.unwrap();

    let read: Vec<String> = output(ended(&parent, "reader").await).lines().map(str::to_owned).collect();
    assert_eq!(read.iter().collect::<BTreeSet<_>>().len(), read.len(), "a message was read twice");
    for name in CLIENTS {
        let acknowledged = Notes::new(folder, name).lines();
        assert_eq!(acknowledged.len(), MESSAGES);
        let of_client: Vec<&String> = read.iter().filter(|message| message.starts_with(name)).collect();
        let found: Vec<&String> =
            of_client.iter().copied().filter(|message| acknowledged.contains(message)).collect();
        assert_eq!(found, acknowledged.iter().collect::<Vec<_>>(), "all that was acknowledged, in its order");
        assert!(of_client.is_sorted_by_key(|message| number_and_life(message)), "{of_client:?}");
        for number in (0..MESSAGES).step_by(10) {
            assert_eq!(output(ended(&parent, &format!("{name}-{number}")).await), "x");
        }
    }
    reading.kill();
    let snapshot = file.snapshot();
    assert_finished(&snapshot);
    assert_eq!(instance(&snapshot, "reader").executions.len(), read.len() + 1);
}

fn number_and_life(message: &str) -> (usize, usize) {
    let mut parts = message.split(' ').skip(1).map(|part| part.parse().expect("a number"));
    (parts.next().unwrap(), parts.next().unwrap())
}
