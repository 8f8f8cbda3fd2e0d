//! The name of the schema that holds a store.

use std::fmt;

/// Words that cannot be the name of a schema unless they are quoted, in PostgreSQL 14 to 18.
#[rustfmt::skip]
const RESERVED: [&str; 101] = [
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "authorization", "binary",
    "both", "case", "cast", "check", "collate", "collation", "column", "concurrently", "constraint", "create",
    "cross", "current_catalog", "current_date", "current_role", "current_schema", "current_time",
    "current_timestamp", "current_user", "default", "deferrable", "desc", "distinct", "do", "else", "end",
    "except", "false", "fetch", "for", "foreign", "freeze", "from", "full", "grant", "group", "having",
    "ilike", "in", "initially", "inner", "intersect", "into", "is", "isnull", "join", "lateral", "leading",
    "left", "like", "limit", "localtime", "localtimestamp", "natural", "not", "notnull", "null", "offset",
    "on", "only", "or", "order", "outer", "overlaps", "placing", "primary", "references", "returning",
    "right", "select", "session_user", "similar", "some", "symmetric", "system_user", "table", "tablesample",
    "then", "to", "trailing", "true", "union", "unique", "user", "using", "variadic", "verbose", "when",
    "where", "window", "with",
];

/// The name of a schema: lowercase letters, digits and underscores, not beginning with a digit, at most 63 characters, and
/// no word that SQL reserves (`user`, `order`).
///
/// Statements are built with it, so nothing else is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaName(String);

impl SchemaName {
    /// PostgreSQL cuts longer names off.
    const BYTES_MAX: usize = 63;

    /// Checks a name.
    ///
    /// # Errors
    /// If the name is not as described at the type, or if it is PostgreSQL's own (`pg_…`, `information_schema`).
    pub fn new(name: &str) -> Result<Self, InvalidSchemaName> {
        let is_letter = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
        let is_identifier = name.as_bytes().first().is_some_and(is_letter)
            && name.bytes().all(|byte| is_letter(&byte) || byte.is_ascii_digit());
        let is_taken = name.starts_with("pg_") || name == "information_schema" || RESERVED.contains(&name);
        if is_identifier && name.len() <= Self::BYTES_MAX && !is_taken {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidSchemaName { name: name.to_owned() })
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for SchemaName {
    fn default() -> Self {
        Self("duroxide".to_owned())
    }
}

impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A schema name that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} is no schema name: use at most 63 lowercase letters, digits and underscores, not a digit first, not \
     `pg_` first, not `information_schema`, and no word that SQL reserves, such as `user`"
)]
pub struct InvalidSchemaName {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_name_is_a_plain_identifier() {
        for name in ["duroxide", "_a", "tenant_7", &"a".repeat(63)] {
            assert_eq!(SchemaName::new(name).unwrap().as_str(), name);
        }
        for name in [
            "",
            "7a",
            "Tenant",
            "a-b",
            "a\"; DROP TABLE x",
            "ä",
            "pg_x",
            "user",
            "information_schema",
            &"a".repeat(64),
        ] {
            assert!(SchemaName::new(name).is_err(), "{name}");
        }
    }
}
