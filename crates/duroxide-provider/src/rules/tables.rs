//! The tables that the rules work on: one trait for each.

mod activities;
mod dead_letters;
mod history;
mod instances;
mod mailboxes;
mod nodes;
mod readiness;
mod removals;
mod sessions;
mod state;
mod transactions;

pub use self::{
    activities::{ActivityItem, ActivityTable},
    dead_letters::DeadLetterTable,
    history::HistoryTable,
    instances::{InstanceChange, InstanceTable},
    mailboxes::{MailboxTable, NewMessage},
    nodes::NodeTable,
    readiness::{DueInstance, ReadyIndex},
    removals::{RemovalBudget, RemovalTable, RemovedRows},
    sessions::SessionTable,
    state::StateTable,
    transactions::Transactions,
};
use crate::store::StoreFailure;

/// The result of reading or writing rows.
pub type Rows<T> = Result<T, StoreFailure>;

/// Rows of one store, inside a transaction: they are read and written, and nothing is decided here.
///
/// Every read sees the earlier writes of the same transaction. Lists are ordered as documented, because answers depend
/// on their order. `now` is an argument wherever time matters. A set of tables may cache rows, as long as the answers
/// are the same.
pub trait Tables:
    Transactions
    + InstanceTable
    + ReadyIndex
    + HistoryTable
    + MailboxTable
    + ActivityTable
    + SessionTable
    + StateTable
    + DeadLetterTable
    + NodeTable
    + RemovalTable
{
}

impl<T> Tables for T where
    T: Transactions
        + InstanceTable
        + ReadyIndex
        + HistoryTable
        + MailboxTable
        + ActivityTable
        + SessionTable
        + StateTable
        + DeadLetterTable
        + NodeTable
        + RemovalTable
{
}
