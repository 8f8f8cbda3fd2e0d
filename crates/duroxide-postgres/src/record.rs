//! Rows and their columns: one list of columns for each table, from which all statements on single rows are made.

mod activity;
mod instance;
mod message;
mod rest;

use tokio_postgres::Row;

pub(crate) use self::{
    activity::Activity,
    instance::{Execution, read_lease, read_pinned},
    message::{Message, kind_number, kind_of},
    rest::{CustomStatus, Event, Letter, Session, Setting, SettingChange},
};
use crate::{
    SchemaName,
    connection::{Parameter, Query},
    fault::Trouble,
    value::{Kind, Value},
};

/// What a column is to its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Part of the key.
    Key,
    /// Written once, with the row.
    Fixed,
    /// Written with every change of the row.
    Mutable,
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
}

/// A value that is stored as one row of a table.
pub(crate) trait Record: Sized {
    const TABLE: &'static Table;
    const INSERT: &'static str;
    const UPDATE: &'static str;
    const UPSERT: &'static str;
    const DELETE: &'static str;

    /// The values of all columns, in the order of the table.
    fn values(&self) -> Vec<Value>;

    /// Reads a row by the names of its columns.
    fn read(row: &Row) -> Result<Self, Trouble>;
}

/// Makes a [`Record`] of a list of columns, each with its role, its type and where its value comes from.
macro_rules! record {
    ($type:ty, $table:literal, |$row:ident| { $($role:ident $column:ident: $kind:ident = $value:expr;)* }, $read:expr) => {
        impl $crate::record::Record for $type {
            const TABLE: &'static $crate::record::Table = &$crate::record::Table {
                name: $table,
                columns: &[$($crate::record::Column {
                    name: stringify!($column),
                    kind: $crate::value::Kind::$kind,
                    role: $crate::record::Role::$role,
                }),*],
            };
            const INSERT: &'static str = concat!("{insert ", $table, "}");
            const UPDATE: &'static str = concat!("{update ", $table, "}");
            const UPSERT: &'static str = concat!("{upsert ", $table, "}");
            const DELETE: &'static str = concat!("{delete ", $table, "}");

            fn values(&self) -> Vec<$crate::value::Value> {
                let $row = self;
                vec![$($crate::value::Value::from($value)),*]
            }

            fn read(row: &tokio_postgres::Row) -> Result<Self, $crate::fault::Trouble> {
                let read: fn(&tokio_postgres::Row) -> Result<Self, $crate::fault::Trouble> = $read;
                read(row)
            }
        }
    };
}
pub(crate) use record;

const TABLES: &[&Table] = &[
    <duroxide_provider::rules::InstanceRow as Record>::TABLE,
    Execution::TABLE,
    Event::TABLE,
    Message::TABLE,
    Activity::TABLE,
    Session::TABLE,
    Setting::TABLE,
    SettingChange::TABLE,
    CustomStatus::TABLE,
    Letter::TABLE,
];

/// Reads all rows.
pub(crate) fn read_all<R: Record>(rows: &[Row]) -> Result<Vec<R>, Trouble> {
    rows.iter().map(R::read).collect()
}

/// One statement that inserts these rows.
pub(crate) fn insert<'a, R: Record + 'a>(records: impl IntoIterator<Item = &'a R>) -> Query {
    Query::new(R::INSERT, arrays(R::TABLE, |_| true, records.into_iter().map(R::values)))
}

/// One statement that writes the changing columns of these rows.
pub(crate) fn update<'a, R: Record + 'a>(records: impl IntoIterator<Item = &'a R>) -> Query {
    let changes = |role| role != Role::Fixed;
    Query::new(R::UPDATE, arrays(R::TABLE, changes, records.into_iter().map(R::values)))
}

/// One statement that inserts these rows, or writes the changing columns of those that are there.
pub(crate) fn upsert<'a, R: Record + 'a>(records: impl IntoIterator<Item = &'a R>) -> Query {
    Query::new(R::UPSERT, arrays(R::TABLE, |_| true, records.into_iter().map(R::values)))
}

/// One statement that deletes the rows of these keys.
pub(crate) fn delete<R: Record>(keys: impl IntoIterator<Item = Vec<Value>>) -> Query {
    let key_columns = R::TABLE.columns.iter().filter(|column| column.role == Role::Key).collect();
    Query::new(R::DELETE, transposed(key_columns, keys))
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

/// Makes a statement of a template:
///
/// * `{s}` is the schema;
/// * `{columns t}` are all columns of table `t`, `{head t}` all but `data`;
/// * `{insert t}`, `{update t}`, `{upsert t}` and `{delete t}` are whole statements over arrays of rows;
/// * statements with [`TOGETHER`] between them become one, whose parameters are theirs in this order.
pub(crate) fn expand(template: &str, schema: &SchemaName) -> String {
    let parts = template.split(TOGETHER).map(|part| expand_one(part, schema));
    joined_as_one(parts.collect())
}

/// Stands between templates of statements that become one.
pub(crate) const TOGETHER: &str = " TOGETHER WITH ";

/// The last statement is the main one. The others are its common table expressions, which PostgreSQL carries out all the
/// same; none of them sees what another one writes.
fn joined_as_one(mut statements: Vec<String>) -> String {
    let mut parameters = 0;
    for statement in &mut statements {
        let count = parameters_of(statement);
        // From the highest number on, because `$1` is the beginning of `$10`.
        for number in (1..=count).rev().filter(|_| parameters > 0) {
            *statement = statement.replace(&format!("${number}::"), &format!("${}::", number + parameters));
        }
        parameters += count;
    }
    let main = statements.pop().unwrap_or_default();
    if statements.is_empty() {
        return main;
    }
    let others = statements.iter().enumerate().map(|(n, other)| format!("part_{n} AS ({other})"));
    format!("WITH {} {main}", joined(others))
}

/// How many parameters a statement over arrays has: all are cast where they stand.
fn parameters_of(statement: &str) -> usize {
    (1..).take_while(|number| statement.contains(&format!("${number}::"))).count()
}

fn expand_one(template: &str, schema: &SchemaName) -> String {
    let mut text = template.to_owned();
    for table in TABLES {
        let name = table.name;
        if !text.contains(name) {
            continue;
        }
        text = text.replace(&format!("{{columns {name}}}"), &list(table, |_| true));
        text = text.replace(&format!("{{head {name}}}"), &list(table, |column| column.name != "data"));
        text = text.replace(&format!("{{insert {name}}}"), &insert_text(table));
        text = text.replace(&format!("{{update {name}}}"), &update_text(table));
        text = text.replace(&format!("{{upsert {name}}}"), &upsert_text(table));
        text = text.replace(&format!("{{delete {name}}}"), &delete_text(table));
    }
    text.replace("{s}", schema.as_str())
}

fn list(table: &Table, takes: fn(&Column) -> bool) -> String {
    let columns = table.columns.iter().filter(|column| takes(column));
    joined(columns.map(|column| format!("{}.{}", table.name, column.name)))
}

/// The columns of some roles, as the rows of arrays.
fn unnested(table: &Table, takes: fn(Role) -> bool) -> String {
    let taken = || table.columns.iter().filter(|column| takes(column.role));
    let arrays =
        joined(taken().enumerate().map(|(n, column)| format!("${}::{}", n + 1, column.kind.array())));
    format!("unnest({arrays}) AS given ({})", joined(taken().map(|column| column.name.to_owned())))
}

fn names(table: &Table, takes: fn(Role) -> bool) -> Vec<&'static str> {
    table.columns.iter().filter(|column| takes(column.role)).map(|column| column.name).collect()
}

fn is_key(role: Role) -> bool {
    role == Role::Key
}

fn insert_text(table: &Table) -> String {
    let columns = names(table, |_| true).join(", ");
    format!(
        "INSERT INTO {{s}}.{} ({columns}) SELECT {columns} FROM {}",
        table.name,
        unnested(table, |_| true)
    )
}

fn assignments(table: &Table, source: &str) -> String {
    let changing = names(table, |role| role == Role::Mutable);
    joined(changing.into_iter().map(|column| format!("{column} = {source}.{column}")))
}

/// Each given row is looked up by the index. The array of one element is there for the planner, which takes a table for
/// empty that was empty when it was analysed: a plain comparison lets it read the whole index for each given row instead.
fn same_key(table: &Table) -> String {
    let keys = names(table, is_key).into_iter().enumerate().map(|(position, key)| match position {
        0 => format!("{0}.{key} = ANY (ARRAY[given.{key}])", table.name),
        _ => format!("{0}.{key} = given.{key}", table.name),
    });
    keys.collect::<Vec<_>>().join(" AND ")
}

fn update_text(table: &Table) -> String {
    let (name, given) = (table.name, unnested(table, |role| role != Role::Fixed));
    format!("UPDATE {{s}}.{name} SET {} FROM {given} WHERE {}", assignments(table, "given"), same_key(table))
}

fn upsert_text(table: &Table) -> String {
    let keys = names(table, is_key).join(", ");
    format!("{} ON CONFLICT ({keys}) DO UPDATE SET {}", insert_text(table), assignments(table, "excluded"))
}

fn delete_text(table: &Table) -> String {
    format!("DELETE FROM {{s}}.{} USING {} WHERE {}", table.name, unnested(table, is_key), same_key(table))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_made_of_the_list_of_columns() {
        let schema = SchemaName::default();
        assert_eq!(
            expand(CustomStatus::UPSERT, &schema),
            "INSERT INTO duroxide.custom_status (instance, status, version) SELECT instance, status, version \
             FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS given (instance, status, version) \
             ON CONFLICT (instance) DO UPDATE SET status = excluded.status, version = excluded.version"
        );
        assert_eq!(
            expand(Setting::DELETE, &schema),
            "DELETE FROM duroxide.kv USING unnest($1::bigint[], $2::text[]) AS given (instance, key) \
             WHERE kv.instance = ANY (ARRAY[given.instance]) AND kv.key = given.key"
        );
        assert!(!expand(Message::UPDATE, &schema).contains("data"), "a text is written once");
    }

    #[test]
    fn statements_together_are_one_with_the_parameters_of_all() {
        let schema = SchemaName::default();
        let template = format!("{}{TOGETHER}{}", Setting::DELETE, CustomStatus::DELETE);
        assert_eq!(
            expand(&template, &schema),
            "WITH part_0 AS (DELETE FROM duroxide.kv USING unnest($1::bigint[], $2::text[]) AS given (instance, key) \
             WHERE kv.instance = ANY (ARRAY[given.instance]) AND kv.key = given.key) \
             DELETE FROM duroxide.custom_status USING unnest($3::bigint[]) AS given (instance) \
             WHERE custom_status.instance = ANY (ARRAY[given.instance])"
        );
        let many = format!("{}{TOGETHER}{}", Event::INSERT, Activity::INSERT);
        assert!(expand(&many, &schema).contains("$22::text[]"), "four and eighteen");
        assert!(!expand(&many, &schema).contains("$23"));
    }

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
        check_kinds(&Execution { instance: 1, execution_id: 1, row: ExecutionRow::begun(Timestamp::ZERO) });
        check_kinds(&Event { instance: 1, execution_id: 1, event_id: 1, data: String::new() });
        let entry = KvEntry { value: String::new(), last_updated_at_ms: 0 };
        check_kinds(&Setting { instance: 1, key: String::new(), entry: Some(entry.clone()) });
        check_kinds(&SettingChange { instance: 1, key: String::new(), entry: Some(entry) });
        check_kinds(&CustomStatus { instance: 1, status: None, version: 1 });
    }
}
