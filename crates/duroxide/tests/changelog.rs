//! The changelog states what changes for users.

/// S0.47, S0.48: the change against immediate failure is stated, with its mitigations.
#[test]
fn the_changelog_states_how_unregistered_handlers_end_now() {
    let changelog = include_str!("../../../CHANGELOG.md");
    for text in [
        "no longer fail at once",
        "logs a WARN",
        "duroxide_unregistered_orchestration_backoff_total",
        "duroxide_unregistered_activity_backoff_total",
        "smaller `RuntimeOptions::max_attempts`",
    ] {
        assert!(changelog.contains(text), "the changelog does not say `{text}`");
    }
}
