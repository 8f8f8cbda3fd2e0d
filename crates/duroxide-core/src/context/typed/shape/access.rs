//! The parts of a value: elements, entries, fields and variants.

use std::collections::VecDeque;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
    value::StrDeserializer,
};

use super::explorer::{Explorer, Refused};

/// One element of a list, or all of a tuple.
pub(super) struct Elements<'a> {
    of: Explorer<'a>,
    steps: VecDeque<String>,
}

impl<'a> Elements<'a> {
    pub(super) fn list(of: Explorer<'a>) -> Self {
        // A type within itself ends where a list may be empty.
        let steps = if of.is_silent() { VecDeque::new() } else { VecDeque::from(["[]".to_owned()]) };
        Self { of, steps }
    }

    pub(super) fn tuple(of: Explorer<'a>, len: usize) -> Self {
        Self { of, steps: (0..len).map(|index| format!(".{index}")).collect() }
    }
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        let Some(step) = self.steps.pop_front() else { return Ok(None) };
        seed.deserialize(self.of.part(&step)).map(Some)
    }
}

/// One entry of a map.
pub(super) struct Entry<'a> {
    of: Explorer<'a>,
    done: bool,
}

impl<'a> Entry<'a> {
    pub(super) fn new(of: Explorer<'a>) -> Self {
        let done = of.is_silent();
        Self { of, done }
    }
}

impl<'de> MapAccess<'de> for Entry<'_> {
    type Error = Refused;

    /// Keys are strings in JSON, also if they are numbers or enums in Rust.
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        seed.deserialize(self.of.silent_part("{key}")).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        seed.deserialize(self.of.part("{}"))
    }
}

/// The fields of a struct. Those that cannot be explored come last, because exploration ends there.
pub(super) struct Fields<'a> {
    of: Explorer<'a>,
    left: VecDeque<&'static str>,
    current: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(mut of: Explorer<'a>, fields: &'static [&'static str]) -> Self {
        if fields.is_empty() {
            of.note("object");
        }
        let (last, first): (Vec<_>, Vec<_>) =
            fields.iter().partition(|field| of.contains_given_up(&format!(".{field}")));
        Self { of, left: first.into_iter().chain(last).collect(), current: "" }
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        let Some(field) = self.left.pop_front() else { return Ok(None) };
        self.current = field;
        seed.deserialize(StrDeserializer::<Refused>::new(field)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        seed.deserialize(self.of.part(&format!(".{}", self.current)))
    }
}

/// The chosen variant of an enum.
pub(super) struct Variant<'a> {
    of: Explorer<'a>,
    name: &'static str,
}

impl<'a> Variant<'a> {
    pub(super) fn new(of: Explorer<'a>, name: &'static str) -> Self {
        Self { of, name }
    }
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = Refused;
    type Variant = Explorer<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Explorer<'a>), Refused> {
        let variant = seed.deserialize(StrDeserializer::<Refused>::new(self.name))?;
        Ok((variant, self.of))
    }
}

impl<'de> VariantAccess<'de> for Explorer<'_> {
    type Error = Refused;

    fn unit_variant(mut self) -> Result<(), Refused> {
        self.note("unit");
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Refused> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_map(Fields::new(self, fields))
    }
}
