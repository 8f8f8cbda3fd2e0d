//! [`Auth`]: the users of the console and their permissions.

mod session;
mod tokens;

use std::fmt;

use axum::http::request::Parts;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

pub(crate) use session::{COOKIE, SESSION_SECONDS};
pub use tokens::WeakToken;
pub(crate) use tokens::{SignIn, Tokens};

/// The permissions of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May read everything and change nothing.
    Viewer,
    /// May also raise, enqueue, cancel, delete and retry.
    Operator,
}

/// The user who sent a request. Your own layer inserts one into the request's extensions; see [`Auth::layer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The user's name in audit entries.
    pub name: String,
    /// The user's permissions.
    pub role: Role,
}

impl Principal {
    /// A user with this name and role.
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        Self { name: name.into(), role }
    }
}

/// Decides who may use the console. There is no default: the program that mounts the console must choose.
#[derive(Debug)]
pub struct Auth(pub(crate) Kind);

pub(crate) enum Kind {
    Tokens(Tokens),
    Layer,
    TrustThisNetwork,
}

impl Auth {
    /// Lets in every user who has this token, either in the login form, which creates a session cookie, or as
    /// `Authorization: Bearer`.
    ///
    /// `name` is the user's name in audit entries. Every other request gets 401.
    ///
    /// ```
    /// use duroxide_ui::{Auth, Role};
    /// # fn main() -> Result<(), duroxide_ui::WeakToken> {
    /// # let (operators, viewers) = ("0123456789abcdef", "fedcba9876543210");
    /// let auth = Auth::token("operators", operators, Role::Operator)?.and_token("viewers", viewers, Role::Viewer)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WeakToken`] for a token of less than 16 bytes, such as an environment variable that is empty.
    pub fn token(name: impl Into<String>, token: impl AsRef<str>, role: Role) -> Result<Self, WeakToken> {
        let mut tokens = Tokens::default();
        tokens.add(Principal::new(name, role), token.as_ref())?;
        Ok(Self(Kind::Tokens(tokens)))
    }

    /// Accepts one more token. Has no effect on an [`Auth`] that does not use tokens.
    ///
    /// # Errors
    /// As [`Self::token`].
    pub fn and_token(
        mut self,
        name: impl Into<String>,
        token: impl AsRef<str>,
        role: Role,
    ) -> Result<Self, WeakToken> {
        if let Kind::Tokens(tokens) = &mut self.0 {
            tokens.add(Principal::new(name, role), token.as_ref())?;
        }
        Ok(self)
    }

    /// Lets in every user whom your own layer lets in. The layer must insert a [`Principal`] into the request's
    /// extensions; a request without one gets 401.
    ///
    /// ```
    /// # fn mount(client: duroxide::Client) -> axum::Router {
    /// use axum::{extract::Request, middleware::{Next, from_fn}, response::Response};
    /// use duroxide_ui::{Auth, Principal, Role};
    ///
    /// async fn sign_in(mut request: Request, next: Next) -> Response {
    ///     // Ask your session store here, and insert nothing for a stranger.
    ///     request.extensions_mut().insert(Principal::new("ada", Role::Operator));
    ///     next.run(request).await
    /// }
    ///
    /// axum::Router::new().nest("/duroxide", duroxide_ui::router(client, Auth::layer()).layer(from_fn(sign_in)))
    /// # }
    /// ```
    pub fn layer() -> Self {
        Self(Kind::Layer)
    }

    /// Lets in every user who can reach the address, as an operator. Only for a network whose users may do everything.
    pub fn trust_this_network() -> Self {
        Self(Kind::TrustThisNetwork)
    }

    /// The user who sent a request, if its credentials are valid.
    pub(crate) fn identify(&self, parts: &Parts) -> Option<Identity> {
        match &self.0 {
            Kind::Tokens(tokens) => tokens.identify(&parts.headers),
            Kind::Layer => {
                parts.extensions.get::<Principal>().cloned().map(|who| Identity::without_session(who, None))
            }
            Kind::TrustThisNetwork => {
                Some(Identity::without_session(Principal::new("this network", Role::Operator), None))
            }
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens(_) => "Tokens",
            Self::Layer => "Layer",
            Self::TrustThisNetwork => "TrustThisNetwork",
        })
    }
}

/// The user who sent a request, and the session that the tokens of the user's forms are bound to.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) principal: Principal,
    /// The key that signs the session's form tokens. Without a session the console's own key signs them.
    pub(crate) form_key: Option<Key>,
    /// The session that form tokens are bound to, or the name if there is no session.
    pub(crate) bound_to: String,
    /// The request has an `Authorization: Bearer` header, which no other page can make a browser send.
    pub(crate) by_header: bool,
}

impl Identity {
    fn without_session(principal: Principal, form_key: Option<Key>) -> Self {
        let bound_to = principal.name.clone();
        Self { principal, form_key, bound_to, by_header: false }
    }
}

/// A key for signatures.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A new key. Fails only where the operating system has no random source.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The signature of `text` for one purpose, in hexadecimal digits.
    pub(crate) fn sign(&self, purpose: &str, text: &str) -> String {
        // HMAC takes keys of every length, so this never fails.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(text.as_bytes());
        hex(&mac.finalize().into_bytes())
    }

    pub(crate) fn to_text(&self) -> String {
        hex(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares in a time that does not depend on where the texts differ.
pub(crate) fn same(one: &str, other: &str) -> bool {
    use subtle::ConstantTimeEq;
    !one.is_empty() && one.as_bytes().ct_eq(other.as_bytes()).into()
}
