//! A folder in memory for the files of tests.
//!
//! A disk that stalls for half a second ends the short leases that tests wait for. Slow, full and failing disks and power
//! failures have tests of their own, which do not depend on the disk of the machine.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

/// Linux mounts a file system in memory here.
const MEMORY: &str = "/dev/shm";
/// The servers of parallel tests, with their write-ahead logs, take about 2 GiB.
const FREE_MIN: u64 = 4 << 30;

/// A new folder, deleted when this value is dropped.
#[derive(Debug)]
pub(crate) struct MemoryFolder(PathBuf);

impl MemoryFolder {
    /// `None` where there is not enough memory for files, or where `TMPDIR` says already where they go.
    pub(crate) fn new() -> Option<Self> {
        if env::var_os("TMPDIR").is_some() || free_bytes(Path::new(MEMORY))? < FREE_MIN {
            return None;
        }
        let folder = Path::new(MEMORY).join(format!("duroxide-tests-{}", process::id()));
        fs::create_dir(&folder).ok()?;
        Some(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for MemoryFolder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let output = Command::new("df").args(["--output=avail", "-B1"]).arg(folder).output().ok()?;
    String::from_utf8(output.stdout).ok()?.lines().nth(1)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_known_where_files_can_be_in_memory() {
        assert_eq!(free_bytes(Path::new(MEMORY)).is_some(), Path::new(MEMORY).is_dir());
        assert_eq!(free_bytes(Path::new("/no such folder")), None);
    }
}
