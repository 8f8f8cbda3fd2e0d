//! `export`: histories as files that tests can replay.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
};

use clap::Args;
use duroxide::client::RecordedHistory;

use crate::{
    command::Context,
    exit::{Exit, Failure, Outcome},
    output::note,
    selection::Ids,
};

/// `export`
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    ids: Ids,
    /// Write a file for each instance into this folder, instead of stdout
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long, requires = "into")]
    replace: bool,
}

impl Export {
    pub(crate) async fn run(&self, context: &Context<'_>) -> Outcome {
        let ids = self.ids.read()?;
        if self.into.is_none() && ids.len() > 1 {
            return Err(Failure::usage("several histories do not fit into one stream")
                .advise("--into FOLDER writes a file for each"));
        }
        let store = context.reader().await?;
        for id in &ids {
            store.begun_instance(id).await?;
            let history = store.client.export_history(id).await?;
            match &self.into {
                None => context.out.write(&json(&history)?)?,
                Some(folder) => {
                    let path = folder.join(file_name(id));
                    self.write(&path, &json(&history)?)?;
                    context.out.write(&format!("{}\n", path.display()))?;
                }
            }
        }
        note("histories have inputs and results in them: look at them before you share them");
        Ok(Exit::Done)
    }

    fn write(&self, path: &PathBuf, json: &str) -> Outcome<()> {
        if path.exists() && !self.replace {
            return Err(
                Failure::refused(format!("{} exists", path.display())).advise("--replace writes over it")
            );
        }
        fs::write(path, json).map_err(|error| {
            Failure::failed(format!("cannot write {}: {error}", path.display()))
                .advise("the folder must exist and be writable")
        })
    }
}

fn json(history: &RecordedHistory) -> Outcome<String> {
    history.to_json().map_err(|error| Failure::failed(error.to_string()))
}

/// The longest part of an id that a file name shows: file systems allow 255 bytes.
const SHOWN_MAX: usize = 200;

/// The file name of an id, harmless for any characters in the id, and different for every id: where a long id is cut, its
/// hash follows.
fn file_name(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    // A name must not begin with a dot. A character that is replaced ends with `~`, which is never left as it is.
    let name: String = id
        .chars()
        .enumerate()
        .map(|(at, c)| {
            if is_plain(c) || (c == '.' && at > 0) { c.to_string() } else { format!("%{:x}~", u32::from(c)) }
        })
        .collect();
    match name.get(..SHOWN_MAX) {
        Some(shown) if name.len() > SHOWN_MAX => {
            let mut hasher = DefaultHasher::new();
            id.hash(&mut hasher);
            format!("{shown}~{:016x}.json", hasher.finish())
        }
        _ => format!("{name}.json"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_leave_its_folder() {
        assert_eq!(file_name("order-1.a_B"), "order-1.a_B.json");
        assert_eq!(file_name("../../etc/passwd"), "%2e~.%2f~..%2f~etc%2f~passwd.json");
        assert_eq!(file_name("/abs"), "%2f~abs.json");
        assert_eq!(file_name(""), ".json");
        assert!(file_name(&"ä".repeat(1_000)).len() < 230);
    }

    #[test]
    fn ids_that_differ_have_files_that_differ() {
        let long = "ä".repeat(1_000);
        let pairs = [("a/b", "a%2fb"), ("ä", "\u{e}4"), ("a/b", "a%2f~b"), (&long, &format!("{long}b"))];
        for (one, other) in pairs {
            assert_ne!(file_name(one), file_name(other));
        }
    }
}
