//! Changes of one instance: raise, enqueue, cancel, delete, start again.

use duroxide::{Client, ClientError, EventKind, INITIAL_EXECUTION_ID, StartOutcome};

use crate::{changed::Changed, failure::Failure, links, visit::Visit};

pub(crate) async fn raise(visit: Visit) -> Result<Changed, Failure> {
    let (id, name) = (visit.form.needed("id")?, visit.form.needed("name")?);
    let data = visit.form.one("data").unwrap_or_default();
    visit.console.client.raise_event(id, name, data).await?;
    Ok(Changed::then(&visit.root, &links::instance(id), "raise"))
}

pub(crate) async fn enqueue(visit: Visit) -> Result<Changed, Failure> {
    let (id, name) = (visit.form.needed("id")?, visit.form.needed("name")?);
    let data = visit.form.one("data").unwrap_or_default();
    visit.console.client.enqueue_event(id, name, data).await?;
    Ok(Changed::then(&visit.root, &links::instance(id), "enqueue"))
}

pub(crate) async fn cancel(visit: Visit) -> Result<Changed, Failure> {
    let id = visit.form.needed("id")?;
    let reason = visit.form.filled("reason").unwrap_or(CANCEL_REASON);
    visit.console.client.cancel_instance(id, reason).await?;
    Ok(Changed::then(&visit.root, &links::instance(id), "cancel"))
}

/// The default reason of a cancellation.
pub(crate) const CANCEL_REASON: &str = "cancelled in the console";

pub(crate) async fn delete(visit: Visit) -> Result<Changed, Failure> {
    let id = visit.form.needed("id")?;
    if visit.form.one("sure") != Some("yes") {
        return Err(Failure::BadRequest("Confirm the deletion: check the box.".to_owned()));
    }
    let force = visit.form.one("force") == Some("yes");
    visit.console.client.delete_instance(id, force).await?;
    Ok(Changed::then(&visit.root, "instances", "delete"))
}

pub(crate) async fn start_again(visit: Visit) -> Result<Changed, Failure> {
    let id = visit.form.needed("id")?;
    let new_id = start_once_more(&visit.console.client, id).await?;
    Ok(Changed::then(&visit.root, &links::instance(&new_id), "start-again"))
}

/// Maximum number of new ids that are tried.
const TRIES: u32 = 100;

/// Starts an orchestration again as a new instance, with the name and input of the instance's first execution, and the
/// version that new instances get today. The ended instance stays as it is; the new one is called `<id>-again-<n>`.
pub(crate) async fn start_once_more(client: &Client, id: &str) -> Result<String, ClientError> {
    let executions = client.list_executions(id).await?;
    let first = executions.first().copied().unwrap_or(INITIAL_EXECUTION_ID);
    let history = client.read_execution_history(id, first).await?;
    let not_found = || ClientError::InstanceNotFound { instance_id: id.to_owned() };
    let start = history.into_iter().next().ok_or_else(not_found)?;
    let EventKind::OrchestrationStarted { name, input, .. } = start.kind else {
        return Err(not_found());
    };
    for n in 1..=TRIES {
        let new_id = format!("{id}-again-{n}");
        let outcome = client.start_orchestration_if_new(&new_id, &name, input.as_str()).await?;
        if outcome == StartOutcome::Created {
            return Ok(new_id);
        }
    }
    let message = format!("`{id}` has been started again {TRIES} times already: delete some of those first");
    Err(ClientError::InvalidInput { message })
}
