//! Failures: grouped by error, poison, and dead letters.

mod groups;
mod letters;

use askama::Template;
use axum::response::Response;
use duroxide::InstanceQuery;

use crate::{
    failure::Failure,
    format, live,
    visit::{Frame, Place, Visit, show},
};

use groups::{Group, groups};
use letters::Letter;

/// How many failed instances are grouped: the newest ones.
const FAILED_MAX: u32 = 500;
/// How many dead letters are shown: the oldest ones.
const LETTERS_MAX: u32 = 100;

#[derive(Template)]
#[template(path = "failures.html")]
struct Page {
    frame: Frame,
    poison: Vec<Group>,
    errors: Vec<Group>,
    looked_at: usize,
    has_more: bool,
    letters: Vec<Letter>,
    has_more_letters: bool,
}

pub(crate) async fn page(visit: Visit) -> Result<Response, Failure> {
    let (client, redact) = (&visit.console.client, &visit.console.redact);
    let live = live::link("failures", fingerprint(&visit.console).await?);
    let query = InstanceQuery::default().status("Failed").limit(FAILED_MAX);
    let failed = client.query_instances(&query).await?;
    let mut letters = client.list_dead_letters(Some(LETTERS_MAX + 1)).await?;
    let has_more_letters = letters.len() > LETTERS_MAX as usize;
    letters.truncate(LETTERS_MAX as usize);
    let now_ms = format::now_ms();
    let (poison, errors) =
        groups(&failed.instances, redact, now_ms).into_iter().partition(|group| group.is_poison);
    let letter = |letter| Letter::new(letter, redact, visit.console.limits.payload_bytes_max, now_ms);
    show(&Page {
        poison,
        errors,
        looked_at: failed.instances.len(),
        has_more: failed.next.is_some(),
        letters: letters.iter().map(letter).collect(),
        has_more_letters,
        frame: visit.frame(Place::Failures, Some(live)),
    })
}

/// Changes when something else has failed.
pub(crate) async fn fingerprint(console: &crate::Console) -> Result<u64, Failure> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let query = InstanceQuery::default().status("Failed").limit(1);
    let mut hasher = DefaultHasher::new();
    for info in &console.client.query_instances(&query).await?.instances {
        (&info.instance_id, info.updated_at).hash(&mut hasher);
    }
    for letter in console.client.list_dead_letters(Some(LETTERS_MAX)).await? {
        letter.id.hash(&mut hasher);
    }
    Ok(hasher.finish())
}
