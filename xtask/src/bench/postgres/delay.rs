//! A proxy that makes every round trip to the server longer, as a network does.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

/// Added on the way to the server, and again on the way back.
const EACH_WAY: Duration = Duration::from_micros(500);

/// Listens on a loopback port until the process ends.
#[derive(Debug)]
pub(super) struct DelayingProxy {
    port: u16,
}

impl DelayingProxy {
    /// Passes connections on to a port of this machine.
    pub(super) fn start(to: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A connection that cannot be made is closed, and its client tries again.
                let _ = pass_on(client, to);
            }
        });
        Ok(Self { port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

fn pass_on(client: TcpStream, to: u16) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", to))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    carry(client.try_clone()?, server.try_clone()?);
    carry(server, client);
    Ok(())
}

/// Carries bytes in one direction. Reading goes on while earlier bytes are delayed, so bandwidth is not limited.
fn carry(from: TcpStream, to: TcpStream) {
    let (sender, receiver) = channel();
    thread::spawn(move || read(from, &sender));
    thread::spawn(move || write(to, &receiver));
}

type OnItsWay = (Instant, Vec<u8>);

fn read(mut from: TcpStream, sender: &Sender<OnItsWay>) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let chunk = bytes.get(..length).unwrap_or_default().to_vec();
        if sender.send((Instant::now() + EACH_WAY, chunk)).is_err() {
            return;
        }
    }
}

fn write(mut to: TcpStream, receiver: &Receiver<OnItsWay>) {
    for (arrives_at, bytes) in receiver {
        thread::sleep(arrives_at.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // The other side has closed its end; the one thing that can go wrong is that this side did, too.
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_takes_a_millisecond_more_and_bytes_arrive_in_order() {
        let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let proxy = DelayingProxy::start(server.local_addr().unwrap().port()).unwrap();
        thread::spawn(move || {
            let (mut echo, _) = server.accept().unwrap();
            let mut bytes = [0; 4];
            while echo.read_exact(&mut bytes).is_ok() {
                echo.write_all(&bytes).unwrap();
            }
        });
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        for number in 0..20_u32 {
            let begin = Instant::now();
            client.write_all(&number.to_be_bytes()).unwrap();
            let mut answer = [0; 4];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(u32::from_be_bytes(answer), number);
            assert!(begin.elapsed() >= 2 * EACH_WAY);
        }
    }
}
