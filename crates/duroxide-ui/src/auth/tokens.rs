//! [`Tokens`]: the accepted tokens, and links that work once.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use super::{Identity, Key, Principal, hex, same, session};

/// The shortest token that is accepted.
const SHORTEST: usize = 16;

/// A token is too short to be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeakToken {
    length: usize,
}

impl fmt::Display for WeakToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { length } = self;
        write!(
            f,
            "a token of {length} bytes can be guessed: use at least {SHORTEST} random bytes, such as `openssl rand -hex 32`"
        )
    }
}

impl std::error::Error for WeakToken {}

/// The credential of a login.
pub(crate) enum SignIn<'a> {
    Token(&'a str),
    Link(&'a str),
}

/// The tokens that are accepted.
#[derive(Default)]
pub(crate) struct Tokens {
    accepted: Vec<Accepted>,
    /// Digests of the codes of unused links, with the number of their token.
    links: Mutex<Vec<(String, usize)>>,
}

struct Accepted {
    principal: Principal,
    digest: String,
    key: Key,
}

impl Tokens {
    pub(super) fn add(&mut self, principal: Principal, token: &str) -> Result<(), WeakToken> {
        if token.len() < SHORTEST {
            return Err(WeakToken { length: token.len() });
        }
        let key = Key::new(Sha256::digest(format!("duroxide console session {token}")).into());
        self.accepted.push(Accepted { principal, digest: digest(token), key });
        Ok(())
    }

    /// Accepts `code` for one login with the first token.
    pub(crate) fn add_link(&self, code: &str) {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).push((digest(code), 0));
    }

    /// The value of a new session cookie; `None` if the credential is not accepted.
    pub(crate) fn sign_in(&self, shown: &SignIn<'_>) -> Option<String> {
        let number = match shown {
            SignIn::Token(token) => self.number_of(token)?,
            SignIn::Link(code) => self.use_link(code)?,
        };
        let accepted = self.accepted.get(number)?;
        Some(session::seal(&accepted.key, number, &Key::random().ok()?, SystemTime::now()))
    }

    pub(super) fn identify(&self, headers: &HeaderMap) -> Option<Identity> {
        if let Some(token) = bearer(headers) {
            let accepted = self.accepted.get(self.number_of(token)?)?;
            let mut identity =
                Identity::without_session(accepted.principal.clone(), Some(accepted.key.clone()));
            identity.by_header = true;
            return Some(identity);
        }
        let value = session::cookie_value(headers)?;
        let accepted = self.accepted.get(session::claimed_number(value)?)?;
        session::is_valid(&accepted.key, value, SystemTime::now()).then(|| Identity {
            principal: accepted.principal.clone(),
            form_key: Some(accepted.key.clone()),
            bound_to: value.to_owned(),
            by_header: false,
        })
    }

    /// Compares with all tokens, so that the duration does not reveal which token is close.
    fn number_of(&self, token: &str) -> Option<usize> {
        let shown = digest(token);
        let all = self.accepted.iter().enumerate();
        all.fold(None, |found, (number, accepted)| match same(&shown, &accepted.digest) {
            true => Some(number),
            false => found,
        })
    }

    fn use_link(&self, code: &str) -> Option<usize> {
        let shown = digest(code);
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let at = links.iter().position(|(digest, _)| same(&shown, digest))?;
        Some(links.swap_remove(at).1)
    }
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    fn tokens() -> Tokens {
        let mut tokens = Tokens::default();
        tokens.add(Principal::new("ops", Role::Operator), "0123456789abcdef").unwrap();
        tokens.add(Principal::new("eyes", Role::Viewer), "fedcba9876543210").unwrap();
        tokens
    }

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn a_short_token_is_refused_with_advice() {
        let refused = Tokens::default().add(Principal::new("ops", Role::Operator), "").unwrap_err();
        assert!(refused.to_string().contains("openssl rand"), "{refused}");
    }

    #[test]
    fn a_bearer_token_names_its_owner() {
        let who = |value: &str| {
            tokens().identify(&with(header::AUTHORIZATION, value)).map(|identity| identity.principal.name)
        };
        assert_eq!(who("Bearer 0123456789abcdef").as_deref(), Some("ops"));
        assert_eq!(who("bearer fedcba9876543210").as_deref(), Some("eyes"));
        for wrong in ["Bearer 0123456789abcdeg", "Bearer ", "Basic 0123456789abcdef", "0123456789abcdef"] {
            assert_eq!(who(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_session_belongs_to_the_token_that_was_shown() {
        let tokens = tokens();
        let value = tokens.sign_in(&SignIn::Token("fedcba9876543210")).unwrap();
        let cookies = with(header::COOKIE, &format!("other=1; {}={value}", session::COOKIE));
        assert_eq!(tokens.identify(&cookies).unwrap().principal.role, Role::Viewer);
        let promoted = format!("0{}", &value[1..]);
        let cookies = with(header::COOKIE, &format!("{}={promoted}", session::COOKIE));
        assert!(tokens.identify(&cookies).is_none());
    }

    #[test]
    fn a_link_works_once() {
        let tokens = tokens();
        tokens.add_link("the code");
        assert!(tokens.sign_in(&SignIn::Link("another code")).is_none());
        assert!(tokens.sign_in(&SignIn::Link("the code")).is_some());
        assert!(tokens.sign_in(&SignIn::Link("the code")).is_none());
    }
}
