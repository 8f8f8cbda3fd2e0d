//! A layer that records every span of a test.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;
use tracing::{
    Event, Subscriber,
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

use crate::listen::{Fields, listen};

/// A layer that records every span, with the lines logged in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Collector {
    spans: Arc<Mutex<Vec<Collected>>>,
    logged: Arc<Notify>,
}

/// One span.
#[derive(Debug, Clone)]
pub(crate) struct Collected {
    id: Id,
    pub(crate) name: &'static str,
    pub(crate) target: &'static str,
    pub(crate) parent: Option<&'static str>,
    pub(crate) fields: BTreeMap<String, String>,
    /// The lines logged directly in it.
    pub(crate) lines: Vec<String>,
    pub(crate) closed: bool,
}

impl Collector {
    /// Records the spans of this thread, and of threads that inherit its dispatcher, until the guard is dropped.
    pub(crate) fn install() -> (Self, DefaultGuard) {
        let collector = Self::default();
        let subscriber = tracing_subscriber::registry().with(collector.clone());
        (collector, listen(subscriber))
    }

    /// The spans of these targets, in the order of their beginning.
    pub(crate) fn of_targets(&self, targets: &[&str]) -> Vec<Collected> {
        let spans = self.spans.lock().unwrap();
        spans.iter().filter(|span| targets.contains(&span.target)).cloned().collect()
    }

    /// The first span of this name.
    pub(crate) fn named(&self, name: &str) -> Collected {
        self.spans.lock().unwrap().iter().find(|span| span.name == name).unwrap().clone()
    }

    /// Resolves once this line was logged in some span.
    pub(crate) async fn line(&self, text: &str) {
        loop {
            let mut logged = std::pin::pin!(self.logged.notified());
            logged.as_mut().enable();
            if self.spans.lock().unwrap().iter().any(|span| span.lines.iter().any(|line| line == text)) {
                return;
            }
            logged.await;
        }
    }

    fn change(&self, id: &Id, change: impl FnOnce(&mut Collected)) {
        // Ids are reused after a span has closed: the latest span counts.
        let mut spans = self.spans.lock().unwrap();
        if let Some(span) = spans.iter_mut().rev().find(|span| span.id == *id) {
            change(span);
        }
    }
}

impl Collected {
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).unwrap_or_else(|| panic!("no field {name} in {self:?}"))
    }

    /// The fields in the order of their names.
    pub(crate) fn field_pairs(&self) -> Vec<(&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let span = ctx.span(id).unwrap();
        self.spans.lock().unwrap().push(Collected {
            id: id.clone(),
            name: span.name(),
            target: span.metadata().target(),
            parent: span.parent().map(|parent| parent.name()),
            fields: fields.0,
            lines: Vec::new(),
            closed: false,
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _ctx: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.change(id, |span| span.fields.extend(fields.0));
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        if let Some(span) = ctx.event_span(event) {
            self.change(&span.id(), |span| span.lines.push(message));
            self.logged.notify_waiters();
        }
    }

    fn on_close(&self, id: Id, _ctx: Context<'_, S>) {
        self.change(&id, |span| span.closed = true);
    }
}
