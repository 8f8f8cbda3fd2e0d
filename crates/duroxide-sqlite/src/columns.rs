//! The columns of a table, each list written once. The macros make statements and positions at compile time.

/// Names the columns that a row type reads, in order; a column that is not a plain one is followed by its SQL.
/// `$list!()` is the list for a SELECT, qualified by the table, and `$table::COLUMN` the position of each in it.
macro_rules! columns {
    ($table:ident as $list:ident: $first:ident $(= $first_sql:expr)? $(, $column:ident $(= $sql:expr)?)* $(,)?) => {
        macro_rules! $list {
            () => {
                concat!(
                    $crate::columns::selected!($table $first $($first_sql)?)
                    $(, ", ", $crate::columns::selected!($table $column $($sql)?))*
                )
            };
        }

        /// Positions of the columns in the list.
        #[allow(dead_code, non_upper_case_globals, reason = "columns are named as in SQL, and some lists need no count")]
        pub(crate) mod $table {
            #[allow(non_camel_case_types)]
            enum Position { $first $(, $column)*, Count }
            pub(crate) const $first: usize = Position::$first as usize;
            $(pub(crate) const $column: usize = Position::$column as usize;)*
            /// How many there are.
            pub(crate) const COUNT: usize = Position::Count as usize;
        }
    };
}
pub(crate) use columns;

/// One column of a SELECT.
macro_rules! selected {
    ($table:ident $column:ident) => {
        concat!(stringify!($table), ".", stringify!($column))
    };
    ($table:ident $column:ident $sql:expr) => {
        $sql
    };
}
pub(crate) use selected;

/// Names with commas between them.
macro_rules! list {
    ($first:ident $(, $name:ident)*) => {
        concat!(stringify!($first) $(, ", ", stringify!($name))*)
    };
}
pub(crate) use list;

/// The parameter of one more column.
macro_rules! one_more {
    ($column:ident) => {
        ", ?"
    };
}
pub(crate) use one_more;

/// An INSERT whose parameters are the named columns, in this order.
macro_rules! insert_into {
    ($table:ident: $first:ident $(, $column:ident)*) => {
        concat!(
            "INSERT INTO ", stringify!($table), " (", $crate::columns::list!($first $(, $column)*),
            ") VALUES (?" $(, $crate::columns::one_more!($column))*, ")"
        )
    };
}
pub(crate) use insert_into;

/// Inserts a row, given as columns with their values; returns the number of inserted rows. Further tokens end the
/// statement.
macro_rules! insert {
    ($db:expr, $table:ident { $($column:ident: $value:expr),+ $(,)? } $($then:literal)?) => {
        $db.execute(
            concat!($crate::columns::insert_into!($table: $($column),+) $(, " ", $then)?),
            ($($value,)+),
        )
    };
}
pub(crate) use insert;

/// Inserts a row by its key, or sets its columns if it exists. Columns that are set `once` are not changed then.
macro_rules! upsert {
    (
        $db:expr, $table:ident [$($key:ident: $key_value:expr),+]
        { $first:ident: $first_value:expr $(, $column:ident: $value:expr)* $(,)? }
        $(once { $($kept:ident: $kept_value:expr),+ })?
    ) => {
        $db.execute(
            concat!(
                $crate::columns::insert_into!($table: $($key,)+ $first $(, $column)* $($(, $kept)+)?),
                " ON CONFLICT (", $crate::columns::list!($($key),+), ") DO UPDATE SET ",
                stringify!($first), " = excluded.", stringify!($first)
                $(, ", ", stringify!($column), " = excluded.", stringify!($column))*
            ),
            ($($key_value,)+ $first_value, $($value,)* $($($kept_value,)+)?),
        )
    };
}
pub(crate) use upsert;

/// An UPDATE of the named columns in the row of a key, whose parameters come last.
macro_rules! update_of {
    ($table:ident [$first_key:ident $(, $key:ident)*] $first:ident $(, $column:ident)*) => {
        concat!(
            "UPDATE ", stringify!($table), " SET ", stringify!($first), " = ?"
            $(, ", ", stringify!($column), " = ?")*,
            " WHERE ", stringify!($first_key), " = ?" $(, " AND ", stringify!($key), " = ?")*
        )
    };
}
pub(crate) use update_of;

/// Sets columns of the row of a key; returns how many rows that are.
macro_rules! update {
    (
        $db:expr, $table:ident [$($key:ident: $key_value:expr),+]
        { $($column:ident: $value:expr),+ $(,)? }
    ) => {
        $db.execute(
            $crate::columns::update_of!($table [$($key),+] $($column),+),
            ($($value,)+ $($key_value,)+),
        )
    };
}
pub(crate) use update;

/// Like [`update`], with a statement for each variant of an enum: it sets the columns of its variant and of the earlier
/// ones.
macro_rules! update_up_to {
    ($db:expr, $table:ident [$key:ident: $key_value:expr], $step:expr, $steps:ident { $($rest:tt)+ }) => {
        $crate::columns::update_up_to!(@ ($db, $table, $key, $key_value, $step, $steps) [] [] $($rest)+)
    };
    (
        @ $target:tt [$($statements:tt)*] [$($before:tt)*]
        $variant:ident { $($column:ident: $value:expr),+ $(,)? } $($rest:tt)*
    ) => {
        $crate::columns::update_up_to!(
            @ $target
            [$($statements)* $variant { $($before)* $($column: $value,)+ }]
            [$($before)* $($column: $value,)+]
            $($rest)*
        )
    };
    (
        @ ($db:expr, $table:ident, $key:ident, $key_value:expr, $step:expr, $steps:ident)
        [$($variant:ident { $($column:ident: $value:expr,)+ })+] [$($all:tt)*]
    ) => {
        match $step {
            $($steps::$variant => $db.execute(
                $crate::columns::update_of!($table [$key] $($column),+),
                [$(&$value as &dyn rusqlite::ToSql,)+ &$key_value].as_slice(),
            ),)+
        }
    };
}
pub(crate) use update_up_to;

#[cfg(test)]
mod tests {
    use crate::db::{Db, ONLY};

    columns!(item as item_columns: id, name, double = "item.size * 2", size);

    #[derive(Clone, Copy)]
    enum Change {
        Name,
        Size,
    }

    /// A store with one row, whose values all differ.
    fn one_item() -> Db {
        let db = Db::empty().unwrap();
        db.conn()
            .execute_batch(
                "CREATE TABLE item (size INTEGER, made TEXT, name TEXT, id INTEGER PRIMARY KEY);
                INSERT INTO item (id, name, size, made) VALUES (1, 'a', 10, 'first')",
            )
            .unwrap();
        db
    }

    /// The row as `id/name/size/made`.
    fn rows(db: &Db) -> Vec<String> {
        let sql =
            "SELECT id || '/' || name || '/' || size || '/' || coalesce(made, '-') FROM item ORDER BY id";
        db.all(sql, [], |row| row.get(ONLY)).unwrap()
    }

    #[test]
    fn a_column_is_read_at_its_place_in_the_list() {
        let select = concat!("SELECT ", item_columns!(), ", 'more' FROM item");
        let read = one_item().first(select, [], |row| {
            let numbers: [i64; 3] = [row.get(item::id)?, row.get(item::double)?, row.get(item::size)?];
            Ok((numbers, row.get(item::name)?, row.get(item::COUNT)?))
        });
        let expected = ([1, 20, 10], "a".to_owned(), "more".to_owned());
        assert_eq!(read.unwrap(), Some(expected));
    }

    #[test]
    fn an_inserted_row_has_each_value_in_the_column_beside_it() {
        let db = one_item();
        let row = |id: i64| insert!(db, item { name: "b", id: id, size: 20 } "ON CONFLICT (id) DO NOTHING");
        assert_eq!((row(2), row(2)), (Ok(1), Ok(0)));
        assert_eq!(rows(&db), ["1/a/10/first", "2/b/20/-"]);
        assert_eq!(db.last_inserted(), 2);
    }

    #[test]
    fn an_upsert_sets_all_but_the_key_and_what_is_set_once() {
        let db = one_item();
        for id in [1, 2] {
            upsert!(db, item [id: id] { size: 30, name: "c" } once { made: "again" }).unwrap();
        }
        assert_eq!(rows(&db), ["1/c/30/first", "2/c/30/again"]);
    }

    #[test]
    fn an_update_changes_the_row_of_its_whole_key() {
        let db = one_item();
        insert!(db, item { id: 2, name: "a", size: 20, made: "second" }).unwrap();
        assert_eq!(update!(db, item [name: "a", id: 2] { made: "now", size: 40 }), Ok(1));
        assert_eq!(update!(db, item [name: "b", id: 2] { size: 50 }), Ok(0));
        assert_eq!(rows(&db), ["1/a/10/first", "2/a/40/now"]);
    }

    #[test]
    fn an_update_up_to_a_variant_sets_its_columns_and_those_before() {
        for (change, expected) in [(Change::Name, "1/d/10/first"), (Change::Size, "1/d/60/now")] {
            let db = one_item();
            let written = update_up_to!(db, item [id: 1], change, Change {
                Name { name: "d" }
                Size { size: 60, made: "now" }
            });
            assert_eq!((written, rows(&db)), (Ok(1), vec![expected.to_owned()]));
        }
    }
}
