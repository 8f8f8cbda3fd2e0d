//! Code that does not compile, and what the compiler says about it: the words of each message stand beside the code.
//!
//! `TRYBUILD=overwrite cargo test -p duroxide-macros --test refused` writes them anew.

use std::process::Command;

/// The compiler whose words are beside the code in `by_compiler`. Another one may say the same in another way.
const WORDS_OF: &str = "rustc 1.95.";

#[test]
fn what_does_not_compile_says_why() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/refused/by_macro/*.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc).arg("--version").output();
    if version.is_ok_and(|version| version.stdout.starts_with(WORDS_OF.as_bytes())) {
        cases.compile_fail("tests/refused/by_compiler/*.rs");
    } else {
        println!("not compared: the words of another compiler than {WORDS_OF}");
    }
}
