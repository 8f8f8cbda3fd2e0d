//! PostgreSQL, PgBouncer and OpenSSL for the tests of `duroxide-postgres`.

pub(crate) mod versions;

use std::path::Path;

use crate::step::answers;

/// Where Debian and Ubuntu install servers, a folder for each major version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Where Debian and Ubuntu install PgBouncer, which is not in everybody's `PATH`.
const POOLER: &str = "/usr/sbin/pgbouncer";

/// Installs Debian's packages if they are missing and apt-get may. Without a server the tests skip themselves, which is
/// said here once more, because the output of a passed test is not shown. (With `CI=true` they fail instead.)
pub(crate) fn set_up() {
    set_up_one("PostgreSQL", &["postgresql"], has_server);
    set_up_one("PgBouncer", &["pgbouncer"], has_pooler);
    set_up_one("OpenSSL for `native-tls`", &["pkg-config", "libssl-dev"], has_openssl);
}

/// Installs Debian's packages of one program if it is missing, and prints the outcome.
pub(crate) fn set_up_one(name: &str, packages: &[&str], is_installed: fn() -> bool) {
    if is_installed() {
        println!("    {name} is there");
        return;
    }
    println!("    {name} is missing: apt-get install -y {}", packages.join(" "));
    if install(packages) && is_installed() {
        println!("    {name} is there now");
    } else {
        println!(
            "\n*** {name} could not be installed (that takes root and apt-get): its tests will be SKIPPED ***\n"
        );
    }
}

fn has_pooler() -> bool {
    Path::new(POOLER).is_file() || answers("pgbouncer", &["--version"])
}

fn has_openssl() -> bool {
    cfg!(not(target_os = "linux")) || answers("pkg-config", &["--exists", "openssl"])
}

fn has_server() -> bool {
    let versions = Path::new(DEBIAN).read_dir().into_iter().flatten().flatten();
    versions.into_iter().any(|version| version.path().join("bin/postgres").is_file())
        || answers("postgres", &["--version"])
}

/// The package list of a bare machine is empty or old.
fn install(packages: &[&str]) -> bool {
    let command = [&["install", "-y"], packages].concat();
    answers("apt-get", &["update"]) && answers("apt-get", &command)
}
