//! Bounds and fixed times that every store engine keeps.

use std::time::Duration;

/// Messages one batch claim takes from a mailbox at most. The plain fetch takes all.
pub const CLAIM_MESSAGES_MAX: usize = 1_000;
/// Bytes of messages one batch claim takes from a mailbox at most; one message is always taken.
pub const CLAIM_BYTES_MAX: usize = 16 << 20;
/// So many filters are remembered at most for which no item is ready. Fetches of one runtime all have the same.
pub const EXHAUSTED_FILTERS_MAX: usize = 8;
/// How long a fetch hides a row that it could not decode.
pub const UNDECODABLE_HIDDEN_FOR: Duration = Duration::from_secs(1);
/// How often an undecodable row is fetched before it becomes a dead letter, unless
/// [`Op::SetMaxAttempts`](super::Op::SetMaxAttempts) sets another number.
pub const MAX_ATTEMPTS_DEFAULT: u32 = 10;
/// How many instances a bulk delete or prune visits, unless its filter sets another number.
pub const BULK_LIMIT_DEFAULT: u32 = 1_000;
/// Rows that one step of a delete or a prune removes at most, so that other work gets in between.
pub const REMOVED_ROWS_MAX: usize = 300;
/// Bytes of such rows, at most; one row is always removed.
pub const REMOVED_BYTES_MAX: usize = 4 << 20;
/// How long a message waits for an instance that was never started.
pub const ORPHAN_MESSAGE_TTL_DEFAULT: Duration = Duration::from_secs(60);
/// How long a node's row is kept after its last renewal. Longer than any lease, so that a suspended process can
/// continue as the same node.
pub const NODE_FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
