//! Looks up the addresses of a host.

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    thread,
};

use tokio::sync::oneshot;

/// The addresses of a host, by the system's resolver.
///
/// That blocks, for as long as no name server answers, and nothing ends it. A runtime waits for its blocking calls when it is
/// dropped, so the time limit of a connection would be exceeded there. A thread of its own is left behind instead.
pub(super) async fn lookup(host: &str) -> io::Result<Vec<IpAddr>> {
    match host.parse() {
        Ok(address) => Ok(vec![address]),
        Err(_) => ask(host, |host| Ok((host, 0).to_socket_addrs()?.collect())).await,
    }
}

async fn ask(
    host: &str,
    resolve: impl FnOnce(&str) -> io::Result<Vec<SocketAddr>> + Send + 'static,
) -> io::Result<Vec<IpAddr>> {
    let (host, (reply, answer)) = (host.to_owned(), oneshot::channel());
    thread::Builder::new()
        .name("duroxide-postgres-lookup".to_owned())
        .spawn(move || drop(reply.send(resolve(&host))))?;
    let found = answer.await.map_err(|_| io::Error::other("looking up the host panicked"))??;
    let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
    if addresses.is_empty() { Err(io::Error::other("the host has no address")) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, time::Duration};

    use tokio::{runtime::Builder, time::timeout};

    use super::*;

    /// The resolver answers when the connection was given up: dropping the runtime would wait for it for ever.
    #[test]
    fn a_slow_lookup_holds_up_nobody() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (answer, slow) = channel::<()>();
        let resolve = move |_: &str| {
            slow.recv().unwrap();
            Ok(Vec::new())
        };
        let looked_up =
            runtime.block_on(async { timeout(Duration::from_millis(1), ask("db", resolve)).await });
        assert!(looked_up.is_err(), "{looked_up:?}");
        drop(runtime);
        answer.send(()).unwrap();
    }

    #[tokio::test]
    async fn an_address_is_not_looked_up_and_a_host_without_one_is_an_error() {
        assert_eq!(lookup("::1").await.unwrap(), ["::1".parse::<IpAddr>().unwrap()]);
        let address = "192.0.2.7".parse::<IpAddr>().unwrap();
        let found = ask("db", move |_: &str| Ok(vec![SocketAddr::new(address, 0); 2])).await;
        assert_eq!(found.unwrap(), [address; 2]);
        assert!(ask("db", |_: &str| Ok(Vec::new())).await.is_err());
    }
}
