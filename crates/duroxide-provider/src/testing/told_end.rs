//! Compares the end that an engine reports with its stored rows.

use crate::store::{Answer, Op, StoreEngine};

/// The end in an answer must equal the answer of a read of the status.
pub(super) fn check_told_end(engine: &mut dyn StoreEngine, op: &Op, answer: &Answer) {
    if let (Op::CommitRound(round), Answer::RoundCommitted { instance, ended: Some(ended) }) = (op, answer) {
        let told = round.status_after(ended);
        assert!(told.terminal_event.is_some(), "the end of {instance} is told without its last event");
        let read = engine.status(instance).unwrap();
        assert_eq!(read, Some(told), "the end of {instance}, read and told");
    }
}
