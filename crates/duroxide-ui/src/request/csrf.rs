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

/// The token that forms of this identity carry. `None` without a key: then no form is accepted.
pub(crate) fn token(identity: &Identity, console_key: Option<&Key>) -> Option<String> {
    Some(identity.form_key.as_ref().or(console_key)?.sign("form", &identity.bound_to))
}

/// Why a change is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forged {
    OtherSite,
    NoToken,
}

/// Checks that a change comes from a page of `identity`, and not from another site.
pub(crate) fn check(
    headers: &HeaderMap,
    fields: &Fields,
    identity: &Identity,
    console_key: Option<&Key>,
) -> Result<(), Forged> {
    if !is_same_origin(headers) {
        return Err(Forged::OtherSite);
    }
    let sent = fields.one(FIELD).unwrap_or_default();
    let token_fits = || token(identity, console_key).is_some_and(|token| same(sent, &token));
    if identity.by_header || token_fits() { Ok(()) } else { Err(Forged::NoToken) }
}

/// Whether a request comes from the console's own origin, as far as its headers say. Programs send no such headers.
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
        let token = |of: &Identity| token(of, Some(&key)).unwrap();
        let check = |fields: &Fields, who: &Identity| check(&HeaderMap::new(), fields, who, Some(&key));
        assert_eq!(check(&fields(token(&mine)), &mine), Ok(()));
        assert_eq!(check(&fields(token(&yours)), &mine), Err(Forged::NoToken));
        assert_eq!(check(&fields(String::new()), &mine), Err(Forged::NoToken));
        assert_eq!(check(&Fields::from(vec![]), &mine), Err(Forged::NoToken));
        assert_eq!(check(&Fields::from(vec![]), &identity("mine", true)), Ok(()));
    }

    #[test]
    fn another_site_is_refused_even_with_the_token() {
        let (key, mine) = (Key::new([1; 32]), identity("mine", true));
        let from_elsewhere = headers(&[("sec-fetch-site", "cross-site")]);
        let fields = Fields::from(vec![(FIELD.to_owned(), token(&mine, Some(&key)).unwrap())]);
        assert_eq!(check(&from_elsewhere, &fields, &mine, Some(&key)), Err(Forged::OtherSite));
    }

    #[test]
    fn without_a_key_no_form_is_accepted() {
        let mine = identity("mine", false);
        assert_eq!(token(&mine, None), None);
        for sent in [String::new(), Key::new([0; 32]).sign("form", "mine")] {
            let fields = Fields::from(vec![(FIELD.to_owned(), sent)]);
            assert_eq!(check(&HeaderMap::new(), &fields, &mine, None), Err(Forged::NoToken));
        }
    }
}
