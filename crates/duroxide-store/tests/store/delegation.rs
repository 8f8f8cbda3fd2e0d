//! A provider that hands its calls on must hand on all of them.

use std::{collections::BTreeSet, fs, path::Path};

/// The names of the methods between two lines of a source file.
fn methods(path: &str, from: &str, to: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let source = fs::read_to_string(path).unwrap();
    let (_, rest) = source.split_once(from).unwrap();
    let (body, _) = rest.split_once(to).unwrap();
    body.lines()
        .filter_map(|line| line.trim_start().trim_start_matches("async ").strip_prefix("fn "))
        .filter_map(|signature| signature.split(['(', '<']).next())
        .map(str::to_owned)
        .collect()
}

/// A method with a default body that is not handed on would silently be served by the default: slower, or without
/// what the store does natively.
#[test]
fn every_method_of_the_traits_is_handed_on() {
    let provider = methods("../duroxide-provider/src/provider.rs", "pub trait Provider:", "\n}\n");
    let admin = methods("../duroxide-provider/src/admin.rs", "pub trait ProviderAdmin:", "\n}\n");
    let of_provider = "impl $crate::delegate::Provider for";
    let of_admin = "impl $crate::delegate::ProviderAdmin for";
    assert_eq!(methods("src/delegate.rs", of_provider, of_admin), provider);
    assert_eq!(methods("src/delegate.rs", of_admin, "\n}\n"), admin);
}
