//! Failures: grouped by error, poison, and dead letters.

mod groups;
mod letters;
mod read;

use askama::Template;
use axum::response::Response;

use crate::{
    console::Console,
    failure::Failure,
    format::{self, Moment},
    live,
    visit::{Frame, NavEntry, Visit, show},
};

use groups::{Group, GroupView};
use letters::Letter;
#[cfg(test)]
pub(crate) use read::Bounds;
pub(crate) use read::FailureCache;

/// Maximum number of dead letters shown: the oldest ones.
const LETTERS_MAX: u32 = 100;

#[derive(Template)]
#[template(path = "failures.html")]
struct Page {
    frame: Frame,
    poison: Vec<GroupView>,
    errors: Vec<GroupView>,
    /// The number of groups left out.
    left_out: usize,
    looked_at: String,
    has_more: bool,
    /// Whether the remaining failures are still being read.
    is_reading: bool,
    /// When the failures were read, unless they were read just now.
    read: Option<Moment>,
    letters: Vec<Letter>,
    has_more_letters: bool,
}

pub(crate) async fn page(visit: Visit) -> Result<Response, Failure> {
    let console = &visit.console;
    let (client, redact) = (&console.client, &console.redact);
    let live = live::link("failures", fingerprint(console).await?);
    let found = console.failures.read(client, redact).await?;
    let mut letters = client.list_dead_letters(Some(LETTERS_MAX + 1)).await?;
    let has_more_letters = letters.len() > LETTERS_MAX as usize;
    letters.truncate(LETTERS_MAX as usize);
    let now_ms = format::now_ms();
    let view = |of: &dyn Fn(&&Group) -> bool| {
        found.grouped().groups.iter().filter(of).map(|group| group.view(now_ms)).collect()
    };
    let letter = |letter| Letter::new(letter, redact, console.limits.payload_bytes_max, now_ms);
    show(&Page {
        poison: view(&|group| group.is_poison),
        errors: view(&|group| !group.is_poison),
        left_out: found.grouped().left_out,
        looked_at: format::number(found.grouped().looked_at),
        has_more: found.grouped().has_more,
        is_reading: found.is_reading(),
        read: found.is_cached().then(|| Moment::new(found.grouped().at_ms, now_ms)),
        letters: letters.iter().map(letter).collect(),
        has_more_letters,
        frame: visit.frame(NavEntry::Failures, Some(live)),
    })
}

/// A fingerprint that changes when another instance has failed.
pub(crate) async fn fingerprint(console: &Console) -> Result<u64, Failure> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    console.failures.fingerprint(&console.client, &console.redact).await?.hash(&mut hasher);
    for letter in console.client.list_dead_letters(Some(LETTERS_MAX)).await? {
        letter.id.hash(&mut hasher);
    }
    Ok(hasher.finish())
}
