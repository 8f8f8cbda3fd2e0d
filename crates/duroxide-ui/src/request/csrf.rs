//! Protects changes from being sent by another site's page (cross-site request forgery).
//!
//! Two independent checks: browsers say where a request comes from, and every form carries a token that only a page of the
//! same session has.

use axum::http::{HeaderMap, header};

use crate::{
    auth::{Identity, Key, same},
    fields::Fields,
};

/// The form field that carries the token.
pub(crate) const FIELD: &str = "_csrf";

/// The token that forms of this identity carry.
pub(crate) fn token(identity: &Identity, console_key: &Key) -> String {
    identity.form_key.as_ref().unwrap_or(console_key).sign("form", &identity.bound_to)
}

/// Why a change is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forged {
    OtherSite,
    NoToken,
}

/// Checks a change that `identity` seems to have sent.
pub(crate) fn check(
    headers: &HeaderMap,
    fields: &Fields,
    identity: &Identity,
    console_key: &Key,
) -> Result<(), Forged> {
    if !is_same_origin(headers) {
        return Err(Forged::OtherSite);
    }
    let token_fits = || same(fields.one(FIELD).unwrap_or_default(), &token(identity, console_key));
    if identity.by_header || token_fits() { Ok(()) } else { Err(Forged::NoToken) }
}

/// What browsers say about where a request comes from. Programs say nothing.
pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if let Some(site) = text(header::HeaderName::from_static("sec-fetch-site")) {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(header::ORIGIN) else { return true };
    let host = origin.split_once("://").map(|(_, host)| host);
    host.is_some() && host == text(header::HOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Principal, Role};

    fn identity(bound_to: &str, by_header: bool) -> Identity {
        let principal = Principal::new("ops", Role::Operator);
        Identity { principal, form_key: None, bound_to: bound_to.to_owned(), by_header }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (header::HeaderName::from_static(name), header::HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn browsers_say_where_a_request_comes_from() {
        let cases: &[(&[(&str, &str)], bool)] = &[
            (&[], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("host", "a:1"), ("origin", "http://a:1")], true),
            (&[("host", "a:1"), ("origin", "http://a:2")], false),
            (&[("host", "a:1"), ("origin", "null")], false),
            (&[("origin", "http://a:1")], false),
            (&[("sec-fetch-site", "cross-site"), ("host", "a:1"), ("origin", "http://a:1")], false),
        ];
        for (pairs, expected) in cases {
            assert_eq!(is_same_origin(&headers(pairs)), *expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_token_fits_its_session_only() {
        let key = Key::new([1; 32]);
        let (mine, yours) = (identity("mine", false), identity("yours", false));
        let fields = |token: String| Fields::from(vec![(FIELD.to_owned(), token)]);
        let check = |fields: &Fields, who: &Identity| check(&HeaderMap::new(), fields, who, &key);
        assert_eq!(check(&fields(token(&mine, &key)), &mine), Ok(()));
        assert_eq!(check(&fields(token(&yours, &key)), &mine), Err(Forged::NoToken));
        assert_eq!(check(&fields(String::new()), &mine), Err(Forged::NoToken));
        assert_eq!(check(&Fields::from(vec![]), &mine), Err(Forged::NoToken));
        assert_eq!(check(&Fields::from(vec![]), &identity("mine", true)), Ok(()));
    }

    #[test]
    fn another_site_is_refused_even_with_the_token() {
        let (key, mine) = (Key::new([1; 32]), identity("mine", true));
        let from_elsewhere = headers(&[("sec-fetch-site", "cross-site")]);
        let fields = Fields::from(vec![(FIELD.to_owned(), token(&mine, &key))]);
        assert_eq!(check(&from_elsewhere, &fields, &mine, &key), Err(Forged::OtherSite));
    }
}
