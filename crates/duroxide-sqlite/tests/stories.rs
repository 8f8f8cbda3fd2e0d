//! The stories that every store engine must pass.

use duroxide_sqlite::{SqliteEngine, SqliteOptions};

duroxide_provider::engine_stories!(SqliteEngine::open_in_memory(SqliteOptions::default()).unwrap());
