//! Changes of dead letters: retry, discard.

use crate::{changed::Changed, failure::Failure, visit::Visit};

pub(crate) async fn retry(visit: Visit) -> Result<Changed, Failure> {
    visit.console.client.retry_dead_letter(visit.form.needed("id")?).await?;
    Ok(Changed::then(&visit.root, "failures", "retry-dead-letter"))
}

pub(crate) async fn discard(visit: Visit) -> Result<Changed, Failure> {
    visit.console.client.discard_dead_letter(visit.form.needed("id")?).await?;
    Ok(Changed::then(&visit.root, "failures", "discard-dead-letter"))
}
