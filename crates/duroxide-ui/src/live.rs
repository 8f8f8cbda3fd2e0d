//! Live pages: a stream of server-sent events that makes a page reload itself.
//!
//! The stream carries no content: the page requests itself again, and the request passes all checks.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::{Stream, stream};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep},
};

use crate::{
    console::Console,
    failure::Failure,
    fields::Fields,
    pages::{failures, instance, instances},
    visit::Visit,
};

/// The link of the stream for a page with this fingerprint. The stream also reports changes between the read of the
/// page and its own beginning.
pub(crate) fn link(view: &str, fingerprint: u64) -> String {
    format!("live?view={view}&seen={fingerprint}")
}

/// The page that a stream watches.
#[derive(Debug, Clone)]
enum Watched {
    Overview,
    Instances(Fields),
    Instance(String),
    Failures,
}

/// `GET /live?view=…`.
pub(crate) async fn stream(visit: Visit) -> Result<Response, Failure> {
    let watched = match visit.query.one("view") {
        Some("overview") => Watched::Overview,
        Some("instances") => Watched::Instances(visit.query.clone()),
        Some("instance") => Watched::Instance(visit.instance()?.to_owned()),
        Some("failures") => Watched::Failures,
        _ => {
            return Err(Failure::BadRequest(
                "`view` must be overview, instances, instance or failures.".to_owned(),
            ));
        }
    };
    let permit = Arc::clone(&visit.console.streams).try_acquire_owned();
    let permit =
        permit.map_err(|_| Failure::Busy("Too many live pages are open. Reload this page by hand."))?;
    let seen = visit.query.number("seen")?;
    let events = watch(visit.console, watched, seen, permit);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response())
}

struct Watch {
    console: Arc<Console>,
    watched: Watched,
    is_open: bool,
    /// The fingerprint that the page has seen.
    last: Option<u64>,
    ends: Instant,
    _permit: OwnedSemaphorePermit,
}

/// The events of a stream. It ends after its lifetime, or when the store cannot be read; browsers open the next one.
fn watch(
    console: Arc<Console>,
    watched: Watched,
    seen: Option<u64>,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let ends = Instant::now() + console.limits.stream_lifetime;
    let begin = Watch { console, watched, is_open: false, last: seen, ends, _permit: permit };
    stream::unfold(begin, |mut watch| async move {
        let event = watch.next().await?;
        Some((Ok(event), watch))
    })
}

impl Watch {
    /// The next event; `None` at the end. The first event only confirms that the stream works.
    async fn next(&mut self) -> Option<Event> {
        if !self.is_open {
            self.is_open = true;
            if self.last.is_none() {
                self.last = Some(self.fingerprint().await.ok()?);
            }
            return Some(event("begin"));
        }
        while Instant::now() < self.ends {
            let now = self.fingerprint().await.ok()?;
            if self.last.replace(now).is_some_and(|before| before != now) {
                return Some(event("change"));
            }
            sleep(self.console.limits.stream_interval).await;
        }
        None
    }

    async fn fingerprint(&self) -> Result<u64, Failure> {
        match &self.watched {
            Watched::Overview => {
                // Asking for an old answer starts the next read.
                self.console.overview.counted().await;
                self.console.overview.queued().await;
                Ok(self.console.overview.reads())
            }
            Watched::Instances(query) => instances::fingerprint(&self.console, query).await,
            Watched::Instance(id) => instance::fingerprint(&self.console, id).await,
            Watched::Failures => failures::fingerprint(&self.console).await,
        }
    }
}

/// An event with dummy data, because browsers drop an event without data.
fn event(name: &'static str) -> Event {
    Event::default().event(name).data("now")
}
