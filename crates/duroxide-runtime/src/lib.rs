//! duroxide-runtime
