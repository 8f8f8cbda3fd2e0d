//! Relative links, which work under every prefix.
//!
//! A page never names the prefix it is served under. All links begin with the *root*: the relative path from the page's
//! own URL to the console's overview. So they also work behind a proxy that adds or removes a prefix.

use axum::{extract::OriginalUri, http::request::Parts};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except letters, digits and the unreserved ones of RFC 3986.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text as a value in a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

/// The link to an instance's page, from the root. The id is in the query: in a path, browsers would resolve an id `..`,
/// and proxies would decode `%2F`.
pub(crate) fn instance(id: &str) -> String {
    format!("instance?id={}", encode(id))
}

/// The relative path from this request's URL to the console's overview. Ends with `/`.
pub(crate) fn root_of(parts: &Parts) -> String {
    let inner = parts.uri.path();
    let original = parts.extensions.get::<OriginalUri>().map_or(inner, |original| original.path());
    root(original, inner)
}

/// `inner` is the path inside the console's router, `original` the one that the browser asked for.
fn root(original: &str, inner: &str) -> String {
    let depth = inner.strip_prefix('/').unwrap_or(inner).matches('/').count();
    let is_overview = inner.is_empty() || inner == "/";
    match original.rsplit('/').next() {
        // `/duroxide` without a trailing slash: links are relative to its parent.
        Some(last) if is_overview && !last.is_empty() => format!("./{last}/"),
        _ if depth > 0 => "../".repeat(depth),
        _ => "./".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_leads_from_every_page_to_the_overview() {
        let cases = [
            ("/", "/", "./"),
            ("/duroxide", "/", "./duroxide/"),
            ("/duroxide/", "/", "./"),
            ("/a/b", "/", "./b/"),
            ("/duroxide/instances", "/instances", "./"),
            ("/a/b/assets/x", "/assets/x", "../"),
        ];
        for (original, inner, expected) in cases {
            assert_eq!(root(original, inner), expected, "{original}");
        }
    }

    #[test]
    fn an_id_stays_one_value() {
        assert_eq!(encode("a/b ?#%&+\"<é"), "a%2Fb%20%3F%23%25%26%2B%22%3C%C3%A9");
    }
}
