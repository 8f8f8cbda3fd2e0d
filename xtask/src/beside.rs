//! `cargo xtask beside`: duroxide in one program with other crates that link SQLite.

use crate::{step::Step, test_run::TestRun};

/// The packages' folder. Its `.cargo/config.toml` makes them share the workspace's build folder.
const FOLDER: &str = "testing/beside";
/// The packages whose program uses duroxide and another crate; the two ends of the range first.
const PROGRAMS: &[&str] =
    &["rusqlite-lowest", "rusqlite-highest", "sqlx-0.8", "sqlx-0.9", "diesel", "sea-orm-1", "sea-orm-2"];
/// The package that compiles `duroxide-sqlite` and its tests with the oldest rusqlite. The workspace has the newest.
const SQLITE_TESTS: TestRun = TestRun {
    title: "SQLite tests with the oldest rusqlite",
    folder: "testing/beside/sqlite-lowest",
    selection: "",
    nextest: "nextest run --no-fail-fast --config-file ../../../.config/nextest.toml",
};

/// Finds versions that fit together, then builds and runs the programs. Stops at the first step that fails.
pub(crate) fn run() -> Result<(), String> {
    run_programs(PROGRAMS)
}

/// The part of `cargo xtask test`: building all programs takes longer than its half hour has left. Versions of all are
/// found, and the oldest rusqlite, which differs most from the workspace's, is built.
pub(crate) fn run_oldest() -> Result<(), String> {
    run_programs(&["rusqlite-lowest"])
}

/// Finding versions takes a second each, building them takes minutes.
fn run_programs(built: &[&str]) -> Result<(), String> {
    let versions = PROGRAMS.iter().map(|name| (name, "Versions", "fetch --quiet"));
    let programs = built.iter().map(|name| (name, "Program", "run --quiet"));
    for (name, title, command) in versions.chain(programs) {
        Step::cargo(format!("{title} beside {name}"), command).inside(format!("{FOLDER}/{name}")).run()?;
    }
    SQLITE_TESTS.run()
}

/// The packages are outside of the workspace, but are formatted like it.
pub(crate) fn formatting_steps() -> impl Iterator<Item = Step> {
    PROGRAMS.iter().map(|name| {
        let folder = format!("{FOLDER}/{name}");
        Step::cargo(format!("Formatting of {folder}"), "fmt --check").inside(folder)
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    fn names(folder: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(Result::unwrap);
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn every_package_is_built_and_run() {
        let listed = PROGRAMS.iter().chain([&"sqlite-lowest"]).map(|name| (*name).to_owned()).collect();
        let packages: BTreeSet<String> = names(FOLDER)
            .into_iter()
            .filter(|name| root().join(FOLDER).join(name).join("Cargo.toml").exists())
            .collect();
        assert_eq!(packages, listed);
    }

    /// The names in the first list of dependencies of a manifest.
    fn dependencies(manifest: &str) -> BTreeSet<String> {
        let text = fs::read_to_string(root().join(manifest)).unwrap();
        let section = text.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap();
        let lines = section.lines().skip(1).filter(|line| !line.is_empty());
        lines.map(|line| line.split(['.', ' ']).next().unwrap().to_owned()).collect()
    }

    /// It compiles the same sources.
    #[test]
    fn the_package_with_the_oldest_rusqlite_has_the_dependencies_of_the_sqlite_store() {
        let ours = dependencies("crates/duroxide-sqlite/Cargo.toml");
        assert!(ours.contains("rusqlite"), "{ours:?}");
        assert_eq!(dependencies("testing/beside/sqlite-lowest/Cargo.toml"), ours);
    }

    #[test]
    fn every_test_program_of_the_sqlite_store_runs_with_the_oldest_rusqlite() {
        let manifest = fs::read_to_string(root().join(SQLITE_TESTS.folder).join("Cargo.toml")).unwrap();
        for name in names("crates/duroxide-sqlite/tests") {
            let named = [format!("tests/{name}\""), format!("tests/{name}/main.rs\"")];
            assert!(named.iter().any(|path| manifest.contains(path)), "{name} is missing");
        }
    }
}
