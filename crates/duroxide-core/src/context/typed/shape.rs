//! [`shape_of`]: the JSON that a type is read from, as text.
//!
//! A type shows its shape when it is deserialized: it asks for a struct with these fields, for a list, for a string. The
//! explorer answers every request with some value and records the request. It deserializes again until each variant of
//! each enum was requested.

mod access;
mod answers;
mod explorer;

use serde::{Serialize, de::DeserializeOwned};

use explorer::{Explorer, Notes};

use super::{Activity, Orchestration};

/// The input, output and error of a typed handler, as JSON: a line for each value, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HandlerShapes {
    /// The shape of the input.
    pub input: Vec<String>,
    /// The shape of the output.
    pub output: Vec<String>,
    /// The shape of the error.
    pub error: Vec<String>,
}

impl HandlerShapes {
    /// The shapes of an activity.
    pub fn of_activity<A: Activity>() -> Self {
        Self { input: shape_of::<A::Input>(), output: shape_of::<A::Output>(), error: shape_of::<A::Error>() }
    }

    /// The shapes of an orchestration.
    pub fn of_orchestration<O: Orchestration>() -> Self {
        Self { input: shape_of::<O::Input>(), output: shape_of::<O::Output>(), error: shape_of::<O::Error>() }
    }
}

/// Deserializations of one type. More are needed only by types with hundreds of variants.
const PASSES_MAX: usize = 2_000;

/// The shape of a type: a line for each value in its JSON, sorted.
///
/// `.lines[].count: u32` is the number `count` in each element of the list `lines`; `?` stands for a value that may be
/// `null`, `{}` for the values of a map, `<Card>` for the fields of the variant `Card` of an enum. `any` is a value whose
/// shape is decided by its content, such as an untagged enum. `not explored` is a value that refuses every answer.
pub fn shape_of<T: DeserializeOwned>() -> Vec<String> {
    let mut notes = Notes::default();
    for _ in 0..PASSES_MAX {
        notes.begin_pass();
        let succeeded = T::deserialize(Explorer::new(&mut notes)).is_ok();
        if !notes.end_pass(succeeded) {
            break;
        }
    }
    notes.into_lines()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, net::IpAddr, num::NonZeroU32};

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is used")]
    struct Order {
        id: u64,
        #[serde(rename = "what")]
        item: String,
        lines: Vec<Line>,
        note: Option<String>,
        paid: Payment,
        extra: BTreeMap<String, f64>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is used")]
    struct Line(u8, bool);

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is used")]
    enum Payment {
        Cash,
        Card { number: String, kind: Kind },
        Both(Vec<Kind>),
    }

    #[derive(Deserialize)]
    enum Kind {
        Debit,
        Credit,
    }

    #[test]
    fn every_field_and_variant_is_a_line() {
        assert_eq!(
            shape_of::<Order>(),
            [
                ".extra{}: f64",
                ".id: u64",
                ".lines[].0: u8",
                ".lines[].1: bool",
                ".note?: string",
                ".paid<Both>[]<Credit>: unit",
                ".paid<Both>[]<Debit>: unit",
                ".paid<Card>.kind<Credit>: unit",
                ".paid<Card>.kind<Debit>: unit",
                ".paid<Card>.number: string",
                ".paid<Cash>: unit",
                ".what: string",
            ]
        );
    }

    #[test]
    fn plain_values_have_one_line() {
        assert_eq!(shape_of::<()>(), [": null"]);
        assert_eq!(shape_of::<String>(), [": string"]);
        assert_eq!(shape_of::<(u8, Option<bool>)>(), [".0: u8", ".1?: bool"]);
        assert_eq!(shape_of::<serde_json::Value>(), [": any"]);
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is used")]
    struct Strict {
        address: IpAddr,
        count: NonZeroU32,
        odd: Untagged,
        odder: bool,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its shape is used")]
    enum Untagged {
        One { a: u8 },
        Two { b: u8 },
    }

    #[test]
    fn values_that_refuse_an_answer_do_not_hide_the_others() {
        assert_eq!(
            shape_of::<Strict>(),
            [".address: string", ".count: u32", ".odd: not explored", ".odder: bool"]
        );
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is used")]
    struct Tree {
        value: u8,
        left: Option<Box<Tree>>,
        children: Vec<Tree>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is used")]
    enum Term {
        Number(i32),
        Sum(Box<Term>, Box<Term>),
    }

    #[test]
    fn a_recursive_type_ends() {
        assert_eq!(shape_of::<Tree>(), [".children[]: Tree", ".left?: Tree", ".value: u8"]);
        assert_eq!(shape_of::<Term>(), ["<Number>: i32", "<Sum>.0: Term", "<Sum>.1: Term"]);
    }
}
