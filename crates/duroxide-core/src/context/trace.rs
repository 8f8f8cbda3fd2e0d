//! Traces of orchestration code, silent during replay.

use super::OrchestrationContext;
use crate::engine::Identity;

const TARGET: &str = "duroxide::orchestration";

/// Severity of an orchestration trace.
#[derive(Debug, Clone)]
pub enum LogLevel {
    /// Information.
    Info,
    /// A warning.
    Warn,
    /// An error.
    Error,
}

/// Emits one trace; the macros of `tracing` need their level at compile time.
macro_rules! emit {
    ($level:ident, $ctx:expr, $message:expr) => {{
        let Identity { instance, execution_id, name, version, worker_id, .. } = &$ctx.shared.identity;
        tracing::$level!(
            target: TARGET,
            instance_id = %instance,
            execution_id,
            orchestration_name = %name,
            orchestration_version = %version,
            worker_id = worker_id.as_deref(),
            "{}",
            $message
        );
    }};
}

/// # Tracing
///
/// Traces are not emitted while the code is replayed, so that each is logged once.
impl OrchestrationContext {
    /// Whether the code is repeating an earlier turn.
    pub fn is_replaying(&self) -> bool {
        self.shared.lock().replaying
    }

    /// Whether traces are emitted now.
    pub fn is_logging_enabled(&self) -> bool {
        !self.is_replaying()
    }

    /// Traces at INFO, WARN, ERROR or DEBUG, in upper or lower case; any other level is traced at TRACE.
    pub fn trace(&self, level: impl Into<String>, message: impl Into<String>) {
        if self.is_replaying() {
            return;
        }
        let message = message.into();
        match level.into().to_ascii_uppercase().as_str() {
            "INFO" => emit!(info, self, message),
            "WARN" => emit!(warn, self, message),
            "ERROR" => emit!(error, self, message),
            "DEBUG" => emit!(debug, self, message),
            _ => emit!(trace, self, message),
        }
    }

    /// Traces at INFO.
    pub fn trace_info(&self, message: impl Into<String>) {
        self.trace("INFO", message);
    }

    /// Traces at WARN.
    pub fn trace_warn(&self, message: impl Into<String>) {
        self.trace("WARN", message);
    }

    /// Traces at ERROR.
    pub fn trace_error(&self, message: impl Into<String>) {
        self.trace("ERROR", message);
    }

    /// Traces at DEBUG.
    pub fn trace_debug(&self, message: impl Into<String>) {
        self.trace("DEBUG", message);
    }
}
