//! The synchronous store engine behind our own providers.
//!
//! A [`StoreEngine`] is a transactional table store without threads, clock or waiting: `begin(now)`, some
//! [`Op`]s, some claims, `commit`. `duroxide-store` serves one as a [`Provider`](crate::Provider); a simulator
//! drives one in virtual time. Everything an engine needs from a message or an event is taken out of it when the
//! operation is *prepared*, on the caller's thread, so that the store thread encodes no JSON.
//!
//! # What every engine does
//!
//! [`memory`](crate::memory) is the specification in code. Where the rules of the specification leave a choice, all
//! engines make the same one, so that they can be compared operation by operation:
//!
//! * **Mailbox.** A message or an activity for an id that has no row makes one without a name. An instance is *known*
//!   if it has a name or history. A mailbox that holds nothing any more goes away.
//! * **Ready.** An instance is ready if no live lock holds it, a message is visible and, while it is not known, a
//!   start is visible. It gets the next number when it becomes ready and keeps it until it is claimed; claims take
//!   the lowest. What is still ready after a commit, an abandon or the end of a lease gets a new number, so it goes
//!   to the back. Rows that become due in one `promote` get their numbers in the order of (time due, row).
//! * **Batch.** Visible messages are selected in the order (due time, number), in which everything that is visible at
//!   once is due at 0. A queue message waits behind an older hidden one of its instance. A bounded claim looks at
//!   [`CLAIM_MESSAGES_MAX`](bounds::CLAIM_MESSAGES_MAX) rows or [`CLAIM_BYTES_MAX`](bounds::CLAIM_BYTES_MAX) bytes (at
//!   least one row), and beyond that adds the first visible start and the first visible `ContinueAsNew`. What was
//!   selected is delivered in the order in which it became visible: [`sort_for_delivery`]. An abandon changes neither
//!   order.
//! * **Undecodable rows** are counted, hidden and left out; they count towards the bounds of a claim. If nothing is
//!   left, or an unknown instance is left without its start, the instance is not locked and no other row of it is
//!   counted. A hidden row that cannot be decoded holds no queue message back.
//! * **Suspect.** A counted abandon makes an instance suspect, and so does a lease that ended, until a commit under it
//!   is served after all; a commit that leaves no attempted message makes it healthy again.
//! * **Leases.** A lease is live while `now < until`. Commit, ack and renewal check it at the time they were handed in;
//!   an abandon needs only the token. A lock whose lease ended keeps its token until the next claim. If the clock was
//!   set back, no lease lasts longer than its length from now; if it was set forward, leases move along with it.
//! * **Times.** A delayed message is due at `now + delay`, rounded up to milliseconds. Hidden rows and leases keep
//!   microseconds.
//! * **Execution end.** A status other than `Running` ends an execution: its key-value changes are merged, its
//!   completion time is stored. Changes left by an execution that was never ended are merged when a later one begins.
//! * **Orphans.** Each message of an unknown instance without a queued start becomes a dead letter `orphan_message_ttl`
//!   after it was enqueued or due, whichever is later; the messages of a mailbox of only
//!   queue messages become dead letters at the next claim, oldest first.
//! * **Route.** The handler filter looks at the instance's name and version; before the instance is known, or when its
//!   execution continued as new and a `ContinueAsNew` is queued, at what that start asks for.
//! * **Nodes** are numbered from 1 and never reuse a number; one that joins again under its name keeps it. A claim notes
//!   the node of its order, or none. A node that ends leaves its live leases ended as of now, in the order of their
//!   rows: suspect, and ready if they have something to do. If one of its claims is to blame, that one keeps its lease and
//!   the others are abandoned, their attempt taken back.
//! * **Losses.** A claim that finds the lock of an earlier one counts it as lost; an abandon leaves the counts as they are,
//!   and the commit that makes an instance healthy sets them to zero.
//! * **Dead letters** are numbered from 1 and never reuse a number. A retried one is read again from its payload; if
//!   that cannot be decoded it keeps its kind.
//! * **Deleting** counts messages and activities as queue rows. Unknown ids in a list are passed over. An instance that
//!   waits for its successor counts as running. Bulk calls visit instances in the order of their rows. An operation that
//!   deletes or prunes may leave rows to remove, but nothing that any read, claim or commit finds.

pub mod bounds;
mod delivery;
mod engine;
mod failure;
mod node;
mod op;
mod order;
mod pending;
mod reader;
mod round;
mod row;
mod snapshot;
mod state_change;
mod token;

pub use delivery::{Arrival, sort_for_delivery};
pub use engine::{Claimed, DeadLetterNote, DeadLetterReason, StoreEngine, TellOfWrite};
pub use failure::{ApplyError, FailureClass, Refusal, StoreFailure};
pub use node::{NodeRow, StoredNode};
pub use op::{Answer, Ended, Op, Readies, RemovalTask, StoredStart, Unfinished};
pub use order::{ActivityOrder, HeldBack, HeldBackBy, InstanceOrder};
pub use pending::pending_info;
pub use reader::{
    InstanceNeeds, ReadyActivity, ReadyInstance, RunningVersion, SelectedInstance, StoreReader,
    StoredDescriptor, StoredExecution, StoredStatus,
};
pub use round::{PreparedExecution, PreparedRound, PreparedStop};
pub use row::{
    ActivityRow, CANCELLATION, EventRow, MessageKind, MessageRow, StartTarget, Visibility, calling_parent,
    timer_key,
};
pub use snapshot::{
    ActivitySnapshot, ExecutionSnapshot, InstanceSnapshot, LockSnapshot, MessageSnapshot, StoreSnapshot,
};
pub use state_change::StateChange;
pub use token::{lock_token, token_row};
