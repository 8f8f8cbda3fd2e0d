//! [`News`]: the content of a notification about a commit.

use duroxide_provider::store::Readies;

/// What a commit has left for other processes to claim: the lowest number of an instance and of an activity. A commit that
/// only changes a status that clients wait for leaves none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) instances_from: Option<u64>,
    pub(crate) activities_from: Option<u64>,
}

impl News {
    /// Any instance and any activity may be ready.
    pub(crate) const ANYTHING: Self = Self { instances_from: Some(0), activities_from: Some(0) };

    /// The queues that have ready items.
    pub(crate) fn readies(self) -> Readies {
        Readies { instances: self.instances_from.is_some(), activities: self.activities_from.is_some() }
    }

    /// Merges two notifications.
    pub(crate) fn and(self, other: Self) -> Self {
        let lowest = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            instances_from: lowest(self.instances_from, other.instances_from),
            activities_from: lowest(self.activities_from, other.activities_from),
        }
    }

    /// The payload of a notification: the sender, and a letter and a number for each queue.
    pub(crate) fn payload(self, sender: &str) -> String {
        let part =
            |letter, from: Option<u64>| from.map(|from| format!(" {letter}{from}")).unwrap_or_default();
        format!("{sender}{}{}", part('i', self.instances_from), part('a', self.activities_from))
    }

    /// The sender and the content of a notification. A payload that cannot be parsed counts as [`Self::ANYTHING`].
    pub(super) fn parse(payload: &str) -> (&str, Self) {
        let mut words = payload.split(' ');
        let sender = words.next().unwrap_or_default();
        let mut news = Self::default();
        for word in words {
            let from = word.get(1..).and_then(|number| number.parse().ok());
            match (word.get(..1), from) {
                (Some("i"), Some(from)) => news.instances_from = Some(from),
                (Some("a"), Some(from)) => news.activities_from = Some(from),
                _ => return (sender, Self::ANYTHING),
            }
        }
        (sender, news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_names_its_sender_and_what_is_ready() {
        for (instances_from, activities_from) in
            [(None, None), (Some(7), None), (None, Some(u64::MAX)), (Some(0), Some(9))]
        {
            let news = News { instances_from, activities_from };
            assert_eq!(News::parse(&news.payload("me")), ("me", news));
        }
        assert_eq!(News::parse("me i? b7"), ("me", News::ANYTHING));
    }

    #[test]
    fn merged_notifications_have_the_lowest_numbers() {
        let one = News { instances_from: Some(7), activities_from: None };
        let other = News { instances_from: Some(5), activities_from: Some(3) };
        assert_eq!(one.and(other), other);
        assert_eq!(one.and(News::default()), one);
        assert_eq!(News::default().readies(), Readies::default());
    }
}
