//! The stories that every store engine tells the same way.

use duroxide_sqlite::{SqliteEngine, SqliteOptions};

duroxide_provider::engine_stories!(SqliteEngine::open_in_memory(SqliteOptions::default()).unwrap());
