//! Statements over arrays of rows, made of the lists of columns.

use super::{Column, Role, TABLES, Table, is_given, is_updated};
use crate::{SchemaName, value::Kind};

/// Makes a statement of a template:
///
/// * `{s}` is the schema;
/// * `{columns t}` are all columns of table `t`, `{head t}` all but `data`;
/// * `{insert t}`, `{update t}`, `{upsert t}`, `{delete t}` and `{verify t}` are whole statements over arrays of rows;
/// * statements with [`TOGETHER`] between them become one, whose parameters are theirs in this order, and then two more: the
///   number of written rows with known revisions, and of drawn blocks of numbers.
pub(crate) fn expand(template: &str, schema: &SchemaName) -> String {
    let Some(parts) = template.strip_prefix(TOGETHER) else { return expand_one(template, schema) };
    let parts = parts.split(TOGETHER).map(|part| expand_one(part, schema));
    written_together(parts.collect(), schema)
}

/// Stands in front of each template of the statements that become one.
pub(crate) const TOGETHER: &str = " TOGETHER WITH ";
/// Part of the statements that find rows with known revisions. They return how many they found.
const KNOWN_REVISION: &str = "revision = given.known_revision";

/// All statements are common table expressions, which PostgreSQL carries out in any case; none of them sees the writes of
/// another one. The statement around them fails if a row with a known revision was not found. It counts instances in front
/// of activities, so rows are locked in the order of all processes.
fn written_together(mut statements: Vec<String>, schema: &SchemaName) -> String {
    let mut parameters = 0;
    for statement in &mut statements {
        let count = parameters_of(statement);
        // From the highest number on, because `$1` is the beginning of `$10`.
        for number in (1..=count).rev().filter(|_| parameters > 0) {
            *statement = statement.replace(&format!("${number}::"), &format!("${}::", number + parameters));
        }
        parameters += count;
    }
    let counted = statements.iter().enumerate().filter(|(_, statement)| statement.contains(KNOWN_REVISION));
    let counts = counted.map(|(n, _)| format!("(SELECT count(*) FROM part_{n})"));
    let found = counts.chain(["0".to_owned()]).collect::<Vec<_>>().join(" + ");
    let parts = joined(statements.iter().enumerate().map(|(n, part)| format!("part_{n} AS ({part})")));
    let (expected, drawn) = (parameters + 1, parameters + 2);
    format!(
        "WITH {parts} SELECT 1 / (CASE WHEN {found} = ${expected}::bigint THEN 1 ELSE 0 END) AS unchanged, \
         ARRAY(SELECT nextval('{schema}.numbers') FROM generate_series(1, ${drawn}::bigint)) AS firsts, \
         (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now"
    )
}

/// How many parameters a statement over arrays has: all are cast in place.
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
        text = text.replace(&format!("{{verify {name}}}"), &verify_text(table));
    }
    text.replace("{s}", schema.as_str())
}

fn list(table: &Table, takes: fn(&Column) -> bool) -> String {
    let columns = table.columns.iter().filter(|column| takes(column));
    joined(columns.map(|column| format!("{}.{}", table.name, column.name)))
}

/// The columns of some roles, as the rows of arrays, and behind them the known revisions if they are wanted.
///
/// Each array is unnested in a list of expressions, which reads all of them side by side. `FROM unnest($1, $2)` would first
/// write each column into a store of its own: for rows of an instance, two and a half times the work.
fn unnested(table: &Table, takes: fn(Role) -> bool, with_revisions: bool) -> String {
    let taken = table.columns.iter().filter(|column| takes(column.role));
    let taken = taken.map(|column| (column.kind, column.name));
    let taken: Vec<_> = taken.chain(with_revisions.then_some((Kind::Int, "known_revision"))).collect();
    let column =
        |(n, (kind, name)): (usize, &(Kind, &str))| format!("unnest(${}::{}) AS {name}", n + 1, kind.array());
    format!("(SELECT {}) AS given", joined(taken.iter().enumerate().map(column)))
}

fn names(table: &Table, takes: fn(Role) -> bool) -> Vec<&'static str> {
    table.columns.iter().filter(|column| takes(column.role)).map(|column| column.name).collect()
}

fn is_key(role: Role) -> bool {
    role == Role::Key
}

fn insert_text(table: &Table) -> String {
    let mut columns = names(table, is_given).join(", ");
    let mut values = columns.clone();
    for computed in table.computed {
        columns.push_str(&format!(", {}", computed.name));
        values.push_str(&format!(", {}", computed.inserted));
    }
    if table.has_revisions() {
        columns.push_str(", revision");
        values.push_str(&format!(", ${}::bigint", names(table, is_given).len() + 1));
    }
    let given = unnested(table, is_given, false);
    format!("INSERT INTO {{s}}.{} ({columns}) SELECT {values} FROM {given}", table.name)
}

fn assignments(table: &Table, source: &str) -> String {
    let changing = names(table, |role| role == Role::Mutable);
    joined(changing.into_iter().map(|column| format!("{column} = {source}.{column}")))
}

/// Finds each given row by the index. The array of one element is a hint for the planner, which believes a table empty
/// that was empty when it was analysed: a plain comparison lets it read the whole index for each given row instead.
fn same_key(table: &Table) -> String {
    let keys = names(table, is_key).into_iter().enumerate().map(|(position, key)| match position {
        0 => format!("{0}.{key} = ANY (ARRAY[given.{key}])", table.name),
        _ => format!("{0}.{key} = given.{key}", table.name),
    });
    keys.collect::<Vec<_>>().join(" AND ")
}

fn update_text(table: &Table) -> String {
    let (name, given) = (table.name, unnested(table, is_updated, table.has_revisions()));
    let mut changes = assignments(table, "given");
    for computed in table.computed {
        changes.push_str(&format!(", {} = {}", computed.name, computed.updated));
    }
    if table.has_revisions() {
        changes.push_str(&format!(", revision = ${}::bigint", names(table, is_updated).len() + 2));
    }
    format!("UPDATE {{s}}.{name} SET {changes} FROM {given} WHERE {}{}", same_key(table), unchanged(table))
}

fn upsert_text(table: &Table) -> String {
    let keys = names(table, is_key).join(", ");
    format!("{} ON CONFLICT ({keys}) DO UPDATE SET {}", insert_text(table), assignments(table, "excluded"))
}

fn delete_text(table: &Table) -> String {
    let given = unnested(table, is_key, table.has_revisions());
    format!("DELETE FROM {{s}}.{} USING {given} WHERE {}{}", table.name, same_key(table), unchanged(table))
}

/// The condition that a row was not changed in the meantime.
fn unchanged(table: &Table) -> String {
    if !table.has_revisions() {
        return String::new();
    }
    format!(" AND {}.{KNOWN_REVISION} RETURNING 1", table.name)
}

fn verify_text(table: &Table) -> String {
    let (name, given) = (table.name, unnested(table, is_key, true));
    let found = format!("{} AND {name}.{KNOWN_REVISION}", same_key(table));
    format!("SELECT 1 FROM {given} JOIN {{s}}.{name} ON {found} FOR UPDATE OF {name}")
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Activity, CustomStatus, Event, KeyValue, Message, Record};

    #[test]
    fn statements_are_made_of_the_list_of_columns() {
        let schema = SchemaName::default();
        assert_eq!(
            expand(CustomStatus::UPSERT, &schema),
            "INSERT INTO duroxide.custom_status (instance, status, version) SELECT instance, status, version \
             FROM (SELECT unnest($1::bigint[]) AS instance, unnest($2::text[]) AS status, \
             unnest($3::bigint[]) AS version) AS given \
             ON CONFLICT (instance) DO UPDATE SET status = excluded.status, version = excluded.version"
        );
        assert_eq!(
            expand(KeyValue::DELETE, &schema),
            "DELETE FROM duroxide.kv \
             USING (SELECT unnest($1::bigint[]) AS instance, unnest($2::text[]) AS key) AS given WHERE kv.instance = ANY (ARRAY[given.instance]) AND kv.key = given.key"
        );
        assert!(!expand(Message::UPDATE, &schema).contains("data"), "a text is written once");
    }

    #[test]
    fn rows_with_revisions_are_written_as_long_as_they_have_the_known_one() {
        let schema = SchemaName::default();
        let delete = expand(Activity::DELETE, &schema);
        assert_eq!(
            delete,
            "DELETE FROM duroxide.activity \
             USING (SELECT unnest($1::bigint[]) AS number, unnest($2::bigint[]) AS known_revision) AS given WHERE activity.number = ANY (ARRAY[given.number]) AND activity.revision = given.known_revision RETURNING 1"
        );
        assert_eq!(
            expand(Activity::VERIFY, &schema),
            "SELECT 1 FROM (SELECT unnest($1::bigint[]) AS number, unnest($2::bigint[]) AS known_revision) AS given \
             JOIN duroxide.activity ON activity.number = ANY (ARRAY[given.number]) \
             AND activity.revision = given.known_revision FOR UPDATE OF activity"
        );
        let update = expand(Activity::UPDATE, &schema);
        assert!(
            update.contains("$13::bigint[]) AS known_revision) AS given"),
            "twelve columns and the revisions: {update}"
        );
        assert!(update.contains("revision = $14::bigint FROM"), "{update}");
        assert!(
            expand(Activity::INSERT, &schema).contains(", $19::bigint FROM (SELECT unnest("),
            "eighteen columns"
        );
    }

    #[test]
    fn statements_together_are_one_with_the_parameters_of_all() {
        let schema = SchemaName::default();
        let template = format!("{TOGETHER}{}{TOGETHER}{}", KeyValue::DELETE, Activity::DELETE);
        assert_eq!(
            expand(&template, &schema),
            "WITH part_0 AS (DELETE FROM duroxide.kv \
             USING (SELECT unnest($1::bigint[]) AS instance, unnest($2::text[]) AS key) AS given WHERE kv.instance = ANY (ARRAY[given.instance]) AND kv.key = given.key), \
             part_1 AS (DELETE FROM duroxide.activity \
             USING (SELECT unnest($3::bigint[]) AS number, unnest($4::bigint[]) AS known_revision) AS given WHERE activity.number = ANY (ARRAY[given.number]) \
             AND activity.revision = given.known_revision RETURNING 1) \
             SELECT 1 / (CASE WHEN (SELECT count(*) FROM part_1) + 0 = $5::bigint THEN 1 ELSE 0 END) AS unchanged, \
             ARRAY(SELECT nextval('duroxide.numbers') FROM generate_series(1, $6::bigint)) AS firsts, \
             (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now"
        );
        let many = format!("{TOGETHER}{}{TOGETHER}{}", Event::INSERT, Activity::INSERT);
        assert!(expand(&many, &schema).contains("$23::bigint FROM (SELECT unnest("), "four and nineteen");
        assert!(expand(&many, &schema).contains("$25::bigint)) AS firsts"));
    }
}
