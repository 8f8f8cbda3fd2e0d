//! duroxide
