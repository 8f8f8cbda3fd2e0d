//! The stories that every store engine must pass, run once with mailboxes in the working set, and once with every mailbox
//! left to statements and with nothing prepared, as behind a pooler.
#![allow(clippy::unwrap_used, reason = "this is a test")]

use duroxide_postgres::{PostgresEngine, PostgresOptions, SchemaName};
use postgres_server::Server;

fn open(server: &Server, prepared_statements: bool) -> PostgresEngine {
    let mut options = PostgresOptions::new(&server.socket_url()).unwrap();
    options.schema = SchemaName::new(&server.fresh_schema()).unwrap();
    options.prepared_statements = prepared_statements;
    PostgresEngine::open(options).unwrap().with_callers_clock()
}

mod loaded_mailboxes {
    use super::*;

    duroxide_provider::engine_stories!({
        let Some(server) = postgres_server::server() else { return };
        open(server, true)
    });
}

mod large_mailboxes {
    use super::*;

    duroxide_provider::engine_stories!({
        let Some(server) = postgres_server::server() else { return };
        open(server, false).with_mailbox_loaded_max(0)
    });
}
