//! The answers of the explorer to a type that asks for a string or a number.

/// Types that are read from strings, such as ids, dates and addresses, accept only some. They are tried in this order.
pub(super) const TEXTS: &[&str] = &[
    "",
    "0",
    "a",
    "127.0.0.1",
    "00000000-0000-0000-0000-000000000000",
    "1970-01-01T00:00:00Z",
    "1970-01-01T00:00:00",
    "1970-01-01",
    "00:00:00",
    "1.0.0",
    "PT0S",
    "http://a.example/",
    "a@a.example",
    "127.0.0.1:1",
    "UTC",
    "en",
    "00",
    "0.0",
];

/// Types that are read from numbers may refuse zero.
pub(super) const NUMBERS: &[u8] = &[0, 1];
