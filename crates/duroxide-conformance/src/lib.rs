//! duroxide-conformance
