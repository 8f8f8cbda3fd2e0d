//! Finds out whether the session connection reaches the database of the other connections.
//!
//! The names of databases prove nothing: another server may have a database and a schema of the same names. So the session connection
//! takes an advisory lock with a random number, and another connection looks for it. Locks show in `pg_locks` for every role and
//! through every pooler.

use std::time::Duration;

use tokio::{runtime::Builder, time::timeout};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::{
    statement_timeout::within,
    statements::{holders, key},
};
use crate::{PostgresOptions, connection::connect, database_error::DatabaseError};

/// Where the connections lead, which is not the same database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabasesDiffer {
    pub(crate) session: String,
    pub(crate) store: String,
}

/// The result of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Both reach the same database, the session connection as this role.
    Same {
        session_role: String,
    },
    Differ(DatabasesDiffer),
}

/// How long a session connection that was lost waits for the comparison. The locks of nodes wait meanwhile.
const COMPARED_WITHIN: Duration = Duration::from_secs(1);
/// A database, for messages. A socket has no address.
const PLACE: &str =
    "current_database() || coalesce(' at ' || host(inet_server_addr()) || ':' || inet_server_port(), '')";

/// 24.17: compares the databases on connections of its own, before anything is made. Blocks.
pub(crate) fn compare_databases(options: &PostgresOptions) -> Result<Compared, DatabaseError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| DatabaseError::unavailable(error.to_string()))?;
    runtime.block_on(async {
        let session = connect(options, options.session_config(), None).await;
        let session = session.map_err(DatabaseError::of_session_connection)?;
        // A standby has locks of its own, and refuses this.
        let listen = format!("LISTEN {}", options.schema);
        within(session.batch_execute(&listen)).await.map_err(DatabaseError::of_session_connection)?;
        compare(&session, options).await
    })
}

/// 24.17: the address of the session connection may lead to another database than before. If the store's own address does not answer,
/// that is unknown, and the nodes need their locks.
pub(super) async fn refuse_other_database(
    session: &Client,
    options: &PostgresOptions,
) -> Result<(), DatabaseError> {
    match timeout(COMPARED_WITHIN, compare(session, options)).await {
        Ok(Ok(Compared::Differ(differ))) => Err(DatabaseError::unavailable(format!(
            "it reaches another database ({}) than the other connections ({})",
            differ.session, differ.store
        ))),
        Ok(Ok(Compared::Same { .. }) | Err(_)) | Err(_) => Ok(()),
    }
}

/// Compares the database of this session connection with that of a new connection of the store. Leaves no lock.
async fn compare(session: &Client, options: &PostgresOptions) -> Result<Compared, DatabaseError> {
    let key = key(&format!("'duroxide database {:032x}'", duroxide_store::random_nonce()));
    let lock = format!("SELECT {PLACE}, current_user FROM pg_advisory_lock({key})");
    let of_session = ask(session, &lock).await.map_err(DatabaseError::of_session_connection)?;
    let store = connect(options, &options.config, None).await?;
    let find = format!("SELECT {PLACE}, EXISTS (SELECT 1 {})", holders(&key));
    let of_store = ask(&store, &find).await?;
    let release = format!("SELECT pg_advisory_unlock({key})");
    ask(session, &release).await.map_err(DatabaseError::of_session_connection)?;
    Ok(match (&of_session[..], &of_store[..]) {
        ([session, _], [store, is_found]) if is_found != "t" => {
            Compared::Differ(DatabasesDiffer { session: session.clone(), store: store.clone() })
        }
        (of_session, _) => Compared::Same { session_role: of_session.last().cloned().unwrap_or_default() },
    })
}

/// The columns of the only row of a statement, which no pooler has to prepare.
async fn ask(client: &Client, sql: &str) -> Result<Vec<String>, DatabaseError> {
    let answers = within(client.simple_query(sql)).await?;
    let row = answers
        .into_iter()
        .find_map(|answer| if let SimpleQueryMessage::Row(row) = answer { Some(row) } else { None });
    let row = row.ok_or_else(|| DatabaseError::refused("no answer to a question"))?;
    Ok((0..row.len()).map(|column| row.get(column).unwrap_or_default().to_owned()).collect())
}
