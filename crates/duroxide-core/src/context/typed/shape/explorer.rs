//! [`Explorer`]: a deserializer that records the types it is asked for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display},
};

use serde::de::{self, Deserializer, Visitor, value::StrDeserializer};

use super::{
    access::{Elements, Entry, Fields, Variant},
    answers::{NUMBERS, TEXTS},
};

/// The shape of a type found so far, by the path of each value.
#[derive(Debug, Default)]
pub(super) struct Notes {
    lines: BTreeMap<String, String>,
    enums: BTreeMap<String, EnumNotes>,
    /// How many answers were refused.
    refused: BTreeMap<String, usize>,
    /// Places that refuse every answer.
    given_up: BTreeSet<String>,
    /// The last place of this pass that has several answers, and their number.
    last: Option<(String, usize)>,
    /// A variant was explored in this pass for the first time.
    new_variant: bool,
}

#[derive(Debug)]
struct EnumNotes {
    variants: &'static [&'static str],
    explored: BTreeSet<&'static str>,
}

impl Notes {
    pub(super) fn begin_pass(&mut self) {
        self.last = None;
        self.new_variant = false;
    }

    /// Whether another pass may find something.
    pub(super) fn end_pass(&mut self, succeeded: bool) -> bool {
        let another_answer = !succeeded && self.try_another_answer();
        another_answer || self.new_variant
    }

    /// Records that a pass failed at the last place. Returns whether there is another answer to try.
    fn try_another_answer(&mut self) -> bool {
        let Some((place, answers)) = self.last.take() else { return false };
        let refused = self.refused.entry(place.clone()).or_default();
        *refused += 1;
        if *refused < answers {
            return true;
        }
        self.lines.retain(|line, _| !is_within(line, &place));
        self.note(&place, "not explored");
        for (at, notes) in &mut self.enums {
            let around =
                notes.variants.iter().filter(|variant| is_within(&place, &format!("{at}<{variant}>")));
            notes.explored.extend(around);
        }
        self.given_up.insert(place)
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines.into_iter().map(|(place, what)| format!("{place}: {what}")).collect()
    }

    fn note(&mut self, place: &str, what: &str) {
        self.lines.insert(place.to_owned(), what.to_owned());
    }

    /// Records a value with this number of possible answers, and returns the answer for this pass.
    fn ask(&mut self, place: &str, what: &str, answers: usize) -> usize {
        self.last = Some((place.to_owned(), answers));
        if !self.given_up.contains(place) {
            self.note(place, what);
        }
        self.refused.get(place).copied().unwrap_or(0)
    }

    /// The variant to choose now: one that is not explored, or one with something left to explore in it.
    fn choose(&mut self, place: &str, variants: &'static [&'static str]) -> Option<&'static str> {
        let none = EnumNotes { variants, explored: BTreeSet::new() };
        let explored = &self.enums.entry(place.to_owned()).or_insert(none).explored;
        let unexplored = variants.iter().find(|variant| !explored.contains(*variant));
        let partly = || variants.iter().find(|variant| self.has_more_in(&format!("{place}<{variant}>")));
        unexplored.or_else(partly).or(variants.first()).copied()
    }

    fn has_more_in(&self, place: &str) -> bool {
        let mut within = self.enums.iter().filter(|(at, _)| is_within(at, place));
        within.any(|(_, notes)| notes.explored.len() < notes.variants.len())
    }

    fn explored(&mut self, place: &str, variant: &'static str) {
        if let Some(notes) = self.enums.get_mut(place) {
            self.new_variant |= notes.explored.insert(variant);
        }
    }
}

/// Whether a place is another one or a part of it: `.a` has `.a[]` in it, but not `.ab`.
fn is_within(place: &str, outer: &str) -> bool {
    place
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{', '<', '?']))
}

/// Answers every request for one value.
pub(super) struct Explorer<'a> {
    notes: &'a mut Notes,
    /// Where the value is, such as `.lines[].count`.
    place: String,
    /// The named types around the value.
    around: Vec<&'static str>,
    /// Within a type that contains itself: nothing is recorded, lists are empty, and every answer has this number.
    silent: Option<usize>,
}

/// The maximum nesting of named types. Only an infinite type has more.
const DEPTH_MAX: usize = 64;

impl<'a> Explorer<'a> {
    pub(super) fn new(notes: &'a mut Notes) -> Self {
        Self { notes, place: String::new(), around: Vec::new(), silent: None }
    }

    /// A part of the value.
    pub(super) fn part(&mut self, step: &str) -> Explorer<'_> {
        let place = format!("{}{step}", self.place);
        Explorer { notes: self.notes, place, around: self.around.clone(), silent: self.silent }
    }

    /// A part of the value whose shape does not matter.
    pub(super) fn silent_part(&mut self, step: &str) -> Explorer<'_> {
        let place = format!("{}{step}", self.place);
        let answer = self.silent.unwrap_or_else(|| {
            self.notes.last = Some((place.clone(), TEXTS.len()));
            self.notes.refused.get(&place).copied().unwrap_or(0)
        });
        Explorer { notes: self.notes, place, around: self.around.clone(), silent: Some(answer) }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.silent.is_some()
    }

    pub(super) fn note(&mut self, what: &str) {
        if self.silent.is_none() {
            self.notes.note(&self.place, what);
        }
    }

    /// Whether exploration ends somewhere in this part.
    pub(super) fn contains_given_up(&self, step: &str) -> bool {
        let place = format!("{}{step}", self.place);
        self.notes.given_up.iter().any(|given_up| is_within(given_up, &place))
    }

    fn ask(&mut self, what: &str, answers: usize) -> usize {
        let answer = self.silent.unwrap_or_else(|| self.notes.ask(&self.place, what, answers));
        answer.min(answers.saturating_sub(1))
    }

    fn number(&mut self, what: &str) -> u8 {
        let answer = self.ask(what, NUMBERS.len());
        NUMBERS.get(answer).copied().unwrap_or_default()
    }

    fn text(&mut self) -> &'static str {
        let answer = self.ask("string", TEXTS.len());
        TEXTS.get(answer).copied().unwrap_or_default()
    }

    /// Enters a named type. A type within itself is recorded by its name, and explored no further.
    fn enter(mut self, name: &'static str) -> Result<Self, Refused> {
        if self.silent.is_none() && self.around.contains(&name) {
            self.silent = Some(self.notes.ask(&self.place, name, TEXTS.len()));
        }
        self.around.push(name);
        if self.around.len() > DEPTH_MAX { Err(Refused) } else { Ok(self) }
    }
}

/// A type refused an answer, or contains itself where nothing can be left out.
#[derive(Debug)]
pub(super) struct Refused;

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

impl de::Error for Refused {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $what:literal)*) => {
        $(fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
            let answer = self.number($what);
            visitor.$visit(answer.into())
        })*
    };
}

impl<'de> Deserializer<'de> for Explorer<'_> {
    type Error = Refused;

    numbers! {
        deserialize_i8 visit_i64 "i8"
        deserialize_i16 visit_i64 "i16"
        deserialize_i32 visit_i64 "i32"
        deserialize_i64 visit_i64 "i64"
        deserialize_i128 visit_i128 "i128"
        deserialize_u8 visit_u64 "u8"
        deserialize_u16 visit_u64 "u16"
        deserialize_u32 visit_u64 "u32"
        deserialize_u64 visit_u64 "u64"
        deserialize_u128 visit_u128 "u128"
        deserialize_f32 visit_f64 "f32"
        deserialize_f64 visit_f64 "f64"
    }

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        self.ask("any", 1);
        visitor.visit_unit()
    }

    fn deserialize_bool<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        self.ask("bool", 1);
        visitor.visit_bool(false)
    }

    fn deserialize_char<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        self.ask("char", 1);
        visitor.visit_char('a')
    }

    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_borrowed_str(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        self.ask("bytes", 1);
        visitor.visit_borrowed_bytes(b"")
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        if self.is_silent() { visitor.visit_none() } else { visitor.visit_some(self.part("?")) }
    }

    fn deserialize_unit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refused> {
        self.ask("null", 1);
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self.enter(name)?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_seq(Elements::list(self))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_seq(Elements::tuple(self, len))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.enter(name)?.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_map(Entry::new(self))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_map(Fields::new(self.enter(name)?, fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let mut explorer = self.enter(name)?;
        if let Some(answer) = explorer.silent {
            let variant = variants.get(answer.min(variants.len().saturating_sub(1))).ok_or(Refused)?;
            return visitor.visit_enum(Variant::new(explorer, variant));
        }
        let variant = explorer.notes.choose(&explorer.place, variants).ok_or(Refused)?;
        let content = explorer.part(&format!("<{variant}>"));
        let value = visitor.visit_enum(Variant::new(content, variant))?;
        explorer.notes.explored(&explorer.place, variant);
        Ok(value)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        StrDeserializer::<Refused>::new("").deserialize_any(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }
}
