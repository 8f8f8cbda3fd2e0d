//! Why a store cannot be opened, with the remedy.

use tokio_postgres::error::SqlState;

use crate::{PostgresOptions, connection::ConnectFault, database_error::DatabaseError};

/// Why a store cannot be opened. Nothing was written, except that another process may have made the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The connection string cannot be read.
    #[error(
        "no connection string: {message} (write postgres://user@host/database or host=... user=... dbname=...; \
         sslmode is disable, prefer or require, which verifies as verify-full does elsewhere)"
    )]
    Url {
        /// The error.
        message: String,
    },
    /// No server answers in time.
    #[error(
        "cannot reach PostgreSQL: {message} (check host and port, and that the server runs and takes connections)"
    )]
    Connect {
        /// The cause, as far as known.
        message: String,
    },
    /// The connection cannot be encrypted as `sslmode` asks for.
    #[error(
        "cannot encrypt the connection to PostgreSQL: {message} (the server must offer TLS; build with the feature \
         postgres-rustls or postgres-native-tls; sslmode=require needs a certificate that is trusted and for this host: set \
         PostgresOptions::tls to trust another one)"
    )]
    Tls {
        /// The cause, as far as known.
        message: String,
    },
    /// The server, or a pooler in front of it, refuses the login: user, password or database is wrong, or there is no password.
    #[error(
        "PostgreSQL refuses the connection: {message} (check user, password, dbname and the server's pg_hba.conf)"
    )]
    Refused {
        /// The server's message.
        message: String,
    },
    /// [`PostgresOptions::password`](crate::PostgresOptions::password) has failed, or has not answered in time.
    #[error("PostgresOptions::password gives no password for the connection to PostgreSQL: {message}")]
    Password {
        /// Its error.
        message: String,
    },
    /// A pooler does not pass the settings of a connection on.
    #[error(
        "a pooler refuses the connection: {message} (open the store with PostgresOptions::behind_pooler, or connect to \
         the server itself)"
    )]
    Pooler {
        /// The pooler's message.
        message: String,
    },
    /// The server, or a pooler in front of it, takes no more connections.
    #[error(
        "PostgreSQL takes no more connections: {message} (a provider needs {needed}: raise max_connections, or max_client_conn of a \
         pooler, run fewer processes, or put a pooler in front)"
    )]
    TooManyConnections {
        /// The server's message.
        message: String,
        /// How many connections a provider opens.
        needed: usize,
    },
    /// The server is older than those that are tested.
    #[error("the server is PostgreSQL {found}, and {oldest} or later is needed: upgrade the server")]
    TooOld {
        /// Its major version.
        found: i32,
        /// The oldest major version that will do.
        oldest: i32,
    },
    /// The server only reads: it is a standby, or sessions are read-only by default.
    #[error(
        "the server is read-only: connect to the primary (with several hosts: target_session_attrs=read-write), or \
         set default_transaction_read_only=off for this role"
    )]
    ReadOnly,
    /// [`PostgresOptions::session_config`](field@crate::PostgresOptions::session_config) leads to another database than
    /// [`PostgresOptions::config`](crate::PostgresOptions::config): notifications and locks of nodes would reach nobody.
    #[error(
        "the session connection reaches another database ({session}) than the other connections ({store}): correct \
         PostgresOptions::session_config, or PostgresOptions::config, so that both lead to the same database of the same server"
    )]
    OtherDatabase {
        /// The database of the session connection.
        session: String,
        /// The database of the other connections.
        store: String,
    },
    /// The role lacks a privilege.
    #[error(
        "the role may not use schema {schema}: {message} (let its owner open the store once, and grant the role usage \
         of the schema and select, insert, update and delete on its tables; see docs/postgres.md)"
    )]
    Denied {
        /// The name of the schema.
        schema: String,
        /// The server's message.
        message: String,
    },
    /// The schema holds tables, views, sequences or types of another program, and no store.
    #[error(
        "schema {schema} is not duroxide's ({message}): name another schema, or an empty one (PostgresOptions::schema)"
    )]
    ForeignSchema {
        /// The name of the schema.
        schema: String,
        /// The finding.
        message: String,
    },
    /// The schema cannot be made or read.
    #[error("cannot prepare schema {schema}: {message}")]
    Prepare {
        /// The name of the schema.
        schema: String,
        /// The database's message.
        message: String,
    },
    /// The schema has no store, and making one was not allowed.
    #[error("there is no duroxide store in schema {schema}: start a node on it first, which makes it")]
    Missing {
        /// The name of the schema.
        schema: String,
    },
    /// An older duroxide has made the schema, and it was not to be changed.
    #[error(
        "schema {schema} has version {found}, and this build has version {known}: start a node of this release on it \
         once, which brings it up to date"
    )]
    OlderSchema {
        /// The name of the schema.
        schema: String,
        /// Its version.
        found: i64,
        /// The version of this build.
        known: i64,
    },
    /// A newer duroxide has changed the schema.
    #[error(
        "schema {schema} has version {found}, and this build knows versions up to {known}: use a newer build"
    )]
    NewerSchema {
        /// The name of the schema.
        schema: String,
        /// Its version.
        found: i64,
        /// The newest version that is known.
        known: i64,
    },
}

impl OpenError {
    /// Why no connection was made with these options, of `needed` ones.
    pub(crate) fn of_connection(error: DatabaseError, options: &PostgresOptions, needed: usize) -> Self {
        let fault = error.connect_fault;
        let message = error.into_failure().message;
        match fault {
            ConnectFault::Unreachable => Self::Connect { message },
            ConnectFault::ReadOnly => Self::ReadOnly,
            ConnectFault::Full => Self::TooManyConnections { message, needed },
            // A pooler that is known to be one has another reason.
            ConnectFault::Pooler if options.is_pooled() => Self::Refused { message },
            ConnectFault::Pooler => Self::Pooler { message },
            ConnectFault::Login => Self::Refused { message },
            ConnectFault::Tls => Self::Tls { message },
            ConnectFault::PasswordSource => Self::Password { message },
        }
    }

    /// Why the schema cannot be used.
    pub(crate) fn of_schema(error: DatabaseError, schema: &str) -> Self {
        let schema = schema.to_owned();
        if error.has_code(&SqlState::READ_ONLY_SQL_TRANSACTION) {
            return Self::ReadOnly;
        }
        if error.is_lost_connection() {
            return Self::Connect { message: error.into_failure().message };
        }
        let is_denied = error.has_code(&SqlState::INSUFFICIENT_PRIVILEGE);
        let is_foreign = error.has_code(&SqlState::DUPLICATE_TABLE);
        let message = error.into_failure().message;
        match (is_denied, is_foreign) {
            (true, _) => Self::Denied { schema, message },
            (_, true) => Self::ForeignSchema { schema, message },
            _ => Self::Prepare { schema, message },
        }
    }
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        let message = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Self::Url { message }
    }
}
