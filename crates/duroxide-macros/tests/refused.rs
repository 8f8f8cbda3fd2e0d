//! Code that does not compile: each file has the message of the compiler in a comment next to the code.
//!
//! `TRYBUILD=overwrite cargo test -p duroxide-macros --test refused` writes them anew.

use std::process::Command;

/// The compiler whose messages are in the files of `by_compiler`. Another one may word them differently.
const WORDS_OF: &str = "rustc 1.95.";

#[test]
fn refused_code_gets_its_message() {
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
