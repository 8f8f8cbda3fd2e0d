//! Values that are stored once, under a number.

use std::collections::BTreeMap;

/// Values that rows refer to by number. There are few, and they stay.
#[derive(Debug, Clone)]
pub(in crate::memory) struct Interned<T> {
    numbers: BTreeMap<T, u64>,
    values: Vec<T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { numbers: BTreeMap::new(), values: Vec::new() }
    }
}

impl<T: Ord + Clone> Interned<T> {
    /// The number of a value, which is stored if it is new.
    pub(in crate::memory) fn number(&mut self, value: &T) -> u64 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.values.len() as u64;
        self.values.push(value.clone());
        self.numbers.insert(value.clone(), number);
        number
    }

    pub(in crate::memory) fn value(&self, number: u64) -> Option<&T> {
        usize::try_from(number).ok().and_then(|number| self.values.get(number))
    }
}
