//! Recovery after a commit with unknown outcome: the store is reopened, and callers get errors until then.

use std::time::Duration;

use duroxide_core::Timestamp;
use duroxide_provider::store::{FailureClass, NextWake, Op, Readies, StoreFailure};

use super::{Machine, Step};
use crate::{StoreOptions, job::Job};

#[derive(Debug)]
pub(super) enum Health {
    Sound,
    /// The outcome of a commit is unknown, and the store is not open.
    Lost {
        failed_attempts: u32,
        retry_at: Timestamp,
        because: StoreFailure,
        /// Operations to carry out once the store works again.
        later: Vec<Op>,
    },
}

impl Machine {
    pub(super) fn next_step_while_lost(&self, retry_at: Timestamp, now: Timestamp) -> Step {
        let someone_waits = !self.backlog.is_empty()
            || !self.reads.is_empty()
            || !self.instances.is_empty()
            || !self.activities.is_empty();
        if self.closing {
            Step::Stop
        } else if retry_at <= now {
            Step::Reopen
        } else if someone_waits {
            Step::Refuse
        } else {
            Step::Sleep(Some(retry_at))
        }
    }

    /// Answers everyone with an error while the store is not open.
    pub(crate) fn refuse(&mut self) {
        let Health::Lost { because, .. } = &self.health else { return };
        let failure = StoreFailure::new(
            FailureClass::Retryable,
            format!("the store is being reopened after a failed commit: {because}"),
        );
        self.instances.fail_all(&failure);
        self.activities.fail_all(&failure);
        for job in self.backlog.take_all() {
            self.refuse_job(job, &failure);
        }
        for read in self.reads.drain(..) {
            read.refuse(failure.clone());
        }
    }

    /// Keeps operations without a waiting caller for later: a lost release would lock its item until its lease ends.
    fn refuse_job(&mut self, job: Job, failure: &StoreFailure) {
        match &mut self.health {
            Health::Lost { later, .. } if job.is_unattended() => later.push(job.into_op()),
            Health::Lost { .. } | Health::Sound => job.answer(Err(failure.clone().into())),
        }
    }

    /// The outcome of a commit is unknown. `releases` release its claims, in case it was committed.
    pub(crate) fn lost(&mut self, because: StoreFailure, releases: Vec<Op>, now: Timestamp) {
        let retry_at = now.saturating_add(self.options.reopen_backoff_min);
        self.health = Health::Lost { failed_attempts: 0, retry_at, because, later: releases };
    }

    /// The store could not be reopened. Returns how often that has happened in a row.
    pub(crate) fn reopen_failed(&mut self, now: Timestamp) -> u32 {
        let Health::Lost { failed_attempts, retry_at, .. } = &mut self.health else { return 0 };
        *failed_attempts = failed_attempts.saturating_add(1);
        let backoff = backoff(&self.options, *failed_attempts);
        *retry_at = now.saturating_add(backoff);
        *failed_attempts
    }

    /// The store works again. Releases the claims that the lost transaction may have made, because no caller got them. Returns
    /// how many attempts failed before.
    pub(crate) fn reopened(&mut self, now: Timestamp) -> u32 {
        let Health::Lost { failed_attempts, later, .. } = std::mem::replace(&mut self.health, Health::Sound)
        else {
            return 0;
        };
        for op in later {
            self.backlog.push(Job::unattended(op, now));
        }
        self.made_ready(Readies { instances: true, activities: true });
        self.wake = NextWake::Unknown;
        failed_attempts
    }
}

fn backoff(options: &StoreOptions, failed_attempts: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failed_attempts);
    options.reopen_backoff_min.saturating_mul(doubled).min(options.reopen_backoff_max)
}
