//! Finds out how long the log has got.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
};

/// Sizes of the file format: <https://www.sqlite.org/fileformat2.html#walformat>.
const LOG_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// A frame's header: its page, the salt of this pass over the log, and a checksum over all frames before it. No two
/// passes write the same.
type FrameHeader = [u8; FRAME_HEADER_BYTES as usize];

/// The file of the write-ahead log, opened to read its frames. SQLite takes its locks on other files, so that opening
/// and closing this one is safe.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    page_bytes: u64,
    file: Option<File>,
}

impl LogFile {
    pub(super) fn new(path: PathBuf, page_bytes: u64) -> Self {
        Self { path, page_bytes, file: None }
    }

    /// The header of a frame, counted from 0. Zeros for a missing frame.
    fn frame_header(&mut self, frame: u64) -> io::Result<FrameHeader> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.path)?),
        };
        let frame_bytes = FRAME_HEADER_BYTES + self.page_bytes;
        file.seek(SeekFrom::Start(LOG_HEADER_BYTES.saturating_add(frame.saturating_mul(frame_bytes))))?;
        let mut header = FrameHeader::default();
        match file.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(FrameHeader::default()),
            read => read.map(|()| header),
        }
    }
}

/// A frame of the log, as it was at the last check.
#[derive(Debug)]
pub(super) struct Mark {
    frame: u64,
    seen: FrameHeader,
}

impl Mark {
    /// A frame that was not checked yet: it has changed if it exists.
    pub(super) fn at(frame: u64) -> Self {
        Self { frame, seen: FrameHeader::default() }
    }

    /// Whether the frame was written since the last check. A file that cannot be read is checked again later.
    pub(super) fn changed(&self, file: &mut LogFile) -> bool {
        file.frame_header(self.frame).is_ok_and(|header| header != self.seen)
    }

    pub(super) fn renew(&mut self, file: &mut LogFile) {
        if let Ok(header) = file.frame_header(self.frame) {
            self.seen = header;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(frames: &[u8]) -> Vec<u8> {
        let mut log = vec![0; 32];
        frames.iter().for_each(|frame| log.extend([*frame; 24 + 512]));
        log
    }

    /// A log that was overwritten up to a frame has reached that frame again, whatever old frames follow.
    #[test]
    fn a_mark_changes_when_its_frame_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db-wal");
        let mut file = LogFile::new(path.clone(), 512);
        let mut mark = Mark::at(2);
        assert!(!mark.changed(&mut file), "no file");
        for (frames, changed) in
            [(&[1, 1][..], false), (&[1, 1, 1], true), (&[2, 2, 1, 1], false), (&[2, 2, 2, 1], true)]
        {
            // In place, as SQLite writes it.
            let writer = File::options().create(true).truncate(false).write(true).open(&path).unwrap();
            io::Write::write_all(&mut &writer, &log_of(frames)).unwrap();
            assert_eq!(mark.changed(&mut file), changed, "{frames:?}");
            mark.renew(&mut file);
            assert!(!mark.changed(&mut file), "{frames:?}");
        }
    }
}
