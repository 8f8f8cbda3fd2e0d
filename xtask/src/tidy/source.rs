//! The source files of the workspace.

use std::{fs, path::Path};

/// The folders of our source.
const ROOTS: &[&str] = &["bench", "crates", "examples", "testing", "xtask"];

/// A source file with its text.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// From the workspace root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Whether ARCHITECTURE.md names the files of this package. Each of the small ones of `bench` and `testing/beside` is a program or two.
pub(crate) fn is_mapped(package: &str) -> bool {
    let beside = package.starts_with("testing/beside");
    package == "xtask" || package.starts_with("crates/") || (package.starts_with("testing/") && !beside)
}

impl SourceFile {
    /// Crate folder and path below its `src`, for a file of a crate that is no test.
    pub(crate) fn product_place(&self) -> Option<(&str, &str)> {
        let (package, inner) = self.mapped_place()?;
        Some((package.strip_prefix("crates/")?, inner))
    }

    /// Package folder and path below its `src`, for a file that is no test of a package whose files ARCHITECTURE.md names.
    pub(crate) fn mapped_place(&self) -> Option<(&str, &str)> {
        let (package, inner) = self.path.split_once("/src/")?;
        let is_test = |part: &str| matches!(part, "tests" | "tests.rs" | "fixture" | "fixture.rs");
        (is_mapped(package) && !inner.split('/').any(is_test)).then_some((package, inner))
    }

    /// The folder of the file.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// All source files below a workspace root, in order.
pub(crate) fn files_below(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut files = Vec::new();
    for folder in ROOTS {
        collect(root, folder, &mut files)?;
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn collect(root: &Path, folder: &str, files: &mut Vec<SourceFile>) -> Result<(), String> {
    let unreadable = |path: &str, error: std::io::Error| format!("cannot read {path}: {error}");
    for entry in fs::read_dir(root.join(folder)).map_err(|error| unreadable(folder, error))? {
        let entry = entry.map_err(|error| unreadable(folder, error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if entry.path().is_dir() {
            if name != "target" {
                collect(root, &path, files)?;
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).map_err(|error| unreadable(&path, error))?;
            files.push(SourceFile { path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> Option<(&str, &str)> {
        let file = SourceFile { path: path.to_owned(), text: String::new() };
        let inner = file.product_place()?.1.len();
        let (rest, inner) = path.split_at(path.len() - inner);
        Some((rest.strip_prefix("crates/")?.strip_suffix("/src/")?, inner))
    }

    #[test]
    fn tests_and_tools_are_not_product() {
        assert_eq!(place("crates/a/src/b/c.rs"), Some(("a", "b/c.rs")));
        for other in [
            "crates/a/tests/b.rs",
            "crates/a/src/b/tests.rs",
            "crates/a/src/b/tests/c.rs",
            "crates/a/src/fixture/b.rs",
            "xtask/src/main.rs",
        ] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
