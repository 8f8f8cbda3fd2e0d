//! The columns of a table, named once.

/// Names the columns that a row type reads, in order. `$list!()` is their list for a SELECT, qualified by the table, and
/// `$table::COLUMN` the position of each in it.
macro_rules! columns {
    ($table:ident as $list:ident: $first:ident $(, $column:ident)* $(,)?) => {
        macro_rules! $list {
            () => {
                concat!(
                    stringify!($table), ".", stringify!($first)
                    $(, ", ", stringify!($table), ".", stringify!($column))*
                )
            };
        }

        /// Positions of the columns in the list.
        #[allow(dead_code, non_upper_case_globals, reason = "some are read by their neighbour's position")]
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
