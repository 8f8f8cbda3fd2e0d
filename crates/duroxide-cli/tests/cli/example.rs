//! The example that embeds the command line in another program prints what its documentation says.

use std::{path::Path, process::Command};

#[test]
fn a_program_has_the_command_line_as_a_subcommand() {
    let built = Path::new(env!("CARGO_BIN_EXE_duroxide")).with_file_name("examples").join("own_program");
    // Cargo builds the examples if it tests a whole package, and not if it builds a single test.
    if !built.exists() {
        let build = ["build", "--package", "duroxide-cli", "--example", "own_program"];
        assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(built).env("TMPDIR", folder.path()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected = "\
$ shop admin list -o ids
order-1
$ shop admin explain order-1
order-1 waits for event `approval`
$ shop admin verify
1 open instances checked, 0 cannot go on
$ shop admin raise order-1 approval '\"Ada\"'
ID       RESULT
order-1  raised
order-1: shipped, approved by Ada
$ shop admin show nobody
exit code 3
";
    assert_eq!(printed, expected, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
}
