//! What a notification says of a commit.

use duroxide_provider::store::Readies;

/// What another process has committed, as far as others can use it: the lowest numbers of the instances and of the
/// activities that it has left to be claimed. A commit that only changes what clients wait for leaves none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) instances_from: Option<u64>,
    pub(crate) activities_from: Option<u64>,
}

impl News {
    /// Whatever there may be.
    pub(crate) const ANYTHING: Self = Self { instances_from: Some(0), activities_from: Some(0) };

    /// The queues that have something.
    pub(crate) fn readies(self) -> Readies {
        Readies { instances: self.instances_from.is_some(), activities: self.activities_from.is_some() }
    }

    /// What either says.
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

    /// The sender of a notification and what it says. What cannot be understood may be anything.
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
    fn a_payload_says_who_left_what() {
        for (instances_from, activities_from) in
            [(None, None), (Some(7), None), (None, Some(u64::MAX)), (Some(0), Some(9))]
        {
            let news = News { instances_from, activities_from };
            assert_eq!(News::parse(&news.payload("me")), ("me", news));
        }
        assert_eq!(News::parse("me i? b7"), ("me", News::ANYTHING));
    }

    #[test]
    fn the_lowest_numbers_of_all_news_count() {
        let one = News { instances_from: Some(7), activities_from: None };
        let other = News { instances_from: Some(5), activities_from: Some(3) };
        assert_eq!(one.and(other), other);
        assert_eq!(one.and(News::default()), one);
        assert_eq!(News::default().readies(), Readies::default());
    }
}
