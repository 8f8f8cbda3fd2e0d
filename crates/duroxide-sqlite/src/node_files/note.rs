//! A note in a node's file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    sync::Arc,
};

use duroxide_store::{NodeLock, NodeNote};

/// Notes have this length, filled up with spaces: a shorter one overwrites a longer one in a single write.
const NOTE_BYTES: usize = 128;

/// The lock of an open file, with the file's text as its note.
pub(super) fn lock_with_note(file: File) -> NodeLock {
    let file = Arc::new(file);
    NodeLock::new(Arc::clone(&file)).with_note(FileNote { file })
}

/// The text of a node's file. The system has it as soon as it is written, so it survives the process.
struct FileNote {
    file: Arc<File>,
}

impl FileNote {
    fn try_write(&self, text: &str) -> io::Result<()> {
        let mut file = self.file.as_ref();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(format!("{text:NOTE_BYTES$}").as_bytes())
    }

    fn try_read(&self) -> io::Result<String> {
        let mut file = self.file.as_ref();
        file.seek(SeekFrom::Start(0))?;
        let mut text = String::new();
        file.take(NOTE_BYTES as u64).read_to_string(&mut text)?;
        Ok(text)
    }
}

impl NodeNote for FileNote {
    fn write(&self, text: &str) {
        if let Err(error) = self.try_write(text) {
            tracing::debug!(target: "duroxide::providers::sqlite", %error, "a node's note could not be written");
        }
    }

    fn read(&self) -> String {
        self.try_read().unwrap_or_default().trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.33
    #[test]
    fn the_last_note_is_read_by_another_handle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note");
        let ours = FileNote { file: Arc::new(File::create_new(&path).unwrap()) };
        let theirs = || FileNote { file: Arc::new(File::open(&path).unwrap()) };
        assert_eq!(theirs().read(), "");
        ours.write("activity 12-0123456789");
        ours.write("instance 7-ab");
        assert_eq!(theirs().read(), "instance 7-ab");
        ours.write("");
        assert_eq!(theirs().read(), "");
    }
}
