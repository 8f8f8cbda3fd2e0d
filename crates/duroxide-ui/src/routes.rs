//! The one list of routes, from which the router is made.

use std::sync::Arc;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    routing::{MethodRouter, get, post},
};

use crate::{
    console::Console,
    failure::Failure,
    guard::guard,
    live,
    pages::{
        actions, assets, bulk, dead_letters, event, export, failures, instance, instances, login, nodes,
        overview,
    },
    response::complete,
};

/// The users who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody: the login, and files that are the same in every console.
    Public,
    /// Viewers and operators.
    Read,
    /// Operators, by a form of their session. Changes nothing.
    Preview,
    /// Operators, by a form of their session. Audited.
    Change,
}

/// A route of the console.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    handler: fn() -> MethodRouter<()>,
}

const fn route(path: &'static str, access: Access, handler: fn() -> MethodRouter<()>) -> Route {
    Route { path, access, handler }
}

/// All routes. Every request passes the guard of its route.
pub(crate) static ROUTES: &[Route] = &[
    route("/", Access::Read, || get(overview::from_root)),
    route("/overview", Access::Read, || get(overview::page)),
    route("/instances", Access::Read, || get(instances::page)),
    route("/instance", Access::Read, || get(instance::page)),
    route("/event", Access::Read, || get(event::page)),
    route("/export", Access::Read, || get(export::file)),
    route("/failures", Access::Read, || get(failures::page)),
    route("/nodes", Access::Read, || get(nodes::page)),
    route("/live", Access::Read, || get(live::stream)),
    route("/raise", Access::Change, || post(actions::raise)),
    route("/enqueue", Access::Change, || post(actions::enqueue)),
    route("/cancel", Access::Change, || post(actions::cancel)),
    route("/delete", Access::Change, || post(actions::delete)),
    route("/start-again", Access::Change, || post(actions::start_again)),
    route("/retry-dead-letter", Access::Change, || post(dead_letters::retry)),
    route("/discard-dead-letter", Access::Change, || post(dead_letters::discard)),
    route("/bulk-preview", Access::Preview, || post(bulk::preview)),
    route("/bulk", Access::Change, || post(bulk::run)),
    route("/login", Access::Public, || get(login::by_link).post(login::by_token)),
    route("/logout", Access::Public, || post(login::sign_out)),
    route("/assets/{file}", Access::Public, || get(assets::file)),
];

pub(crate) fn router(console: Arc<Console>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let guarded = from_fn_with_state((Arc::clone(&console), route), guard);
        router = router.route(route.path, (route.handler)().layer(guarded));
    }
    router.fallback(not_found).layer(from_fn(complete))
}

async fn not_found() -> Failure {
    Failure::NotFound("The console has no such page.".to_owned())
}
