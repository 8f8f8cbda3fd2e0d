//! Values as PostgreSQL stores them.

use std::time::Duration;

use duroxide_core::Timestamp;
use tokio_postgres::{Row, types::FromSqlOwned};

use crate::database_error::DatabaseError;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Text,
    Bool,
}

impl Kind {
    /// The type of an array of such values.
    pub(crate) fn array(self) -> &'static str {
        match self {
            Self::Int => "bigint[]",
            Self::Text => "text[]",
            Self::Bool => "boolean[]",
        }
    }
}

/// The value of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Int(Option<i64>),
    Text(Option<String>),
    Bool(bool),
}

/// The stored form of a number: the same 64 bits.
pub(crate) fn number(value: u64) -> i64 {
    value.cast_signed()
}

/// A stored number.
pub(crate) fn unsigned(stored: i64) -> u64 {
    stored.cast_unsigned()
}

/// The stored form of a time. `bigint` ends at 2^63; a later time means "never" anyway.
pub(crate) fn micros(time: Timestamp) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// A stored time.
pub(crate) fn time(micros: i64) -> Timestamp {
    Timestamp::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// The stored form of a duration.
pub(crate) fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A stored duration.
pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// A stored count.
pub(crate) fn count(stored: i64) -> u32 {
    u32::try_from(stored).unwrap_or(u32::MAX)
}

/// A limit as a statement takes it.
pub(crate) fn limit(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Reads columns by name.
pub(crate) trait Columns {
    fn column<T: FromSqlOwned>(&self, name: &str) -> Result<T, DatabaseError>;

    fn number(&self, name: &str) -> Result<u64, DatabaseError> {
        self.column(name).map(unsigned)
    }

    fn time(&self, name: &str) -> Result<Timestamp, DatabaseError> {
        self.column(name).map(time)
    }

    fn count(&self, name: &str) -> Result<u32, DatabaseError> {
        self.column(name).map(count)
    }
}

impl Columns for Row {
    fn column<T: FromSqlOwned>(&self, name: &str) -> Result<T, DatabaseError> {
        self.try_get(name).map_err(|error| DatabaseError::of(&error))
    }
}

macro_rules! value_from {
    ($($type:ty => |$value:ident| $made:expr;)*) => {
        $(impl From<$type> for Value {
            fn from($value: $type) -> Self {
                $made
            }
        })*
    };
}

value_from! {
    u64 => |value| Self::Int(Some(number(value)));
    Option<u64> => |value| Self::Int(value.map(number));
    u32 => |value| Self::Int(Some(i64::from(value)));
    i64 => |value| Self::Int(Some(value));
    Option<i64> => |value| Self::Int(value);
    Timestamp => |value| Self::Int(Some(micros(value)));
    Option<Timestamp> => |value| Self::Int(value.map(micros));
    Duration => |value| Self::Int(Some(span(value)));
    Option<Duration> => |value| Self::Int(value.map(span));
    bool => |value| Self::Bool(value);
    &String => |value| Self::Text(Some(value.clone()));
    &Option<String> => |value| Self::Text(value.clone());
    Option<&str> => |value| Self::Text(value.map(str::to_owned));
}
