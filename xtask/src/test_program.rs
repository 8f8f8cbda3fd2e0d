//! [`TestProgram`]: building and running compiled test programs.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

/// One compiled test program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    pub(crate) name: String,
    pub(crate) target: String,
    executable: PathBuf,
    package_folder: PathBuf,
}

impl TestProgram {
    /// Runs the program where cargo would run it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.package_folder);
        command
    }
}

/// Builds the test programs of the workspace in `folder` that `selection`, arguments of `cargo test`, chooses.
pub(crate) fn build<'a>(
    folder: &str,
    selection: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<TestProgram>, String> {
    let output = Command::new("cargo")
        .args(["test", "--no-run", "--message-format=json-render-diagnostics"])
        .args(selection)
        .current_dir(Path::new(folder))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not compile".to_owned());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(test_program).collect())
}

/// The test program that a message of cargo announces, if it does.
fn test_program(message: &str) -> Option<TestProgram> {
    let artifact: Artifact = serde_json::from_str(message).ok()?;
    if !artifact.profile.test {
        return None;
    }
    let package_folder = artifact.manifest_path.parent()?.to_owned();
    let package = package_folder.file_name()?.to_str()?;
    Some(TestProgram {
        name: format!("{package}-{}", artifact.target.name),
        target: artifact.target.name,
        executable: artifact.executable?,
        package_folder,
    })
}

/// A message of cargo about a built target. Its other messages lack these fields.
#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_cargos_messages() {
        let message = serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": "/w/crates/duroxide/Cargo.toml",
            "target": {"name": "orders"},
            "profile": {"test": true},
            "executable": "/w/target/debug/deps/orders-1",
        });
        let program = test_program(&message.to_string()).unwrap();
        assert_eq!((program.name.as_str(), program.target.as_str()), ("duroxide-orders", "orders"));
        assert_eq!(program.executable, Path::new("/w/target/debug/deps/orders-1"));
    }

    #[test]
    fn libraries_and_other_lines_are_not_test_programs() {
        let library = r#"{"manifest_path":"/w/Cargo.toml","target":{"name":"lib"},"profile":{"test":false},"executable":null}"#;
        assert_eq!(test_program(library), None);
        assert_eq!(test_program("Compiling duroxide"), None);
    }
}
