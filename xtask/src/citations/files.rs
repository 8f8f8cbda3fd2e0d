//! The files that may cite.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Extensions of files with citations: sources and documents.
const KINDS: [&str; 3] = ["rs", "sql", "md"];

/// Folders of generated files.
const MADE_BY_TOOLS: [&str; 2] = ["target", "mutants.out"];

/// The paths of all sources and documents below a folder, relative to it, sorted.
pub(super) fn below(root: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    collect(root, &mut files).map_err(|error| format!("cannot list {}: {error}", root.display()))?;
    let relative = files.iter().map(|file| file.strip_prefix(root).unwrap_or(file).to_string_lossy());
    let mut paths: Vec<String> = relative.map(|path| path.replace('\\', "/")).collect();
    paths.sort();
    Ok(paths)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            if !name.starts_with('.') && !MADE_BY_TOOLS.contains(&name.as_str()) {
                collect(&entry.path(), files)?;
            }
        } else if name.rsplit_once('.').is_some_and(|(_, kind)| KINDS.contains(&kind)) {
            files.push(entry.path());
        }
    }
    Ok(())
}
