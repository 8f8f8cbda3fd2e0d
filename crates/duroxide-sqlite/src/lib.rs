//! duroxide-sqlite
