//! Admits requests: checks the user, the user's role, and that no other site sent the request.

use std::{sync::Arc, time::SystemTime};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{Method, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    audit::{self, AuditEntry, AuditOutcome},
    auth::{Identity, Kind, Role},
    console::Console,
    csrf,
    failure::Failure,
    fields::Fields,
    links,
    routes::{Access, Route},
    visit::Visit,
};

/// The guard of one route.
pub(crate) async fn guard(
    State((console, route)): State<(Arc<Console>, &'static Route)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let identity = console.auth.identify(&parts);
    let form = match body_fields(&console, &parts, body).await {
        Ok(form) => form,
        Err(failure) => return failure.into_response(),
    };
    let admitted = admit(&console, route, &parts, identity.as_ref(), form.clone());
    let is_change = parts.method == Method::POST && route.access == Access::Change;
    let audited = identity.filter(|_| is_change).map(|identity| Audited { console, route, identity, form });
    match admitted {
        Err(failure) => {
            // Only requests of known users are audited, so strangers cannot fill the log.
            audited.inspect(|audited| audited.write(AuditOutcome::Refused));
            failure.into_response()
        }
        Ok(visit) => {
            parts.extensions.insert(visit);
            let handled = next.run(Request::from_parts(parts, Body::empty()));
            match audited {
                Some(audited) => audited.run(handled).await,
                None => handled.await,
            }
        }
    }
}

/// A change that is audited.
struct Audited {
    console: Arc<Console>,
    route: &'static Route,
    identity: Identity,
    form: Fields,
}

impl Audited {
    /// Makes the change and audits it, in a task of its own, so that a closed connection interrupts neither.
    async fn run(self, handled: impl Future<Output = Response> + Send + 'static) -> Response {
        let task = tokio::spawn(async move {
            // A panic of the handler ends only the inner task.
            let answered = tokio::spawn(handled).await;
            let response =
                answered.unwrap_or_else(|error| Failure::Internal(error.to_string()).into_response());
            let status = response.status();
            let failed = status.is_client_error() || status.is_server_error();
            self.write(if failed { AuditOutcome::Failed } else { AuditOutcome::Done });
            response
        });
        task.await.unwrap_or_else(|error| Failure::Internal(error.to_string()).into_response())
    }

    /// Writes an audit entry. It contains the ids of a form and no other field.
    fn write(&self, outcome: AuditOutcome) {
        let name = self.route.path.trim_start_matches('/');
        let action = match crate::pages::bulk::Action::of(&self.form) {
            Some(action) if name == "bulk" => format!("bulk {}", action.word()),
            _ => name.to_owned(),
        };
        let entry = AuditEntry {
            at: SystemTime::now(),
            who: self.identity.principal.name.clone(),
            action,
            subjects: self.form.all("id").map(str::to_owned).collect(),
            outcome,
        };
        audit::write(&entry, self.console.audit.as_ref());
    }
}

/// The fields of a form. Only the body of a POST is read.
async fn body_fields(console: &Console, parts: &Parts, body: Body) -> Result<Fields, Failure> {
    if parts.method != Method::POST {
        return Ok(Fields::default());
    }
    let bytes = to_bytes(body, console.limits.body_bytes_max).await.map_err(|_| Failure::TooLarge)?;
    Ok(Fields::parse(&bytes))
}

/// Decides whether a request is admitted.
fn admit(
    console: &Arc<Console>,
    route: &Route,
    parts: &Parts,
    identity: Option<&Identity>,
    form: Fields,
) -> Result<Visit, Failure> {
    if route.access == Access::Public {
        return match parts.method == Method::POST && !csrf::is_same_origin(&parts.headers) {
            true => Err(FORGED),
            false => Ok(visit(console, parts, identity, form)),
        };
    }
    let Some(identity) = identity else {
        let has_login = matches!(console.auth.0, Kind::Tokens(_));
        return Err(Failure::Unauthorized { has_login, link_was_used: false });
    };
    if route.access != Access::Read {
        if console.read_only {
            return Err(READ_ONLY);
        }
        if identity.principal.role < Role::Operator {
            return Err(VIEWER);
        }
        let forged = csrf::check(&parts.headers, &form, identity, console.key.as_ref());
        if parts.method == Method::POST && forged.is_err() {
            return Err(FORGED);
        }
    }
    Ok(visit(console, parts, Some(identity), form))
}

const READ_ONLY: Failure = Failure::Forbidden("This console is read-only.");
const VIEWER: Failure = Failure::Forbidden("You may look, not change. Ask for the role operator.");
const FORGED: Failure = Failure::Forbidden(
    "This form does not come from a page of your session. Go back, reload the page and send it again.",
);

fn visit(console: &Arc<Console>, parts: &Parts, identity: Option<&Identity>, form: Fields) -> Visit {
    let is_operator = identity.is_some_and(|identity| identity.principal.role == Role::Operator);
    Visit {
        console: Arc::clone(console),
        root: links::root_of(parts),
        who: identity.map(|identity| identity.principal.name.clone()).unwrap_or_default(),
        can_change: is_operator && !console.read_only,
        can_sign_out: identity.is_some() && matches!(console.auth.0, Kind::Tokens(_)),
        csrf: identity.and_then(|identity| csrf::token(identity, console.key.as_ref())).unwrap_or_default(),
        query: Fields::parse(parts.uri.query().unwrap_or_default().as_bytes()),
        form,
    }
}
