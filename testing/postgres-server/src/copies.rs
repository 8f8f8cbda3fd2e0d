//! Fills the tables of a store with copies of one instance, which is quicker than running as many.

/// The columns in which a copy differs from its original: table, column, value. `n` counts the copies from 1.
const REPLACED: [(&str, &str, &str); 9] = [
    ("instance", "number", "{first} + n"),
    ("instance", "id", "''{id}-copy-'' || n"),
    ("instance", "wait_until", "wait_until + n"),
    ("instance", "look_at", "look_at + n"),
    ("execution", "instance", "{first} + n"),
    ("history", "instance", "{first} + n"),
    ("message", "instance", "{first} + n"),
    ("message", "number", "{first} + n"),
    ("message", "due_at", "due_at + n"),
];

/// A script that copies all rows of the instance `id`, this many times, in a schema of `duroxide-postgres`. The copies get numbers
/// behind `first`; no row may have a number above it. The ids are `id-copy-1` and so on.
pub fn copies_of(schema: &str, id: &str, first: u64, copies: u64) -> String {
    let replaced = REPLACED.map(|(table, column, value)| format!("('{table}', '{column}', '{value}')"));
    let replaced = replaced.join(", ").replace("{first}", &first.to_string()).replace("{id}", id);
    let next = first + copies + 1;
    format!(
        "DO $copy$ DECLARE part record; BEGIN
            FOR part IN SELECT table_name,
                    string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) AS names,
                    string_agg(coalesce(value, 'original.' || quote_ident(column_name)), ', '
                        ORDER BY ordinal_position) AS contents
                FROM information_schema.columns
                LEFT JOIN (VALUES {replaced}) AS replaced (of_table, of_column, value)
                    ON of_table = table_name AND of_column = column_name
                WHERE table_schema = '{schema}' AND is_generated = 'NEVER'
                    AND table_name IN ('instance', 'execution', 'history', 'message')
                GROUP BY table_name
            LOOP
                EXECUTE format('INSERT INTO {schema}.%1$I (%2$s)
                    SELECT %3$s FROM {schema}.%1$I AS original, generate_series(1, {copies}) AS n
                    WHERE original.%4$I = (SELECT number FROM {schema}.instance WHERE id = %5$L)',
                    part.table_name, part.names, part.contents,
                    CASE part.table_name WHEN 'instance' THEN 'number' ELSE 'instance' END, '{id}');
            END LOOP;
        END $copy$;
        ALTER SEQUENCE {schema}.numbers RESTART WITH {next};
        ANALYZE"
    )
}
