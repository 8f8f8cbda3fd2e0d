//! The storage contract, and the stores that come with duroxide.
//!
//! A store of your own implements [`Provider`], and [`ProviderAdmin`] if it can be managed.

pub use duroxide_core::{Clock, Timestamp};
pub use duroxide_provider::{
    ActivityStop, ClaimToken, DeadLetter, DeadLetterQueue, DeleteInstanceResult, Demand, DequeuedItem,
    DispatcherCapabilityFilter, ExecutionInfo, ExecutionMetadata, HandlerCapability, InstanceCount,
    InstanceFilter, InstanceInfo, InstanceNeeds, InstancePage, InstanceQuery, InstanceSummary, InstanceTree,
    InstanceWatch, JoinedNode, KvEntry, LaneSummary, LoadedExecution, Losses, MissingCapability,
    NextExecution, NodeAnnouncement, NodeCapability, NodeId, NodeMembership, OpenRound, OrchestrationClaim,
    OrchestrationFetch, OrchestrationItem, Provider, ProviderAdmin, ProviderError, PruneOptions, PruneResult,
    QueueDepths, QueueSummary, QueuedActivityInfo, QueuedMessageInfo, QueuedWork, RawEvent, RenewedWorkItem,
    Round, RouteSummary, ScheduledActivityIdentifier, ScheduledTimerIdentifier, SemverRange,
    SessionFetchConfig, SessionLease, StartOutcome, StatusSnapshot, StorePosition, StrandedWork,
    SummaryRequest, SystemMetrics, TagFilter, TellOfDemand, VersionTriple, Wanted, WorkClaim, WorkFetch,
    WorkItem, WorkLock, current_build_version, management, run_round, short_node_name,
};

/// The error of a failed provider call.
pub mod error {
    pub use duroxide_provider::ProviderError;
}

pub use duroxide_runtime::instrumented;

/// The embedded store: SQLite, compiled in.
#[cfg(feature = "sqlite")]
pub mod sqlite {
    pub use duroxide_sqlite::{
        Intake, IntakeError, InvalidIntake, SqliteError, SqliteOptions, SqliteProvider, SqliteSynchronous,
    };
}

/// A store for many nodes: one schema of a PostgreSQL database.
#[cfg(feature = "postgres")]
pub mod postgres {
    pub use duroxide_postgres::{
        CopyError, CopyProgress, Intake, IntakeError, InvalidIntake, InvalidSchemaName, OpenError,
        PasswordSource, PostgresHealth, PostgresOptions, PostgresProvider, SchemaName, TableHealth, Tls,
    };
}

/// Copies all instances of a SQLite file, running ones included, into a new schema of a PostgreSQL database; returns how many
/// there are.
///
/// It refuses while nodes run on the file, and the schema must not exist. See
/// [`PostgresProvider::copy_from`](postgres::PostgresProvider::copy_from) for its guarantees.
///
/// # Errors
/// See [`CopyError`](postgres::CopyError).
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub async fn copy_sqlite_to_postgres(
    url: &str,
    options: postgres::PostgresOptions,
    progress: impl FnMut(postgres::CopyProgress) + Send + 'static,
) -> Result<u64, postgres::CopyError> {
    let url = url.to_owned();
    let open = move || duroxide_sqlite::SqliteExport::open(&url);
    postgres::PostgresProvider::copy_from(open, options, progress).await
}

/// A store of plain files, for looking at, teaching and tests: one folder per instance, one process at a time.
#[cfg(feature = "fs")]
pub mod fs {
    pub use duroxide_fs::{FsError, FsOptions, FsProvider};
}
