//! [`News`]: the content of a notification about a commit.

use duroxide_provider::store::Readies;

/// What a commit has left for other processes to claim: the lowest numbers of ready instances and activities. A commit that
/// only changes a status that clients wait for leaves none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) instances_from: Option<u64>,
    pub(crate) activities_from: Option<u64>,
    /// Activities that the process which left them is expected to claim; others look for them later.
    pub(crate) later_activities_from: Option<u64>,
    /// New instances that the process that reads this is to claim.
    pub(crate) left_here_from: Option<u64>,
    /// New instances that another process is to claim.
    pub(crate) left_elsewhere_from: Option<u64>,
}

impl News {
    /// Any instance and any activity may be ready.
    pub(crate) const ANYTHING: Self = Self {
        instances_from: Some(0),
        activities_from: Some(0),
        later_activities_from: None,
        left_here_from: None,
        left_elsewhere_from: None,
    };

    /// The queues that have ready items for any process.
    pub(crate) fn readies(self) -> Readies {
        Readies { instances: self.instances_from.is_some(), activities: self.activities_from.is_some() }
    }

    /// The lowest number of all ready instances.
    pub(crate) fn lowest_instance(self) -> Option<u64> {
        [self.instances_from, self.left_here_from, self.left_elsewhere_from].into_iter().flatten().min()
    }

    /// Merges two notifications.
    pub(crate) fn and(self, other: Self) -> Self {
        let lowest = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            instances_from: lowest(self.instances_from, other.instances_from),
            activities_from: lowest(self.activities_from, other.activities_from),
            later_activities_from: lowest(self.later_activities_from, other.later_activities_from),
            left_here_from: lowest(self.left_here_from, other.left_here_from),
            left_elsewhere_from: lowest(self.left_elsewhere_from, other.left_elsewhere_from),
        }
    }

    /// The payload of a notification: the sender, a letter and a number for each queue, and who is to claim new instances.
    pub(crate) fn payload(self, sender: &str, claimer: u64) -> String {
        let part =
            |letter, from: Option<u64>| from.map(|from| format!(" {letter}{from}")).unwrap_or_default();
        let left = self.left_elsewhere_from.map(|from| format!(" n{from}@{claimer}")).unwrap_or_default();
        let parts =
            [('i', self.instances_from), ('a', self.activities_from), ('l', self.later_activities_from)];
        let ready: String = parts.into_iter().map(|(letter, from)| part(letter, from)).collect();
        format!("{sender}{ready}{left}")
    }

    /// The sender and the content of a notification, read by the process with this rank. A payload that cannot be parsed counts as
    /// [`Self::ANYTHING`].
    pub(super) fn parse(payload: &str, reader: u64) -> (&str, Self) {
        let mut words = payload.split(' ');
        let sender = words.next().unwrap_or_default();
        let mut news = Self::default();
        for word in words {
            if news.parse_word(word, reader).is_none() {
                return (sender, Self::ANYTHING);
            }
        }
        (sender, news)
    }

    fn parse_word(&mut self, word: &str, reader: u64) -> Option<()> {
        let number = |text: &str| text.parse::<u64>().ok();
        if let Some(left) = word.strip_prefix('n') {
            let (from, claimer) = left.split_once('@')?;
            let from = Some(number(from)?);
            if number(claimer)? == reader {
                self.left_here_from = from;
            } else {
                self.left_elsewhere_from = from;
            }
        } else if let Some(from) = word.strip_prefix('i') {
            self.instances_from = Some(number(from)?);
        } else if let Some(from) = word.strip_prefix('l') {
            self.later_activities_from = Some(number(from)?);
        } else {
            self.activities_from = Some(number(word.strip_prefix('a')?)?);
        }
        Some(())
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
            let news = News { instances_from, activities_from, ..News::default() };
            assert_eq!(News::parse(&news.payload("me", 0), 0), ("me", news));
        }
        for unreadable in ["me i? a7", "me b7", "me n7", "me n7@", "me n@7"] {
            assert_eq!(News::parse(unreadable, 0), ("me", News::ANYTHING), "{unreadable}");
        }
    }

    /// 24.11
    #[test]
    fn activities_of_a_busy_process_are_not_looked_for_at_once() {
        let news = News { later_activities_from: Some(7), ..News::default() };
        assert_eq!(News::parse(&news.payload("me", 0), 0), ("me", news));
        assert_eq!(news.readies(), Readies::default());
    }

    /// 24.11
    #[test]
    fn new_instances_are_left_to_the_named_process() {
        let news = News { left_elsewhere_from: Some(7), ..News::default() };
        let payload = news.payload("me", 2);
        assert_eq!(News::parse(&payload, 1), ("me", news));
        let here = News { left_here_from: Some(7), ..News::default() };
        assert_eq!(News::parse(&payload, 2), ("me", here));
        assert_eq!(here.readies(), Readies::default(), "they are not looked for at once");
        assert_eq!((here.lowest_instance(), news.lowest_instance()), (Some(7), Some(7)));
    }

    #[test]
    fn merged_notifications_have_the_lowest_numbers() {
        let one = News { instances_from: Some(7), left_here_from: Some(9), ..News::default() };
        let other = News {
            instances_from: Some(5),
            activities_from: Some(3),
            later_activities_from: Some(4),
            ..News::default()
        };
        assert_eq!(one.and(other), News { left_here_from: Some(9), ..other });
        assert_eq!(one.and(News::default()), one);
        assert_eq!(News::default().readies(), Readies::default());
    }
}
