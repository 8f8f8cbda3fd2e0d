//! Ids: their forms, prefixes and first values.

/// The first execution of an instance.
pub const INITIAL_EXECUTION_ID: u64 = 1;
/// The first event of an execution.
pub const INITIAL_EVENT_ID: u64 = 1;
/// The prefix of the suffix of an automatic child id.
pub const SUB_ORCH_AUTO_PREFIX: &str = "sub::";
/// The prefix of the names of built-in activities.
pub const SYSCALL_ACTIVITY_PREFIX: &str = "__duroxide_syscall:";
/// The built-in activity behind `new_guid`.
pub const SYSCALL_NEW_GUID: &str = "__duroxide_syscall:new_guid";
/// The built-in activity behind `utc_now`.
pub const SYSCALL_UTC_NOW_MS: &str = "__duroxide_syscall:utc_now_ms";
/// The built-in activity behind `get_kv_value_from_instance`.
pub const SYSCALL_GET_KV_VALUE: &str = "__duroxide_syscall:get_kv_value";

/// Whether `instance` is the suffix of an automatic child id.
pub fn is_auto_generated_sub_orch_id(instance: &str) -> bool {
    instance.starts_with(SUB_ORCH_AUTO_PREFIX)
}

/// The full instance id of a child: an automatic suffix gets its parent in front, any other id is complete.
pub fn build_child_instance_id(parent: &str, child: &str) -> String {
    if is_auto_generated_sub_orch_id(child) { format!("{parent}::{child}") } else { child.to_owned() }
}

/// Whether `instance` could be taken for an automatic child id, so that no root may have it.
pub fn is_reserved_root_id(instance: &str) -> bool {
    is_auto_generated_sub_orch_id(instance) || instance.contains("::sub::")
}

/// The error text for a client that asks for a reserved id.
pub fn reserved_root_id_message(instance: &str) -> String {
    format!("instance id '{instance}' uses the reserved sub-orchestration marker 'sub::'")
}

/// The suffix of the automatic child scheduled by `event_id`. Later executions carry their number, because event
/// ids start over with each of them.
pub(crate) fn auto_child_suffix(execution_id: u64, event_id: u64) -> String {
    if execution_id == INITIAL_EXECUTION_ID {
        format!("{SUB_ORCH_AUTO_PREFIX}{event_id}")
    } else {
        format!("{SUB_ORCH_AUTO_PREFIX}{execution_id}_{event_id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_children_carry_parent_and_execution() {
        assert_eq!(build_child_instance_id("order", &auto_child_suffix(1, 5)), "order::sub::5");
        assert_eq!(build_child_instance_id("order", &auto_child_suffix(3, 5)), "order::sub::3_5");
        assert_eq!(build_child_instance_id("order", "payment"), "payment");
    }

    #[test]
    fn reserved_ids_are_recognised_anywhere() {
        assert!(is_reserved_root_id("sub::1"));
        assert!(is_reserved_root_id("order::sub::1"));
        assert!(!is_reserved_root_id("order-sub"));
    }
}
