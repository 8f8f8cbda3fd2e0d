//! Operations of operators: deleting, pruning, dead letters.

mod dead_letters;
mod deletion;
mod prune;
mod removal;
