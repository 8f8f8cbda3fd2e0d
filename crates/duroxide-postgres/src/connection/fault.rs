//! [`ConnectFault`]: why there is no connection.

use std::io;

use tokio_postgres::{Config, Error, config::TargetSessionAttrs, error::SqlState};

/// Why there is no connection. Of several hosts the greatest is reported: the more specific, and the more there is for the user
/// to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectFault {
    /// No server answers, or not as PostgreSQL does.
    #[default]
    Unreachable,
    /// The server only reads.
    ReadOnly,
    /// The server, or a pooler, takes no more connections.
    Full,
    /// A pooler refuses the connection.
    Pooler,
    /// The server refuses the login.
    Login,
    /// The connection cannot be encrypted as it has to be.
    Tls,
    /// There is no password to be had.
    PasswordSource,
}

impl ConnectFault {
    /// The fault of a connection that was made or begun.
    pub(crate) fn of(error: &Error) -> Self {
        match error.as_db_error() {
            Some(error) if error.message().starts_with(POOLER_FULL) => Self::Full,
            Some(error) => Self::of_code(error.code()),
            None if error.to_string() == TLS_FAILED => Self::Tls,
            None => Self::Unreachable,
        }
    }

    /// The fault of a connection that could not be made with this configuration.
    pub(crate) fn of_connecting(error: &Error, config: &Config) -> Self {
        let found = Self::of(error);
        let source = std::error::Error::source(error);
        if found != Self::Unreachable || error.as_db_error().is_some() {
            return found;
        }
        match source.map(|source| source.downcast_ref::<io::Error>()) {
            // The library refuses a server with this kind of error, which has no number of the system.
            Some(Some(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                let asks_for_writes = config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite;
                match error.raw_os_error().is_none() && asks_for_writes {
                    true => Self::ReadOnly,
                    false => Self::Unreachable,
                }
            }
            // The server asks for a password and there is none, or for a way of login that the library does not know. Whatever
            // else goes wrong while a connection is made has an I/O error as its source, or none.
            Some(None) => Self::Login,
            Some(Some(_)) | None => Self::Unreachable,
        }
    }

    fn of_code(code: &SqlState) -> Self {
        let refused = [
            SqlState::INVALID_PASSWORD,
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            SqlState::INVALID_CATALOG_NAME,
            SqlState::INSUFFICIENT_PRIVILEGE,
            // The session connection reaches another database than the other connections.
            SqlState::UNDEFINED_TABLE,
        ];
        if refused.contains(code) {
            return Self::Login;
        }
        [
            (SqlState::READ_ONLY_SQL_TRANSACTION, Self::ReadOnly),
            (SqlState::TOO_MANY_CONNECTIONS, Self::Full),
            (SqlState::PROTOCOL_VIOLATION, Self::Pooler),
        ]
        .into_iter()
        .find_map(|(known, fault)| (known == *code).then_some(fault))
        .unwrap_or_default()
    }
}

/// The error text of `tokio_postgres` for every connection that cannot be encrypted: after a failed handshake in any TLS
/// library, and if the server offers none. The kind of its errors is private, and the causes have no common type.
const TLS_FAILED: &str = "error performing TLS handshake";
/// The beginning of PgBouncer's error text when `max_client_conn` is reached. It has the code of all errors of PgBouncer, 08P01.
const POOLER_FULL: &str = "no more connections allowed";
