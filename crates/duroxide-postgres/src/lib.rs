//! The PostgreSQL store engine of duroxide.
