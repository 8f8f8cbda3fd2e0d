//! The one absolute path of a database file, however it was spelled.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// As many links as SQLite follows.
const LINKS_MAX: usize = 100;

/// The absolute path without symbolic links of a file, which need not exist yet. SQLite keeps its log next to that
/// path.
///
/// # Errors
/// If its folder cannot be found, or links lead in a circle.
pub(super) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        // The file is missing, or it is a link to a missing file: that is the one SQLite makes.
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => return beside_others(&path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// A missing file in a folder that exists.
fn beside_others(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(fs::canonicalize(folder_of(path))?.join(name))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path in one of SQLite's `file:` URIs, or the text itself if it is none; `None` if the file is on another host.
/// SQLite would read such a URI itself, but the other code that opens the file would not.
pub(super) fn without_file_scheme(text: &str) -> Option<&str> {
    let Some(rest) = text.strip_prefix("file:") else { return Some(text) };
    let Some(with_host) = rest.strip_prefix("//") else { return Some(rest) };
    let path = with_host.strip_prefix("localhost").unwrap_or(with_host);
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        (folder, path)
    }

    #[test]
    fn a_missing_file_has_the_path_it_will_have() {
        let (_keep, folder) = temporary();
        fs::create_dir(folder.join("sub")).unwrap();
        let real = folder.join("a.db");
        assert_eq!(real_path(&folder.join("sub/.././a.db")).unwrap(), real);
        fs::write(&real, "").unwrap();
        assert_eq!(real_path(&folder.join("sub/.././a.db")).unwrap(), real);
        assert!(real_path(&folder.join("missing/a.db")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_file_behind_them_whether_it_is_there_or_not() {
        use std::os::unix::fs::symlink;
        let (_keep, folder) = temporary();
        fs::create_dir(folder.join("real")).unwrap();
        symlink("real/a.db", folder.join("link.db")).unwrap();
        symlink("real", folder.join("folder")).unwrap();
        let real = folder.join("real/a.db");
        for file_exists in [false, true] {
            assert_eq!(real_path(&folder.join("link.db")).unwrap(), real, "{file_exists}");
            assert_eq!(real_path(&folder.join("folder/a.db")).unwrap(), real, "{file_exists}");
            fs::write(&real, "").unwrap();
        }
        symlink("round.db", folder.join("round.db")).unwrap();
        assert!(real_path(&folder.join("round.db")).is_err());
    }
}
