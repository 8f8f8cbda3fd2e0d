//! Functions of the rules that statements repeat, because an index or a count needs them. `rules/readiness.rs` has the whole list.

/// [`is_end_of_instance`](duroxide_provider::rules::is_end_of_instance) of a status that may be NULL: then this is NULL, too.
macro_rules! is_end_of_instance {
    ($status:literal) => {
        concat!($status, " NOT IN ('Running', 'ContinuedAsNew')")
    };
}

/// [`QueuedMessage::is_visible`](duroxide_provider::rules::QueuedMessage::is_visible) at the time `$2`.
macro_rules! is_visible {
    () => {
        "message.due_at <= $2 AND message.hidden_until <= $2"
    };
}

/// [`QueuedMessage::waits_since`](duroxide_provider::rules::QueuedMessage::waits_since).
macro_rules! waits_since {
    () => {
        "greatest(message.enqueued_at, message.due_at)"
    };
}

/// Whether the extent of a lock holds a message: [`Extent::holds`](duroxide_provider::rules::Extent::holds). `$mark` is its mark, or
/// `$up_to` the highest number and `$at` the time.
macro_rules! holds {
    ($mark:literal, $up_to:literal, $at:literal) => {
        concat!(
            "CASE WHEN ",
            $mark,
            " IS NOT NULL THEN message.mark = ",
            $mark,
            " ELSE message.number <= ",
            $up_to,
            " AND message.due_at <= ",
            $at,
            " AND message.hidden_until <= ",
            $at,
            " END"
        )
    };
}

pub(crate) use {holds, is_end_of_instance, is_visible, waits_since};
