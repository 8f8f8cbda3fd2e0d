//! Rows and their columns: one list of columns for each table, from which all statements on single rows are made.

mod activity;
mod dead_letter;
mod event;
mod instance;
mod message;
pub(crate) mod rules_in_sql;
mod session;
mod state;
mod statement;

use tokio_postgres::Row;

pub(crate) use self::instance::lock_look_micros;
pub(crate) use self::statement::{TOGETHER, expand};
pub(crate) use self::{
    activity::{Activity, ActivityKey},
    dead_letter::Letter,
    event::Event,
    instance::{Execution, ReadyInstance, read_lease, read_pinned},
    message::Message,
    session::Session,
    state::{CustomStatus, KeyValue, KeyValueChange},
};
use crate::{
    connection::{Parameter, Query, parameters},
    database_error::DatabaseError,
    value::{Kind, Value, number},
};

/// The role of a column in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Part of the key.
    Key,
    /// Written once, with the row.
    Fixed,
    /// Written with every change of the row.
    Mutable,
    /// 24.5: a number of the transaction that wrote the row last. A row is changed or deleted only if it has the revision in the
    /// working set.
    Revision,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
    computed: &'static [Computed],
}

/// A column that statements compute, from the columns of `given` rows and of the stored one. It is not read into a record.
#[derive(Debug)]
struct Computed {
    name: &'static str,
    /// The expression of an insert.
    inserted: &'static str,
    /// The expression of an update.
    updated: &'static str,
}

impl Table {
    fn has_revisions(&self) -> bool {
        self.columns.iter().any(|column| column.role == Role::Revision)
    }
}

/// A value that is stored as one row of a table.
pub(crate) trait Record: Sized {
    const TABLE: &'static Table;
    const INSERT: &'static str;
    const UPDATE: &'static str;
    const UPSERT: &'static str;
    const DELETE: &'static str;
    const VERIFY: &'static str;

    /// The values of all columns, in the order of the table.
    fn values(&self) -> Vec<Value>;

    /// Reads a row by the names of its columns.
    fn read(row: &Row) -> Result<Self, DatabaseError>;
}

/// Makes a [`Record`] of a list of columns, each with its role, its type and where its value comes from. A record has no
/// revision, which is an argument of the statements. A column that statements compute may follow the name of the table.
macro_rules! record {
    ($type:ty, $table:literal, $(computed $computed:ident,)? |$row:ident| { $($role:ident $column:ident: $kind:ident = $value:expr;)* }, $read:expr) => {
        impl $crate::record::Record for $type {
            const TABLE: &'static $crate::record::Table = &$crate::record::Table {
                name: $table,
                columns: &[$($crate::record::Column {
                    name: stringify!($column),
                    kind: $crate::value::Kind::$kind,
                    role: $crate::record::Role::$role,
                }),*],
                computed: &[$($computed)?],
            };
            const INSERT: &'static str = concat!("{insert ", $table, "}");
            const UPDATE: &'static str = concat!("{update ", $table, "}");
            const UPSERT: &'static str = concat!("{upsert ", $table, "}");
            const DELETE: &'static str = concat!("{delete ", $table, "}");
            const VERIFY: &'static str = concat!("{verify ", $table, "}");

            fn values(&self) -> Vec<$crate::value::Value> {
                let $row = self;
                vec![$($crate::value::Value::from($value)),*]
            }

            fn read(row: &tokio_postgres::Row) -> Result<Self, $crate::database_error::DatabaseError> {
                let read: fn(&tokio_postgres::Row) -> Result<Self, $crate::database_error::DatabaseError> = $read;
                read(row)
            }
        }
    };
}
pub(crate) use record;

const TABLES: &[&Table] = &[
    <duroxide_provider::rules::InstanceRow as Record>::TABLE,
    ReadyInstance::TABLE,
    Execution::TABLE,
    Event::TABLE,
    Message::TABLE,
    Activity::TABLE,
    Session::TABLE,
    KeyValue::TABLE,
    KeyValueChange::TABLE,
    CustomStatus::TABLE,
    Letter::TABLE,
];

/// Reads all rows.
pub(crate) fn read_all<R: Record>(rows: &[Row]) -> Result<Vec<R>, DatabaseError> {
    rows.iter().map(R::read).collect()
}

/// One statement that inserts these rows. In a table with revisions, theirs is `revision`.
pub(crate) fn insert<'a, R: Record + 'a>(
    records: impl IntoIterator<Item = &'a R>,
    revision: Option<u64>,
) -> Query {
    let mut parameters = arrays(R::TABLE, is_given, records.into_iter().map(R::values));
    parameters.extend(R::TABLE.has_revisions().then(|| Box::new(revision.map(number)) as Parameter));
    Query::new(R::INSERT, parameters)
}

/// One statement that writes the changing columns of these rows.
pub(crate) fn update<'a, R: Record + 'a>(records: impl IntoIterator<Item = &'a R>) -> Query {
    Query::new(R::UPDATE, arrays(R::TABLE, is_updated, records.into_iter().map(R::values)))
}

/// Like [`update`], for a table with revisions: writes only rows that still have the given revision, and gives them a new
/// one. No row has an unknown revision.
pub(crate) fn update_unchanged<'a, R: Record + 'a>(
    records: impl IntoIterator<Item = (&'a R, Option<u64>)>,
    revision: Option<u64>,
) -> Query {
    let (records, known): (Vec<&R>, Vec<Option<i64>>) =
        records.into_iter().map(|(record, known)| (record, known.map(number))).unzip();
    let Query { sql, mut parameters, .. } = update(records);
    parameters.extend(parameters![known, revision.map(number)]);
    Query::new(sql, parameters)
}

/// One statement that inserts these rows, or writes the changing columns of existing ones.
pub(crate) fn upsert<'a, R: Record + 'a>(records: impl IntoIterator<Item = &'a R>) -> Query {
    Query::new(R::UPSERT, arrays(R::TABLE, is_given, records.into_iter().map(R::values)))
}

/// One statement that deletes the rows of these keys.
pub(crate) fn delete<R: Record>(keys: impl IntoIterator<Item = Vec<Value>>) -> Query {
    let key_columns = R::TABLE.columns.iter().filter(|column| column.role == Role::Key).collect();
    Query::new(R::DELETE, transposed(key_columns, keys))
}

/// Like [`delete`], for a table with revisions: deletes only rows that still have the given revision.
pub(crate) fn delete_unchanged<R: Record>(
    keys: impl IntoIterator<Item = (Vec<Value>, Option<u64>)>,
) -> Query {
    let (keys, known): (Vec<Vec<Value>>, Vec<Option<i64>>) =
        keys.into_iter().map(|(key, known)| (key, known.map(number))).unzip();
    let Query { sql, mut parameters, .. } = delete::<R>(keys);
    parameters.extend(parameters![known]);
    Query::new(sql, parameters)
}

/// One statement that finds and locks the rows of these keys that still have the given revision.
pub(crate) fn verify<R: Record>(keys: impl IntoIterator<Item = (Vec<Value>, Option<u64>)>) -> Query {
    Query::new(R::VERIFY, delete_unchanged::<R>(keys).parameters)
}

fn is_given(role: Role) -> bool {
    role != Role::Revision
}

fn is_updated(role: Role) -> bool {
    matches!(role, Role::Key | Role::Mutable)
}

/// The columns of some roles as one array each.
fn arrays(
    table: &Table,
    takes: fn(Role) -> bool,
    rows: impl IntoIterator<Item = Vec<Value>>,
) -> Vec<Parameter> {
    let columns = table.columns.iter().filter(|column| takes(column.role)).collect();
    let taken = rows.into_iter().map(|values| {
        let pairs = table.columns.iter().zip(values);
        pairs.filter(|(column, _)| takes(column.role)).map(|(_, value)| value).collect()
    });
    transposed(columns, taken)
}

fn transposed(columns: Vec<&Column>, rows: impl IntoIterator<Item = Vec<Value>>) -> Vec<Parameter> {
    let mut arrays: Vec<Array> = columns.iter().map(|column| Array::new(column.kind)).collect();
    for row in rows {
        arrays.iter_mut().zip(row).for_each(|(array, value)| array.push(value));
    }
    arrays.into_iter().map(Array::into_parameter).collect()
}

/// The values of one column.
enum Array {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Bools(Vec<Option<bool>>),
}

impl Array {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Int => Self::Ints(Vec::new()),
            Kind::Text => Self::Texts(Vec::new()),
            Kind::Bool => Self::Bools(Vec::new()),
        }
    }

    /// A value of another type than the column's, which the test of the lists finds, is stored as NULL.
    fn push(&mut self, value: Value) {
        match (self, value) {
            (Self::Ints(values), Value::Int(value)) => values.push(value),
            (Self::Texts(values), Value::Text(value)) => values.push(value),
            (Self::Bools(values), Value::Bool(value)) => values.push(Some(value)),
            (Self::Ints(values), _) => values.push(None),
            (Self::Texts(values), _) => values.push(None),
            (Self::Bools(values), _) => values.push(None),
        }
    }

    fn into_parameter(self) -> Parameter {
        match self {
            Self::Ints(values) => Box::new(values),
            Self::Texts(values) => Box::new(values),
            Self::Bools(values) => Box::new(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_kinds<R: Record>(record: &R) {
        let values = record.values();
        assert_eq!(values.len(), R::TABLE.columns.len());
        for (column, value) in R::TABLE.columns.iter().zip(values) {
            let kind = match value {
                Value::Int(_) => Kind::Int,
                Value::Text(_) => Kind::Text,
                Value::Bool(_) => Kind::Bool,
            };
            assert_eq!(kind, column.kind, "{}.{}", R::TABLE.name, column.name);
        }
    }

    #[test]
    fn every_value_has_the_type_of_its_column() {
        use duroxide_core::{KvEntry, Timestamp};
        use duroxide_provider::rules::{ExecutionRow, InstanceRow};
        let row = InstanceRow::mailbox(1, "a", Timestamp::ZERO);
        check_kinds(&row);
        check_kinds(&ReadyInstance { route: duroxide_provider::rules::RouteId(1), place: 1, instance: 1 });
        check_kinds(&Execution { instance: 1, execution_id: 1, row: ExecutionRow::begun(Timestamp::ZERO) });
        check_kinds(&Event { instance: 1, execution_id: 1, event_id: 1, data: String::new() });
        let entry = KvEntry { value: String::new(), last_updated_at_ms: 0 };
        check_kinds(&KeyValue { instance: 1, key: String::new(), entry: Some(entry.clone()) });
        check_kinds(&KeyValueChange { instance: 1, key: String::new(), entry: Some(entry) });
        check_kinds(&CustomStatus { instance: 1, status: None, version: 1 });
    }
}
