//! A proxy in front of a server that loses connections in the middle of a commit.

use std::{
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

/// A simple query, as it stands between other messages of a pipeline.
const COMMIT: &[u8] = b"COMMIT\0";

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

    /// Every fifth commit is cut off, one time before it arrives, one time after.
    fn next(&self) -> Option<Cut> {
        match self.commits.fetch_add(1, Ordering::SeqCst) % 10 {
            4 => Some(Cut::AfterCommit),
            9 => Some(Cut::BeforeCommit),
            _ => None,
        }
    }
}

/// Starts a proxy for the server on this loopback port. Returns its own port.
pub async fn start(server: u16) -> (u16, Arc<Counts>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let counts = Arc::new(Counts::default());
    let shared = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, server, Arc::clone(&shared)));
        }
    });
    (port, counts)
}

/// Passes on what both sides say, until one ends or a commit is cut off. Dropping the streams ends both.
async fn serve(mut client: TcpStream, port: u16, counts: Arc<Counts>) -> std::io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let bytes = &asked[..read?];
                let cut = if ends_with_commit(bytes) { counts.next() } else { None };
                match cut {
                    _ if bytes.is_empty() => return Ok(()),
                    Some(Cut::BeforeCommit) => {
                        counts.lost_commits.fetch_add(1, Ordering::SeqCst);
                        return Ok(());
                    }
                    Some(Cut::AfterCommit) => {
                        server.write_all(bytes).await?;
                        if has_committed(&mut server).await {
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

/// A pipeline ends with its commit.
fn ends_with_commit(bytes: &[u8]) -> bool {
    bytes.ends_with(COMMIT)
}

/// Waits until the server says that it has committed. It may say that it has rolled back instead.
async fn has_committed(server: &mut TcpStream) -> bool {
    let mut seen = Vec::new();
    let mut bytes = vec![0; 1 << 16];
    let answer = async {
        while let Ok(read @ 1..) = server.read(&mut bytes).await {
            seen.extend_from_slice(&bytes[..read]);
            if seen.windows(COMMIT.len()).any(|window| window == COMMIT) {
                return true;
            }
        }
        false
    };
    timeout(Duration::from_secs(5), answer).await.unwrap_or(false)
}
