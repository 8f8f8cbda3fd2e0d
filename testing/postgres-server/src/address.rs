//! The address of a server, passed from one process to another.

use std::path::PathBuf;

/// The environment variable in which `postgres-server` names the server of a test run.
const OF_TEST_RUN: &str = "DUROXIDE_TEST_POSTGRES";

/// The folder of a server's socket, and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The folder of data, socket and log.
    pub folder: PathBuf,
    /// The loopback port, which also names the socket.
    pub port: u16,
}

impl Address {
    /// The server that was started for the whole test run, if this process belongs to one.
    pub(crate) fn of_test_run() -> Option<Self> {
        let text = std::env::var(OF_TEST_RUN).ok()?;
        Some(Self::parse(&text).unwrap_or_else(|| panic!("{OF_TEST_RUN} is no address: {text}")))
    }

    /// The environment variable with the address, for child processes.
    pub fn variable(&self) -> (&'static str, String) {
        (OF_TEST_RUN, format!("{}:{}", self.port, self.folder.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let (port, folder) = text.split_once(':')?;
        Some(Self { folder: folder.into(), port: port.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let address = Address { folder: "/tmp/a:b c".into(), port: 5_432 };
        assert_eq!(Address::parse(&address.variable().1), Some(address));
        assert_eq!(Address::parse("/tmp"), None);
    }
}
