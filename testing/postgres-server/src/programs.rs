//! The installed programs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Debian keeps the programs of each major version in a folder of their own.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The environment variable that names the folder of the programs, to test another version than the installed one.
const CHOSEN: &str = "DUROXIDE_TEST_POSTGRES_PROGRAMS";

/// The folder with `initdb`, `pg_ctl` and `postgres`.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// The programs that the environment names, else the newest version that is installed.
    pub(crate) fn find() -> Option<Self> {
        if let Some(folder) = std::env::var_os(CHOSEN) {
            let programs = Self { folder: folder.into() };
            assert!(programs.are_complete(), "{CHOSEN} has no server: {}", programs.folder.display());
            return Some(programs);
        }
        let in_path = std::env::var_os("PATH").unwrap_or_default();
        let folders = debian_folders().into_iter().chain(std::env::split_paths(&in_path));
        folders.map(|folder| Self { folder }).find(Self::are_complete)
    }

    fn are_complete(&self) -> bool {
        ["initdb", "pg_ctl", "postgres"].iter().all(|program| self.path(program).is_file())
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// The version as a file name: `postgres (PostgreSQL) 15.18 (Debian 15.18-0)` becomes `15.18`.
    pub(crate) fn version(&self) -> String {
        let output = Command::new(self.path("postgres"))
            .arg("--version")
            .output()
            .expect("postgres tells its version");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().nth(2).unwrap_or("unknown").to_owned()
    }
}

/// Debian's folders, newest version first.
fn debian_folders() -> Vec<PathBuf> {
    let Ok(entries) = Path::new(DEBIAN).read_dir() else { return Vec::new() };
    let mut versions: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    versions.into_iter().map(|version| Path::new(DEBIAN).join(version.to_string()).join("bin")).collect()
}
