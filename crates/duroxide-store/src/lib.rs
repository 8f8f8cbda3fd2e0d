//! duroxide-store
