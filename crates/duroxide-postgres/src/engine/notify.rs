//! What other processes are told of a commit: ready items that it leaves, and that clients may wait for its changes.

use std::time::{Duration, Instant};

use duroxide_provider::store::Done;

use super::{PostgresEngine, delayed_reads::CLAIMED_WITHIN};
use crate::{
    connection::{Query, parameters},
    session::News,
};

const NOTIFY: &str = "SELECT pg_notify($1, $2)";
/// How long new instances are left to the same process, before another one is named. Its claims are large then. With the
/// next process for each transaction they are small, and three processes need 1.8 times as many transactions as two.
const NEXT_CLAIMER_FOR: Duration = Duration::from_millis(200);

impl PostgresEngine {
    /// The content of the notification after this transaction. `None`: the transaction leaves no ready rows and has changed nothing
    /// that clients wait for.
    pub(super) fn news_of(&mut self, done: &Done) -> Option<News> {
        let mut news = self.tables().ready_rows_left();
        if done.activities.iter().flatten().any(|claimed| !claimed.items.is_empty()) {
            self.claimed_activities_at = Some(Instant::now());
        }
        if self.claimed_activities_at.is_some_and(|at| at.elapsed() < CLAIMED_WITHIN) {
            news.later_activities_from = news.activities_from.take();
        }
        (news != News::default() || done.is_watched).then_some(news)
    }

    /// 24.9: the statement that notifies other processes of `news` and of the content of failed notifications. `None` if no other
    /// process listens.
    pub(super) fn notification(&mut self, news: Option<News>) -> Option<Query> {
        let session = self.session.as_ref().filter(|session| session.has_peers())?;
        let news = news.into_iter().chain(self.unsent_news).reduce(News::and)?;
        let period = self.opened_at.elapsed().as_millis() / NEXT_CLAIMER_FOR.as_millis();
        let claimer = session.claimers().next_claimer(u64::try_from(period).unwrap_or_default());
        let payload = news.payload(session.id(), claimer);
        // Cleared when the notification was sent.
        self.unsent_news = Some(news);
        Some(Query::new(NOTIFY, parameters![self.options.schema.to_string(), payload]))
    }

    /// A notification that failed is repeated with the next one.
    pub(super) fn note_notified(&mut self, was_notified: bool) {
        if was_notified {
            self.unsent_news = None;
        }
    }
}
