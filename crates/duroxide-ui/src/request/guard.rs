//! Lets requests in: who they are from, what they may do, and that no other site sent them.

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
    let (parts, body) = request.into_parts();
    let identity = console.auth.identify(&parts);
    let checked = match body_fields(&console, &parts, body).await {
        Ok(form) => admit(&console, route, &parts, identity.as_ref(), form),
        Err(failure) => Err((failure, Fields::default())),
    };
    let (visit, form) = match checked {
        Ok(visit) => {
            let form = visit.form.clone();
            (Ok(visit), form)
        }
        Err((failure, form)) => (Err(failure), form),
    };
    let is_change = parts.method == Method::POST && route.access == Access::Change;
    let was_let_in = visit.is_ok();
    let response = match visit {
        Ok(visit) => {
            let mut request = Request::from_parts(parts, Body::empty());
            request.extensions_mut().insert(visit);
            next.run(request).await
        }
        Err(failure) => failure.into_response(),
    };
    // Strangers cannot fill the log.
    if let (true, Some(identity)) = (is_change, identity) {
        let entry = entry(route, &identity, &form, outcome(was_let_in, &response));
        audit::write(&entry, console.audit.as_ref());
    }
    response
}

/// The fields of a form. Only POST has one; the body of anything else is not read.
async fn body_fields(console: &Console, parts: &Parts, body: Body) -> Result<Fields, Failure> {
    if parts.method != Method::POST {
        return Ok(Fields::default());
    }
    let bytes = to_bytes(body, console.limits.body_bytes_max).await.map_err(|_| Failure::TooLarge)?;
    Ok(Fields::parse(&bytes))
}

/// Decides whether a request is let in. Returns the form of a refused one, for the audit.
fn admit(
    console: &Arc<Console>,
    route: &Route,
    parts: &Parts,
    identity: Option<&Identity>,
    form: Fields,
) -> Result<Visit, (Failure, Fields)> {
    if route.access == Access::Public {
        return match parts.method == Method::POST && !csrf::is_same_origin(&parts.headers) {
            true => Err((FORGED, form)),
            false => Ok(visit(console, parts, identity, form)),
        };
    }
    let Some(identity) = identity else {
        let has_login = matches!(console.auth.0, Kind::Tokens(_));
        return Err((Failure::Unauthorized { has_login, link_was_used: false }, form));
    };
    if route.access != Access::Read {
        if console.read_only {
            return Err((READ_ONLY, form));
        }
        if identity.principal.role < Role::Operator {
            return Err((VIEWER, form));
        }
        let forged = csrf::check(&parts.headers, &form, identity, &console.key);
        if parts.method == Method::POST && forged.is_err() {
            return Err((FORGED, form));
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
        csrf: identity.map(|identity| csrf::token(identity, &console.key)).unwrap_or_default(),
        query: Fields::parse(parts.uri.query().unwrap_or_default().as_bytes()),
        form,
    }
}

fn outcome(was_let_in: bool, response: &Response) -> AuditOutcome {
    if !was_let_in {
        return AuditOutcome::Refused;
    }
    let status = response.status();
    if status.is_client_error() || status.is_server_error() {
        AuditOutcome::Failed
    } else {
        AuditOutcome::Done
    }
}

/// Ids are in the log, whatever else a form has is not.
fn entry(route: &Route, identity: &Identity, form: &Fields, outcome: AuditOutcome) -> AuditEntry {
    let name = route.path.trim_start_matches('/');
    let action = match crate::pages::bulk::Action::of(form) {
        Some(action) if name == "bulk" => format!("bulk {}", action.word()),
        _ => name.to_owned(),
    };
    AuditEntry {
        at: SystemTime::now(),
        who: identity.principal.name.clone(),
        action,
        subjects: form.all("id").map(str::to_owned).collect(),
        outcome,
    }
}
