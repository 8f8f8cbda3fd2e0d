//! Pages for providers that can only list everything.

use std::cmp::Reverse;

use super::{InstancePage, InstanceQuery};
use crate::{InstanceInfo, ProviderAdmin, ProviderError};

const CURSOR_PREFIX: &str = "created-";

/// The sort key of an instance: newest first, instances of one millisecond by id. Neither ever changes, so a page
/// continues correctly although the instance at its end was deleted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    newest: Reverse<u64>,
    id: String,
}

impl Place {
    fn of(info: &InstanceInfo) -> Self {
        Self { newest: Reverse(info.created_at), id: info.instance_id.clone() }
    }

    fn to_cursor(&self) -> String {
        format!("{CURSOR_PREFIX}{}-{}", self.newest.0, self.id)
    }

    fn from_cursor(cursor: &str) -> Result<Self, ProviderError> {
        let parts = cursor.strip_prefix(CURSOR_PREFIX).and_then(|rest| rest.split_once('-'));
        let place = parts
            .and_then(|(millis, id)| Some(Self { newest: Reverse(millis.parse().ok()?), id: id.to_owned() }));
        place.ok_or_else(|| ProviderError::invalid_cursor(cursor))
    }
}

/// A page by the plain methods: one read of every instance that may belong to it.
pub(crate) async fn page<A: ProviderAdmin + ?Sized>(
    admin: &A,
    query: &InstanceQuery,
) -> Result<InstancePage, ProviderError> {
    let after = query.cursor.as_deref().map(Place::from_cursor).transpose()?;
    let mut found = Vec::new();
    for info in candidates(admin, query).await? {
        let place = Place::of(&info);
        if query.matches(&info) && after.as_ref().is_none_or(|after| *after < place) {
            found.push((place, info));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    let more = found.len() > query.page_size();
    found.truncate(query.page_size());
    let next = found.last().filter(|_| more).map(|(place, _)| place.to_cursor());
    Ok(InstancePage { instances: found.into_iter().map(|(_, info)| info).collect(), next })
}

async fn candidates<A: ProviderAdmin + ?Sized>(
    admin: &A,
    query: &InstanceQuery,
) -> Result<Vec<InstanceInfo>, ProviderError> {
    let ids = match &query.status {
        Some(status) => admin.list_instances_by_status(status).await?,
        None => admin.list_instances().await?,
    };
    let mut infos = Vec::new();
    for id in ids {
        if query.id_prefix.as_ref().is_some_and(|prefix| !id.starts_with(prefix)) {
            continue;
        }
        match admin.get_instance_info(&id).await {
            Ok(info) => infos.push(info),
            // The instance was deleted since it was listed. The contract gives this reason as a text only.
            Err(error) if !error.is_retryable() && error.message.contains("not found") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(infos)
}
