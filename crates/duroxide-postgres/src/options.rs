//! How a store is opened.

mod password;
mod schema_name;

use std::time::Duration;

use duroxide_provider::rules::RuleOptions;

pub use self::{
    password::PasswordSource,
    schema_name::{InvalidSchemaName, SchemaName},
};
use crate::{OpenError, Tls, connection::connect};

/// How long to wait for a connection, unless the connection string sets it.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for the answer to a round trip.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// A server that is silent for this long counts as lost, unless the connection string sets it.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Every statement finds its rows by an index, from values that it is given. The planner does not know that: without
/// statistics, as in a new schema or after many changes, it chooses scans that cost a thousand times more later. These
/// settings forbid them, and plans do not change with the number of rows.
const PLANNER: &str = "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off \
    -c plan_cache_mode=force_generic_plan";

/// How a store on PostgreSQL is opened.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The address of the database, and the role.
    pub config: tokio_postgres::Config,
    /// How connections are encrypted, if `sslmode` asks for it.
    pub tls: Tls,
    /// Where the password of each new connection comes from, if not from [`Self::config`].
    pub password: Option<PasswordSource>,
    /// The schema that holds the tables. It is created if it is missing.
    pub schema: SchemaName,
    /// Options of the storage rules.
    pub rules: RuleOptions,
    /// Whether to listen to notifications of other processes, on a connection of its own. That connection also holds the
    /// locks by which other processes detect the end of this one. Switch it off where no connection can be kept, as behind
    /// a pooler: then the store polls for changes every [`Self::poll_interval`], and the items of a dead process are ready
    /// when their leases end.
    pub notifications: bool,
    /// How often to ask the database for changes by other processes while there is no connection that listens.
    pub poll_interval: Duration,
    /// Where the session connection goes, if not where [`Self::config`] leads: if that is a pooler, the server behind it. Both must lead to
    /// the same database.
    pub session_config: Option<tokio_postgres::Config>,
    /// Whether [`Self::config`] leads to a pooler that gives each transaction any connection. Nothing is left on a
    /// connection then: no settings and no locks.
    pub transaction_pooler: bool,
    /// Whether to prepare statements, which saves the database their planning. Switch it off behind a pooler that gives each
    /// transaction another connection and does not track prepared statements (PgBouncer before `1.21`, or with
    /// `max_prepared_statements = 0`).
    pub prepared_statements: bool,
    /// Whether the turn after an activity runs while the transaction that stores the activity's result is open, so that one
    /// commit stores both. If such a turn kills its process, the result is lost with it, and the activity runs again. That counts
    /// as an attempt of both, and from then on every attempt of the turn is stored before it runs. Switch it off where a turn
    /// that kills its process must not make an activity run again.
    pub early_turns: bool,
    /// How long a round trip may take. A server that has not answered by then counts as dead: the connection is given up, the
    /// call fails as if the connection had been lost, and the next one makes another connection. Reads of the whole store (a
    /// snapshot, lists, counts) may take 20 times as long; upgrading a schema and copying a store have no limit. Until the schema
    /// was found, each round trip of opening a store is limited by the `connect_timeout` of [`Self::config`].
    pub answer_timeout: Duration,
}

impl PostgresOptions {
    /// Default options for a connection string such as `host=localhost user=app dbname=app` or
    /// `postgres://app@localhost/app`.
    ///
    /// # Errors
    /// If the string cannot be read.
    pub fn new(url: &str) -> Result<Self, tokio_postgres::Error> {
        let config = with_planner_settings(with_limits(url.parse()?));
        Ok(Self {
            config,
            tls: Tls::default(),
            password: None,
            schema: SchemaName::default(),
            rules: RuleOptions::default(),
            notifications: true,
            poll_interval: Duration::from_millis(200),
            session_config: None,
            transaction_pooler: false,
            prepared_statements: true,
            early_turns: true,
            answer_timeout: ANSWER_TIMEOUT,
        })
    }

    /// Options for a store behind a transaction pooler, with the session connection to the server itself, if that can be
    /// reached: without it there are no notifications, and the items of a dead process are ready when their leases end.
    ///
    /// # Errors
    /// If a string cannot be read.
    pub fn behind_pooler(pooler: &str, server: Option<&str>) -> Result<Self, tokio_postgres::Error> {
        let session_config = server.map(str::parse).transpose()?.map(with_limits);
        Ok(Self {
            // A pooler passes no settings of a session on.
            config: with_limits(pooler.parse()?),
            notifications: session_config.is_some(),
            session_config,
            transaction_pooler: true,
            prepared_statements: false,
            ..Self::new(pooler)?
        })
    }

    /// A connection of your own to the database of the store, for your tables and an [`Intake`](crate::Intake). It is encrypted as
    /// [`Self::tls`] and `sslmode` say, and asks for its password as the store's connections do. A task of the current tokio runtime
    /// drives it until the client is dropped.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn connect(&self) -> Result<tokio_postgres::Client, OpenError> {
        let config = without_planner_settings(self.config.clone());
        connect(self, &config, None).await.map_err(|error| OpenError::of_connection(error, self, 1))
    }

    /// Whether a connection may be another one in the next transaction. Statements that are not prepared are for poolers, too.
    pub(crate) fn is_pooled(&self) -> bool {
        self.transaction_pooler || !self.prepared_statements
    }

    /// The options for the same store without the pooler; `None` if the server's address is not known.
    pub(crate) fn past_pooler(&self) -> Option<Self> {
        if !self.is_pooled() {
            return Some(self.clone());
        }
        let config = with_planner_settings(self.session_config.clone()?);
        let (transaction_pooler, prepared_statements) = (false, true);
        Some(Self { config, transaction_pooler, prepared_statements, ..self.clone() })
    }

    /// Where the session connection goes.
    pub(crate) fn session_config(&self) -> &tokio_postgres::Config {
        self.session_config.as_ref().unwrap_or(&self.config)
    }
}

/// See [`PLANNER`].
fn with_planner_settings(mut config: tokio_postgres::Config) -> tokio_postgres::Config {
    config.options(match config.get_options() {
        Some(given) => format!("{PLANNER} {given}"),
        None => PLANNER.to_owned(),
    });
    config
}

/// They are for the statements of a store.
fn without_planner_settings(mut config: tokio_postgres::Config) -> tokio_postgres::Config {
    let given = config.get_options().and_then(|options| options.strip_prefix(PLANNER)).map(str::to_owned);
    given.into_iter().for_each(|given| _ = config.options(given.trim_start()));
    config
}

/// Limits that a connection string need not name.
fn with_limits(mut config: tokio_postgres::Config) -> tokio_postgres::Config {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE_MAX);
    }
    if config.get_keepalives_idle() == tokio_postgres::Config::new().get_keepalives_idle() {
        config.keepalives_idle(SILENCE_MAX / 2);
    }
    if config.get_application_name().is_none() {
        config.application_name("duroxide");
    }
    config
}
