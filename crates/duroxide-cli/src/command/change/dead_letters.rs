//! `dead-letters`: messages that no node could process.

use clap::{Args, Subcommand};
use duroxide::{
    ClientError,
    providers::{DeadLetter, DeadLetterQueue},
};
use serde_json::{Value, json};

use super::each::{Done, each};
use crate::{
    command::Context,
    consent::Consent,
    exit::{Exit, Failure, Outcome},
    output::{Answer, Output, Table, Text, clean},
    selection::read_ids,
    store::Store,
    time::{age, iso, now_ms},
};

/// `dead-letters`
#[derive(Debug, Subcommand)]
pub enum DeadLetters {
    /// List them, oldest first
    List(List),
    /// Put them back into their queues, with no attempts counted
    Retry(Retry),
    /// Delete them
    Discard(Discard),
}

/// `dead-letters list`
#[derive(Debug, Args)]
pub struct List {
    /// Only those of this instance
    #[arg(long)]
    instance: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 1_000)]
    limit: u32,
}

/// `dead-letters retry`
#[derive(Debug, Args)]
pub struct Retry {
    #[command(flatten)]
    letters: Letters,
}

/// `dead-letters discard`
#[derive(Debug, Args)]
pub struct Discard {
    #[command(flatten)]
    letters: Letters,
    #[command(flatten)]
    consent: Consent,
}

/// Dead letters by their ids.
#[derive(Debug, Args)]
struct Letters {
    /// Ids of dead letters; `-` reads them from stdin, one per line
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

impl DeadLetters {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        match self {
            Self::List(command) => command.run(context).await,
            Self::Retry(command) => command.run(context).await,
            Self::Discard(command) => command.run(context).await,
        }
    }
}

impl List {
    async fn run(&self, context: &Context<'_>) -> Outcome {
        let store = context.reader().await?;
        // The store cannot filter by instance, so the limit applies after the filter.
        let limit = if self.instance.is_some() { None } else { Some(self.limit) };
        let mut letters = store.client.list_dead_letters(limit).await?;
        letters.retain(|letter| self.instance.is_none() || letter.instance_id == self.instance);
        letters.truncate(self.limit as usize);
        context.out.print(&answer(&letters, &context.out, now_ms()))?;
        Ok(Exit::Done)
    }
}

impl Retry {
    async fn run(&self, context: &Context<'_>) -> Outcome {
        let ids = read_ids(&self.letters.ids)?;
        let store = context.writer().await?;
        each(&context.out, "putting back", &ids, async |id| {
            absent_or(&store, id, store.client.retry_dead_letter(id).await).await?;
            Ok(Done::new("is in its queue again"))
        })
        .await
    }
}

impl Discard {
    async fn run(&self, context: &Context<'_>) -> Outcome {
        let ids = read_ids(&self.letters.ids)?;
        let store = context.open(self.consent.access()).await?;
        if self.consent.is_dry_run() {
            return each(&context.out, "looking", &ids, async |id| {
                let letter = find(&store, id).await?;
                Ok(Done::new(format!("would be discarded: {}", clean(&letter.reason))))
            })
            .await;
        }
        self.consent.ask(&format!("discard {} dead letters", ids.len()))?;
        each(&context.out, "discarding", &ids, async |id| {
            absent_or(&store, id, store.client.discard_dead_letter(id).await).await?;
            Ok(Done::new("discarded"))
        })
        .await
    }
}

/// The outcome of a call for a dead letter. A failure becomes `not found` if the dead letter does not exist, which only the text
/// of the store's error says.
async fn absent_or(store: &Store, id: &str, result: Result<(), ClientError>) -> Outcome<()> {
    match result {
        Err(error) if !error.is_retryable() => Err(find(store, id).await.err().unwrap_or(error.into())),
        result => Ok(result?),
    }
}

async fn find(store: &Store, id: &str) -> Outcome<DeadLetter> {
    let letters = store.client.list_dead_letters(None).await?;
    letters.into_iter().find(|letter| letter.id == id).ok_or_else(|| {
        Failure::not_found(format!("there is no dead letter '{id}'")).advise("`dead-letters list` shows them")
    })
}

fn answer(letters: &[DeadLetter], out: &Output, now_ms: u64) -> Answer {
    let mut table = Table::new(["ID", "QUEUE", "INSTANCE", "SINCE", "ATTEMPTS", "REASON", "PAYLOAD"]);
    for letter in letters {
        table.row([
            clean(&letter.id).into(),
            queue(&letter.queue).into(),
            clean(letter.instance_id.as_deref().unwrap_or("unknown")).into(),
            format!("{} ago", age(letter.dead_lettered_at_ms, now_ms)).into(),
            letter.attempt_count.to_string().into(),
            clean(&letter.reason).into(),
            out.payload(&letter.payload).into(),
        ]);
    }
    Answer {
        text: Text::default().table(&table, "no dead letters"),
        json: letters.iter().map(to_json).collect(),
        ids: letters.iter().map(|letter| letter.id.clone()).collect(),
    }
}

fn to_json(letter: &DeadLetter) -> Value {
    json!({
        "id": letter.id,
        "queue": queue(&letter.queue),
        "instance": letter.instance_id,
        "since": iso(letter.dead_lettered_at_ms),
        "attempts": letter.attempt_count,
        "reason": letter.reason,
        "payload": letter.payload,
    })
}

fn queue(queue: &DeadLetterQueue) -> &'static str {
    match queue {
        DeadLetterQueue::Orchestrator => "orchestrator",
        DeadLetterQueue::Worker => "worker",
    }
}
