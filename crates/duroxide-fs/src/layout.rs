//! Paths of the files of a store.

use std::path::{Path, PathBuf};

use duroxide_peek_lock::{QueueItemId, WhichQueue};

/// Longer names are truncated and end in a hash. File systems allow 255 bytes.
const NAME_BYTES_MAX: usize = 200;
/// The readable part of a truncated name.
const NAME_BYTES_KEPT: usize = 150;

/// The folder of a store.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn format(&self) -> PathBuf {
        self.root.join("format.json")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(crate) fn unfinished(&self) -> PathBuf {
        self.root.join("unfinished.json")
    }

    pub(crate) fn instances(&self) -> PathBuf {
        self.root.join("instances")
    }

    /// The path to which a folder is renamed before its files are deleted.
    pub(crate) fn deleted(&self) -> PathBuf {
        self.root.join("deleted")
    }

    pub(crate) fn dead_letters(&self) -> PathBuf {
        self.root.join("dead-letters")
    }

    pub(crate) fn dead_letter(&self, number: u64) -> PathBuf {
        self.dead_letters().join(numbered(number))
    }

    pub(crate) fn instance(&self, instance: &str) -> InstanceFolder {
        InstanceFolder { path: self.instances().join(safe_name(instance)) }
    }

    pub(crate) fn item(&self, id: &QueueItemId) -> PathBuf {
        self.instance(&id.instance).queue(id.queue).join(numbered(id.number))
    }
}

/// The folder of an instance.
#[derive(Debug, Clone)]
pub(crate) struct InstanceFolder {
    pub(crate) path: PathBuf,
}

impl InstanceFolder {
    pub(crate) fn record(&self) -> PathBuf {
        self.path.join("instance.json")
    }

    pub(crate) fn execution(&self, execution_id: u64) -> PathBuf {
        self.path.join(format!("execution-{execution_id}.json"))
    }

    pub(crate) fn history(&self, execution_id: u64) -> PathBuf {
        self.path.join(format!("history-{execution_id}.jsonl"))
    }

    pub(crate) fn queue(&self, queue: WhichQueue) -> PathBuf {
        self.path.join(match queue {
            WhichQueue::Orchestrator => "inbox",
            WhichQueue::Worker => "activities",
        })
    }
}

/// The file name of a numbered row. Names sort like the numbers.
fn numbered(number: u64) -> String {
    format!("{number:020}.json")
}

/// The number in a file name.
pub(crate) fn number_of(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

/// The file name of an instance id. Names are unique on every file system, also on those that ignore case.
pub(crate) fn safe_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            b'A'..=b'Z' => {
                name.push('+');
                name.push(char::from(byte.to_ascii_lowercase()));
            }
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    if name.is_empty() {
        return "%".to_owned();
    }
    if name.len() > NAME_BYTES_MAX {
        name.truncate(NAME_BYTES_KEPT);
        name.push_str(&format!("~{:032x}", hash(id)));
    }
    name
}

/// Whether the file name of an id is truncated, so that another id could have the same name.
pub(crate) fn is_shortened(id: &str) -> bool {
    safe_name(id).contains('~')
}

/// FNV-1a with 128 bits: the same on every machine and in every version.
fn hash(text: &str) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_is_readable_and_safe() {
        assert_eq!(safe_name("Order-17"), "+order-17");
        assert_eq!(safe_name("a::sub::2"), "a%3a%3asub%3a%3a2");
        assert_eq!(safe_name("../etc/passwd"), "%2e%2e%2fetc%2fpasswd");
        assert_eq!(safe_name("ä"), "%c3%a4");
        assert_eq!(safe_name(""), "%");
    }

    #[test]
    fn different_ids_have_different_names_on_any_file_system() {
        let long = "x".repeat(500);
        let ids = ["a", "A", "+a", "%61", "", "%", ".", "..", "a/b", "a\\b", "a\0b", "con", &long];
        let names: BTreeSet<_> = ids.iter().map(|id| safe_name(id).to_lowercase()).collect();
        assert_eq!(names.len(), ids.len());
        assert!(names.iter().all(|name| name.len() <= NAME_BYTES_MAX));
        assert_ne!(safe_name(&format!("{long}1")), safe_name(&format!("{long}2")));
    }
}
