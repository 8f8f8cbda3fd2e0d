//! [`Visit`]: an admitted request, as handlers see it.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::request::Parts,
    response::{Html, IntoResponse, Response},
};

use crate::{console::Console, failure::Failure, fields::Fields};

/// An admitted request. The guard puts it into the request's extensions.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub(crate) console: Arc<Console>,
    /// The relative path to the overview; see [`crate::links`].
    pub(crate) root: String,
    pub(crate) who: String,
    /// Whether forms that change something are shown.
    pub(crate) can_change: bool,
    pub(crate) can_sign_out: bool,
    /// The token that forms carry.
    pub(crate) csrf: String,
    pub(crate) query: Fields,
    /// The form, if there is one.
    pub(crate) form: Fields,
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        // The guard of every route inserts a visit. A route without a guard admits no request.
        parts.extensions.remove().ok_or(Failure::Forbidden("This page has no guard."))
    }
}

/// The entries of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavEntry {
    Overview,
    Instances,
    Failures,
    Nodes,
}

/// The content of the frame around every page.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) root: String,
    pub(crate) who: String,
    pub(crate) can_change: bool,
    pub(crate) can_sign_out: bool,
    pub(crate) csrf: String,
    pub(crate) nav_entry: NavEntry,
    /// The link of the stream that says when to load the page again.
    pub(crate) live: Option<String>,
    pub(crate) notice: Option<&'static str>,
}

impl Visit {
    pub(crate) fn frame(&self, nav_entry: NavEntry, live: Option<String>) -> Frame {
        Frame {
            root: self.root.clone(),
            who: self.who.clone(),
            can_change: self.can_change,
            can_sign_out: self.can_sign_out,
            csrf: self.csrf.clone(),
            nav_entry,
            live,
            notice: self.query.one("done").and_then(crate::changed::notice),
        }
    }

    /// The instance that the query names.
    pub(crate) fn instance(&self) -> Result<&str, Failure> {
        self.query.one("id").filter(|id| !id.is_empty()).ok_or_else(|| {
            Failure::BadRequest("The URL names no instance: open one from the list.".to_owned())
        })
    }
}

impl Frame {
    pub(crate) fn is(&self, entry: &str) -> bool {
        let name = match self.nav_entry {
            NavEntry::Overview => "overview",
            NavEntry::Instances => "instances",
            NavEntry::Failures => "failures",
            NavEntry::Nodes => "nodes",
        };
        name == entry
    }
}

/// Renders a page.
pub(crate) fn show(page: &impl askama::Template) -> Result<Response, Failure> {
    Ok(Html(page.render()?).into_response())
}
