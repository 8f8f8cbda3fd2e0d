//! The custom status of the instance.

use super::OrchestrationContext;
use crate::{Action, SystemStats};

/// # Custom status
impl OrchestrationContext {
    /// Sets a text that clients see together with the status.
    #[track_caller]
    pub fn set_custom_status(&self, status: impl Into<String>) {
        self.update_custom_status(Some(status.into()));
    }

    /// Removes the custom status.
    #[track_caller]
    pub fn reset_custom_status(&self) {
        self.update_custom_status(None);
    }

    /// The custom status as this code last set it, also in an earlier execution.
    pub fn get_custom_status(&self) -> Option<String> {
        self.shared.lock().custom_status.clone()
    }

    /// Always `None`; clients ask `Client::get_orchestration_stats`.
    pub fn get_system_stats(&self) -> Option<SystemStats> {
        None
    }

    #[track_caller]
    fn update_custom_status(&self, status: Option<String>) {
        let Some(mut state) = self.shared.lock_in_turn() else { return };
        state.custom_status.clone_from(&status);
        state.emit(Action::UpdateCustomStatus { status });
    }
}
