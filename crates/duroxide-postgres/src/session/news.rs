//! What a notification says of a commit.

use duroxide_provider::store::Readies;

/// What another process has committed, as far as others can use it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// The work that it has left to be claimed. A commit that only changes what clients wait for leaves none.
    pub(crate) readies: Readies,
}

impl News {
    /// Whatever there may be.
    pub(crate) const ANYTHING: Self = Self { readies: Readies { instances: true, activities: true } };

    /// The payload of a notification: the sender, and a letter for each queue.
    pub(crate) fn payload(self, sender: &str) -> String {
        let instances = if self.readies.instances { "i" } else { "" };
        let activities = if self.readies.activities { "a" } else { "" };
        format!("{sender} {instances}{activities}")
    }

    /// The sender of a notification and what it says. Earlier versions named only the sender.
    pub(super) fn parse(payload: &str) -> (&str, Self) {
        let Some((sender, queues)) = payload.split_once(' ') else { return (payload, Self::ANYTHING) };
        let (instances, activities) = (queues.contains('i'), queues.contains('a'));
        (sender, Self { readies: Readies { instances, activities } })
    }

    pub(super) fn add(&mut self, other: Self) {
        self.readies = self.readies.or(other.readies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_says_who_left_what() {
        for (instances, activities) in [(false, false), (true, false), (false, true), (true, true)] {
            let news = News { readies: Readies { instances, activities } };
            assert_eq!(News::parse(&news.payload("me")), ("me", news));
        }
        assert_eq!(News::parse("an-earlier-version"), ("an-earlier-version", News::ANYTHING));
    }
}
