//! Texts that are known to be stored, so that other rows of the same instance can refer to them.
//!
//! A text that is not found here is stored once more, which costs room and nothing else.

use std::collections::{BTreeMap, VecDeque};

/// Bytes of all known texts.
const BYTES_MAX: usize = 32 << 20;
/// Texts of one instance. A search compares all, by their lengths first.
const TEXTS_MAX: usize = 256;

/// The last written payloads, by the instance whose rows refer to them.
#[derive(Debug, Default)]
pub(super) struct StoredTexts {
    instances: BTreeMap<u64, VecDeque<Known>>,
    bytes: usize,
}

#[derive(Debug)]
struct Known {
    id: u64,
    text: String,
}

impl StoredTexts {
    /// The number of the payload that is this text.
    pub(super) fn find(&self, instance: u64, text: &str) -> Option<u64> {
        let texts = self.instances.get(&instance)?;
        texts.iter().rev().find(|known| known.text == text).map(|known| known.id)
    }

    /// A payload was stored. If there are too many, those of the oldest instances are forgotten.
    pub(super) fn put(&mut self, instance: u64, id: u64, text: &str) {
        if text.len() > BYTES_MAX {
            return;
        }
        let texts = self.instances.entry(instance).or_default();
        if texts.len() >= TEXTS_MAX
            && let Some(oldest) = texts.pop_front()
        {
            self.bytes -= oldest.text.len();
        }
        texts.push_back(Known { id, text: text.to_owned() });
        self.bytes += text.len();
        while self.bytes > BYTES_MAX
            && let Some((_, texts)) = self.instances.pop_first()
        {
            self.bytes -= bytes_of(&texts);
        }
    }

    /// A payload was deleted.
    pub(super) fn forget(&mut self, instance: u64, id: u64) {
        if let Some(texts) = self.instances.get_mut(&instance) {
            self.bytes -= bytes_of(texts);
            texts.retain(|known| known.id != id);
            self.bytes += bytes_of(texts);
        }
    }

    /// No more rows of an instance are expected.
    pub(super) fn forget_instance(&mut self, instance: u64) {
        if let Some(texts) = self.instances.remove(&instance) {
            self.bytes -= bytes_of(&texts);
        }
    }
}

fn bytes_of(texts: &VecDeque<Known>) -> usize {
    texts.iter().map(|known| known.text.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_for_its_instance_until_it_is_deleted() {
        let mut known = StoredTexts::default();
        known.put(1, 10, "one");
        known.put(1, 11, "two");
        assert_eq!((known.find(1, "one"), known.find(2, "one")), (Some(10), None));
        known.forget(1, 10);
        assert_eq!((known.find(1, "one"), known.find(1, "two"), known.bytes), (None, Some(11), 3));
        known.forget_instance(1);
        assert_eq!((known.find(1, "two"), known.bytes), (None, 0));
    }

    #[test]
    fn texts_of_one_instance_and_all_texts_are_bounded() {
        let mut known = StoredTexts::default();
        for id in 0..=TEXTS_MAX as u64 {
            known.put(1, id, &format!("{id:04}"));
        }
        assert_eq!((known.find(1, "0000"), known.find(1, "0001")), (None, Some(1)));
        assert_eq!(known.bytes, 4 * TEXTS_MAX);
        let half = "x".repeat(BYTES_MAX / 2);
        known.put(3, 1000, &half);
        known.put(2, 1001, &half);
        assert_eq!((known.find(1, "0001"), known.find(3, &half)), (None, Some(1000)));
        assert_eq!(known.bytes, BYTES_MAX);
        known.put(4, 1002, &"x".repeat(BYTES_MAX + 1));
        assert_eq!(known.bytes, BYTES_MAX);
    }
}
