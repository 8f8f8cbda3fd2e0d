//! A proxy in front of a server that loses connections in the middle of a commit.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// A simple query between other messages of a pipeline.
const COMMIT: &[u8] = b"COMMIT\0";
/// The message that ends a prepared statement.
const SYNC: &[u8] = b"S\0\0\0\x04";
/// How statements begin that write: those of batches, and that of an event for an instance that waits for it.
pub const BATCHES: &[u8] = b"\0WITH part_0 AS (";
pub const EVENTS: &[u8] = b"\0WITH woken AS ";
/// The server's messages after a statement that writes all its tables, and when it is ready outside and inside a
/// transaction.
const WROTE: &[u8] = b"SELECT 1\0";
const IDLE: &[u8] = b"Z\0\0\0\x05I";
const IN_TRANSACTION: &[u8] = b"Z\0\0\0\x05T";

/// How a connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The server commits, and its answer does not arrive.
    AfterCommit,
    /// The server never sees the commit.
    BeforeCommit,
}

/// Counts commits, and those that it cut off.
#[derive(Debug, Default)]
pub struct Counts {
    commits: AtomicUsize,
    lost_answers: AtomicUsize,
    lost_commits: AtomicUsize,
}

impl Counts {
    pub fn lost_answers(&self) -> usize {
        self.lost_answers.load(Ordering::SeqCst)
    }

    pub fn lost_commits(&self) -> usize {
        self.lost_commits.load(Ordering::SeqCst)
    }

    /// Every tenth commit is cut off, before it arrives or after: whichever has succeeded less often.
    fn next(&self) -> Option<Cut> {
        let is_cut = self.commits.fetch_add(1, Ordering::SeqCst) % 10 == 9;
        let cut =
            if self.lost_answers() <= self.lost_commits() { Cut::AfterCommit } else { Cut::BeforeCommit };
        is_cut.then_some(cut)
    }
}

/// Starts a proxy for the server on this loopback port, which cuts off commits of statements that begin so. Returns its own port.
pub async fn start(server: u16, writes: &'static [&[u8]]) -> (u16, Arc<Counts>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let counts = Arc::new(Counts::default());
    let shared = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, server, Statements::new(writes), Arc::clone(&shared)));
        }
    });
    (port, counts)
}

/// Forwards the bytes of both sides, until one ends or a commit is cut off. Dropping the streams ends both.
async fn serve(
    mut client: TcpStream,
    port: u16,
    mut statements: Statements,
    counts: Arc<Counts>,
) -> std::io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let bytes = &asked[..read?];
                let cut = if statements.commit_with(bytes) { counts.next() } else { None };
                match cut {
                    _ if bytes.is_empty() => return Ok(()),
                    Some(Cut::BeforeCommit) => {
                        counts.lost_commits.fetch_add(1, Ordering::SeqCst);
                        return Ok(());
                    }
                    Some(Cut::AfterCommit) => {
                        server.write_all(bytes).await?;
                        if has_committed(&mut server, bytes.ends_with(COMMIT)).await {
                            counts.lost_answers.fetch_add(1, Ordering::SeqCst);
                        }
                        return Ok(());
                    }
                    None => server.write_all(bytes).await?,
                }
            }
            read = server.read(&mut answered) => {
                let bytes = &answered[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}

/// The prepared statements of a connection that write. Outside a transaction each of them commits by itself.
struct Statements {
    writes: &'static [&'static [u8]],
    names: BTreeSet<Vec<u8>>,
    /// Whether one of them is being sent.
    is_writing: bool,
}

impl Statements {
    fn new(writes: &'static [&'static [u8]]) -> Self {
        Self { writes, names: BTreeSet::new(), is_writing: false }
    }

    /// Whether these bytes end a pipeline that writes and commits.
    fn commit_with(&mut self, bytes: &[u8]) -> bool {
        for at in self.writes.iter().flat_map(|text| positions(bytes, text)) {
            // The name is an `s` and a number. A length precedes it, which may be any bytes.
            let name = bytes[..at].rsplit(|byte| *byte == b's').next().unwrap_or_default();
            self.names.insert([b"s", name].concat());
        }
        self.is_writing |= self.names.iter().any(|name| is_bound(bytes, name));
        let is_end = bytes.ends_with(SYNC) || bytes.ends_with(COMMIT);
        is_end && std::mem::take(&mut self.is_writing)
    }
}

/// Whether a statement gets its parameters: the message has a length, an empty name of a portal, and the statement's name.
fn is_bound(bytes: &[u8], name: &[u8]) -> bool {
    let named = [b"\0", name, b"\0"].concat();
    positions(bytes, &named).any(|at| at >= 5 && bytes[at - 5] == b'B')
}

fn positions(bytes: &[u8], text: &[u8]) -> impl Iterator<Item = usize> {
    bytes.windows(text.len()).enumerate().filter(move |(_, window)| *window == text).map(|(at, _)| at)
}

/// Waits for the server's answer to the commit. `false` if it has rolled back, or the transaction goes on.
async fn has_committed(server: &mut TcpStream, by_command: bool) -> bool {
    let mut seen = Vec::new();
    let mut bytes = vec![0; 1 << 16];
    let answer = async {
        while let Ok(read @ 1..) = server.read(&mut bytes).await {
            seen.extend_from_slice(&bytes[..read]);
            let has_seen = |text| positions(&seen, text).next().is_some();
            if by_command && has_seen(COMMIT) {
                return true;
            }
            if !by_command && (seen.ends_with(IDLE) || seen.ends_with(IN_TRANSACTION)) {
                return seen.ends_with(IDLE) && has_seen(WROTE);
            }
        }
        false
    };
    timeout(Duration::from_secs(5), answer).await.unwrap_or(false)
}
