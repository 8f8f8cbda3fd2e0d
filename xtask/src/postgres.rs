//! PostgreSQL for the tests of `duroxide-postgres`.

use std::path::Path;

use crate::step::answers;

/// Where Debian and Ubuntu install servers, a folder for each major version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Installs Debian's package if PostgreSQL is missing and apt-get may. Without a server the tests skip themselves, which is
/// said here once more, because nobody reads the output of a passed test. (With `CI=true` they fail instead.)
pub(crate) fn set_up() {
    if is_installed() {
        println!("    PostgreSQL is there");
        return;
    }
    println!("    PostgreSQL is missing: apt-get install -y postgresql");
    if install() && is_installed() {
        println!("    PostgreSQL is there now");
    } else {
        println!(
            "\n*** PostgreSQL could not be installed (that takes root and apt-get): its tests will be SKIPPED ***\n"
        );
    }
}

fn is_installed() -> bool {
    let versions = Path::new(DEBIAN).read_dir().into_iter().flatten().flatten();
    versions.into_iter().any(|version| version.path().join("bin/postgres").is_file())
        || answers("postgres", &["--version"])
}

/// The package list of a bare machine is empty or old.
fn install() -> bool {
    answers("apt-get", &["update"]) && answers("apt-get", &["install", "-y", "postgresql"])
}
