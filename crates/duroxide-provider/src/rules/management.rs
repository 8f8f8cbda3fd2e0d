//! What operators ask for: deleting, pruning, dead letters.

mod dead_letters;
mod deletion;
mod prune;
mod removal;
