//! Operations that wait for a transaction.

use std::collections::VecDeque;

use crate::{
    StoreOptions,
    job::{Job, JobClass},
};

/// A step of management waits for at most this many transactions of other operations, so that a delete makes progress in a
/// busy store.
const MANAGEMENT_WAIT_MAX: usize = 16;

/// Operations that wait, in four classes, each in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    renewals: VecDeque<Job>,
    commits: VecDeque<Job>,
    enqueues: VecDeque<Job>,
    enqueue_bytes: usize,
    management: VecDeque<Job>,
    /// Transactions since a step of management has been waiting.
    waiting_transactions: usize,
}

/// The operations and bytes that a transaction still has room for.
#[derive(Debug, Clone, Copy)]
struct Budget {
    ops: usize,
    bytes: usize,
}

impl Backlog {
    pub(crate) fn push(&mut self, job: Job) {
        match job.class() {
            JobClass::Renewal => self.renewals.push_back(job),
            JobClass::Commit => self.commits.push_back(job),
            JobClass::Enqueue => {
                self.enqueue_bytes += job.bytes();
                self.enqueues.push_back(job);
            }
            JobClass::Management => self.management.push_back(job),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len_without_management() + self.management.len()
    }

    fn len_without_management(&self) -> usize {
        self.renewals.len() + self.commits.len() + self.enqueues.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next transaction's operations: renewals, then commits, then enqueues. A quarter of the transaction is
    /// reserved for waiting enqueues, so that clients get through however busy the workers are. An operation above
    /// the byte bound goes alone. So does a step of management, when nothing else waits: its rows make a transaction
    /// of their own.
    pub(crate) fn take_batch(&mut self, options: &StoreOptions) -> Vec<Job> {
        if self.is_management_due() {
            self.waiting_transactions = 0;
            return self.management.pop_front().into_iter().collect();
        }
        self.waiting_transactions += usize::from(!self.management.is_empty());
        let kept = Budget {
            ops: self.enqueues.len().min(options.batch_ops_max / 4),
            bytes: self.enqueue_bytes.min(options.batch_bytes_max / 4),
        };
        let mut budget = Budget {
            ops: options.batch_ops_max.saturating_sub(kept.ops),
            bytes: options.batch_bytes_max.saturating_sub(kept.bytes),
        };
        let mut batch = Vec::with_capacity(self.len_without_management().min(options.batch_ops_max));
        budget.fill(&mut batch, &mut self.renewals);
        budget.fill(&mut batch, &mut self.commits);
        budget.ops += kept.ops;
        budget.bytes += kept.bytes;
        let before = batch.len();
        budget.fill(&mut batch, &mut self.enqueues);
        self.enqueue_bytes -= batch.iter().skip(before).map(Job::bytes).sum::<usize>();
        batch
    }

    fn is_management_due(&self) -> bool {
        !self.management.is_empty()
            && (self.len_without_management() == 0 || self.waiting_transactions >= MANAGEMENT_WAIT_MAX)
    }

    /// Takes all operations.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Job> + use<> {
        let Self { renewals, commits, enqueues, management, .. } = std::mem::take(self);
        renewals.into_iter().chain(commits).chain(enqueues).chain(management)
    }
}

impl Budget {
    fn fill(&mut self, batch: &mut Vec<Job>, waiting: &mut VecDeque<Job>) {
        while let Some(job) = waiting.front() {
            let bytes = job.bytes();
            let fits = self.ops > 0 && bytes <= self.bytes;
            if !fits && !batch.is_empty() {
                return;
            }
            self.ops = self.ops.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(bytes);
            batch.extend(waiting.pop_front());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use duroxide_core::{Timestamp, WorkItem};
    use duroxide_provider::store::{MessageRow, Op, RemovalTask};

    use super::*;

    fn job(op: Op) -> Job {
        Job::unattended(op, Timestamp::ZERO)
    }

    fn renewal(token: &str) -> Job {
        job(Op::RenewInstance { token: token.to_owned(), extend_for: Duration::from_secs(1) })
    }

    fn commit(token: &str) -> Job {
        job(Op::AckActivity { token: token.to_owned(), completion: None })
    }

    fn enqueue(instance: &str, bytes: usize) -> Job {
        let item = WorkItem::ExternalRaised {
            instance: instance.to_owned(),
            name: "e".to_owned(),
            data: String::new(),
        };
        let mut row = MessageRow::new(item, None).unwrap();
        row.data = "x".repeat(bytes);
        job(Op::EnqueueMessage(row))
    }

    fn names(batch: &[Job]) -> Vec<&str> {
        batch
            .iter()
            .map(|job| match job.op() {
                Op::RenewInstance { token, .. } | Op::AckActivity { token, .. } => token.as_str(),
                Op::EnqueueMessage(row) => row.instance.as_str(),
                other => panic!("unexpected {other:?}"),
            })
            .collect()
    }

    fn options(ops: usize, bytes: usize) -> StoreOptions {
        StoreOptions { batch_ops_max: ops, batch_bytes_max: bytes, ..StoreOptions::default() }
    }

    #[test]
    fn renewals_go_first_then_commits_then_enqueues_each_in_order_of_arrival() {
        let mut backlog = Backlog::default();
        for job in
            [enqueue("e1", 1), commit("c1"), enqueue("e2", 1), renewal("r1"), commit("c2"), renewal("r2")]
        {
            backlog.push(job);
        }
        let batch = backlog.take_batch(&options(512, 1_000));
        assert_eq!(names(&batch), ["r1", "r2", "c1", "c2", "e1", "e2"]);
        assert!(backlog.is_empty());
    }

    #[test]
    fn a_quarter_of_a_full_batch_belongs_to_clients() {
        let mut backlog = Backlog::default();
        for n in 0..20 {
            backlog.push(commit(&format!("c{n}")));
            backlog.push(enqueue(&format!("e{n}"), 1));
        }
        let batch = backlog.take_batch(&options(8, 1_000));
        assert_eq!(names(&batch), ["c0", "c1", "c2", "c3", "c4", "c5", "e0", "e1"]);
    }

    /// In bytes: 250 of 1,000 are reserved for enqueues, however many other operations wait.
    #[test]
    fn a_quarter_of_the_bytes_of_a_batch_belongs_to_clients() {
        let completed = |token: &str| {
            let Op::EnqueueMessage(row) = enqueue("any", 100).into_op() else { unreachable!() };
            job(Op::AckActivity { token: token.to_owned(), completion: Some(row) })
        };
        let mut backlog = Backlog::default();
        for n in 0..20 {
            backlog.push(completed(&format!("c{n}")));
            backlog.push(enqueue(&format!("e{n}"), 100));
        }
        let batch = backlog.take_batch(&options(512, 1_000));
        assert_eq!(names(&batch), ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "e0", "e1", "e2"]);
        assert_eq!(backlog.enqueue_bytes, 1_700);
    }

    #[test]
    fn room_that_clients_do_not_need_is_used_by_others() {
        let mut backlog = Backlog::default();
        for n in 0..20 {
            backlog.push(commit(&format!("c{n}")));
        }
        assert_eq!(backlog.take_batch(&options(8, 1_000)).len(), 8);
        backlog.push(enqueue("e0", 1));
        assert_eq!(names(&backlog.take_batch(&options(4, 1_000))), ["c8", "c9", "c10", "e0"]);
    }

    /// Their rows take time, so a step of management never makes a commit longer; but it is not put off for ever.
    #[test]
    fn management_goes_alone_and_yields_to_everything_else_for_some_time() {
        let mut backlog = Backlog::default();
        for task in [1, 2] {
            backlog.push(job(Op::RemoveRows { task: RemovalTask(task) }));
        }
        let options = options(512, 1_000);
        let is_management = |batch: &[Job]| match batch {
            [job] => job.class() == JobClass::Management,
            _ => false,
        };
        for n in 0..MANAGEMENT_WAIT_MAX {
            backlog.push(commit(&format!("c{n}")));
            backlog.push(enqueue("e", 1));
            assert_eq!(names(&backlog.take_batch(&options)), [format!("c{n}").as_str(), "e"]);
        }
        backlog.push(commit("waits"));
        assert!(is_management(&backlog.take_batch(&options)));
        assert_eq!(names(&backlog.take_batch(&options)), ["waits"]);
        assert!(is_management(&backlog.take_batch(&options)));
        assert!(backlog.is_empty());
    }

    #[test]
    fn an_operation_above_the_byte_bound_goes_alone() {
        let mut backlog = Backlog::default();
        for job in [enqueue("small", 10), enqueue("large", 5_000), enqueue("next", 10)] {
            backlog.push(job);
        }
        let options = options(512, 1_000);
        assert_eq!(names(&backlog.take_batch(&options)), ["small"]);
        assert_eq!(names(&backlog.take_batch(&options)), ["large"]);
        assert_eq!(names(&backlog.take_batch(&options)), ["next"]);
        assert_eq!(backlog.enqueue_bytes, 0);
    }
}
