//! [`Failure`]: why a request failed, as a page that says what to do.

use askama::Template;
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use duroxide::ClientError;

/// Why a request failed.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    Unauthorized {
        has_login: bool,
        link_was_used: bool,
    },
    Forbidden(&'static str),
    BadRequest(String),
    NotFound(String),
    MethodNotAllowed,
    TooLarge,
    Busy(&'static str),
    Store(String),
    Conflict(String),
    /// A defect of the console itself.
    Internal(String),
}

impl Failure {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized { .. } => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Busy(_) | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "Sign in",
            Self::Forbidden(_) => "Not allowed",
            Self::BadRequest(_) => "This request cannot be understood",
            Self::NotFound(_) => "Not found",
            Self::MethodNotAllowed => "Not available in this way",
            Self::TooLarge => "Too large",
            Self::Conflict(_) => "Not possible now",
            Self::Busy(_) => "Busy",
            Self::Store(_) => "The store did not answer",
            Self::Internal(_) => "The console failed",
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Unauthorized { link_was_used: true, .. } => {
                "This link has been used already, or belongs to a console that was stopped. Start `duroxide ui` again for a new one."
            }
            Self::Unauthorized { has_login: true, .. } => "Paste the token that you were given.",
            Self::Unauthorized { has_login: false, .. } => {
                "The service in front of this console did not say who you are. Sign in there first."
            }
            Self::Forbidden(text) | Self::Busy(text) => text,
            Self::BadRequest(text)
            | Self::NotFound(text)
            | Self::Store(text)
            | Self::Conflict(text)
            | Self::Internal(text) => text,
            Self::MethodNotAllowed => "Use the buttons and links of the console.",
            Self::TooLarge => "The form is larger than this console accepts.",
        }
    }

    /// The page, with links relative to `root`.
    pub(crate) fn page(&self, root: &str) -> Response {
        let has_login = matches!(self, Self::Unauthorized { has_login: true, .. });
        let page = FailurePage { root, title: self.title(), text: self.text(), has_login };
        let mut response = match page.render() {
            Ok(html) => (self.status(), Html(html)).into_response(),
            Err(_) => self.status().into_response(),
        };
        if has_login {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// [`crate::response`] renders the page, because it knows the URL of the request.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::InstanceNotFound { instance_id } => {
                Self::NotFound(format!("There is no instance `{instance_id}`. It may have been deleted."))
            }
            ClientError::InvalidInput { message } => Self::BadRequest(message),
            ClientError::InstanceStillRunning { instance_id } => {
                Self::Conflict(format!("`{instance_id}` still runs. Cancel it first."))
            }
            ClientError::CannotDeleteSubOrchestration { instance_id } => {
                Self::Conflict(format!("`{instance_id}` is a child. Delete its root instead."))
            }
            ClientError::ManagementNotAvailable => {
                Self::Store("This store has no management calls, which the console needs.".to_owned())
            }
            ClientError::Provider(error) if !error.is_retryable() => Self::Conflict(error.message),
            ClientError::Timeout | ClientError::Provider(_) => Self::Store(error.to_string()),
        }
    }
}

impl From<askama::Error> for Failure {
    fn from(error: askama::Error) -> Self {
        Self::Internal(error.to_string())
    }
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage<'a> {
    root: &'a str,
    title: &'a str,
    text: &'a str,
    has_login: bool,
}
