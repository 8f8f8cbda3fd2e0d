//! [`Console`]: the console's settings, and the state that its pages share.

use std::{fmt, sync::Arc};

use axum::Router;
use duroxide::Client;
use tokio::sync::Semaphore;

use crate::{
    AuditEntry, Auth, Limits, Payload,
    audit::AuditHook,
    auth::Key,
    overview_cache::OverviewCache,
    pages::failures::FailureCache,
    redact::{Redact, RedactHook},
    routes,
};

/// A console before it is mounted.
///
/// ```
/// # fn mount(client: duroxide::Client, auth: duroxide_ui::Auth) -> axum::Router {
/// use duroxide_ui::Console;
///
/// let console = Console::new(client, auth)
///     .read_only()
///     .redact(|payload| (payload.name == "Charge").then(|| "a card".to_owned()))
///     .audit(|entry| println!("{} {} {:?}", entry.who, entry.action, entry.subjects));
/// axum::Router::new().nest("/duroxide", console.router())
/// # }
/// ```
pub struct Console {
    pub(crate) client: Client,
    pub(crate) auth: Auth,
    pub(crate) limits: Limits,
    pub(crate) read_only: bool,
    pub(crate) redact: Redact,
    pub(crate) audit: Option<AuditHook>,
    /// Signs forms of users without a session cookie.
    pub(crate) key: Option<Key>,
    pub(crate) overview: OverviewCache,
    pub(crate) failures: FailureCache,
    pub(crate) streams: Arc<Semaphore>,
}

impl Console {
    /// A console on a client's store, for the users whom `auth` lets in.
    pub fn new(client: Client, auth: Auth) -> Self {
        let limits = Limits::default();
        Self {
            overview: OverviewCache::new(client.clone()),
            failures: FailureCache::new(),
            streams: Arc::new(Semaphore::new(limits.streams_max)),
            client,
            auth,
            limits,
            read_only: false,
            redact: Redact::default(),
            audit: None,
            // Without a random source every form is refused until `form_key` is set.
            key: Key::random().ok(),
        }
    }

    /// Refuses all changes, also those of operators.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Replaces payloads before they are shown or exported. The hook returns the replacement, or `None` to show the
    /// payload as it is. The hook sees every payload: inputs, outputs, results, errors, event data, key-values, custom
    /// statuses and dead letters.
    #[must_use]
    pub fn redact(mut self, hook: impl Fn(&Payload<'_>) -> Option<String> + Send + Sync + 'static) -> Self {
        let hook: RedactHook = Arc::new(hook);
        self.redact = Redact::with(hook);
        self
    }

    /// Calls the hook for every change. Each change is also an event of the `tracing` target `duroxide::ui::audit`.
    #[must_use]
    pub fn audit(mut self, hook: impl Fn(&AuditEntry) + Send + Sync + 'static) -> Self {
        self.audit = Some(Arc::new(hook));
        self
    }

    /// Sets the limits of one request.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.streams = Arc::new(Semaphore::new(limits.streams_max));
        self.limits = limits;
        self
    }

    /// Sets the key that signs forms with [`Auth::layer`]. Replicas behind one address need the same key; by default
    /// each replica has its own random key. Sessions of [`Auth::token`] sign with a key derived from the token.
    #[must_use]
    pub fn form_key(mut self, key: [u8; 32]) -> Self {
        self.key = Some(Key::new(key));
        self
    }

    /// The console's router, which a service can nest under any path.
    pub fn router(self) -> Router {
        routes::router(Arc::new(self))
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console")
            .field("auth", &self.auth)
            .field("limits", &self.limits)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}
