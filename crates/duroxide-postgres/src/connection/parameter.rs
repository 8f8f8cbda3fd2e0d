//! Values for the parameters of a statement, with their types. The types are sent with statements that are not prepared.

use std::fmt;

use tokio_postgres::types::{ToSql, Type};

/// A value for a parameter of a statement.
pub(crate) type Parameter = Box<dyn TypedValue>;

/// A value and its type.
pub(crate) trait TypedValue: fmt::Debug + Send + Sync {
    fn value(&self) -> &(dyn ToSql + Sync);
    fn sql_type(&self) -> Type;
}

/// The types that the columns have.
pub(crate) trait Scalar: ToSql + fmt::Debug + Send + Sync {
    const TYPE: Type;
    const ARRAY: Type;
}

impl Scalar for i64 {
    const TYPE: Type = Type::INT8;
    const ARRAY: Type = Type::INT8_ARRAY;
}

impl Scalar for String {
    const TYPE: Type = Type::TEXT;
    const ARRAY: Type = Type::TEXT_ARRAY;
}

impl Scalar for bool {
    const TYPE: Type = Type::BOOL;
    const ARRAY: Type = Type::BOOL_ARRAY;
}

macro_rules! typed {
    ($($shape:ty => $type:ident),*) => {$(
        impl<T: Scalar> TypedValue for $shape {
            fn value(&self) -> &(dyn ToSql + Sync) {
                self
            }

            fn sql_type(&self) -> Type {
                T::$type
            }
        }
    )*};
}

typed!(T => TYPE, Option<T> => TYPE, Vec<T> => ARRAY, Vec<Option<T>> => ARRAY, Option<Vec<T>> => ARRAY);
