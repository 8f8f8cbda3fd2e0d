//! [`FsError`]: why a folder cannot be used as a store.

use std::{io, path::Path};

use duroxide_provider::{
    ProviderError,
    store::{FailureClass, StoreFailure},
};

/// A folder that could not be opened as a store, or a file in it that could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FsError {
    /// Another process, or another provider of this one, uses the store.
    #[error("the store in {folder} is in use")]
    InUse {
        /// The folder of the store.
        folder: String,
    },
    /// The folder is not empty and is not a store.
    #[error("{folder} is not empty and holds no store")]
    NotAStore {
        /// The folder that was to be opened.
        folder: String,
    },
    /// The store was written by a newer version of this crate.
    #[error("the store in {folder} has format {found}; this version reads format {known}")]
    UnknownFormat {
        /// The folder of the store.
        folder: String,
        /// The format that the store has.
        found: u64,
        /// The format that this version reads and writes.
        known: u64,
    },
    /// A file of the store cannot be decoded. Nothing was changed.
    #[error("{file} is damaged: {message}")]
    Damaged {
        /// The path of the damaged file.
        file: String,
        /// The defect of the file.
        message: String,
    },
    /// The operating system refused an operation on a file.
    #[error("{file}: {message}")]
    Io {
        /// The path of the file or folder.
        file: String,
        /// The error of the operating system.
        message: String,
    },
    /// The store could not be served.
    #[error("{message}")]
    Store {
        /// The error of the thread that serves the store.
        message: String,
    },
}

impl FsError {
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io { file: path.display().to_string(), message: error.to_string() }
    }

    pub(crate) fn damaged(path: &Path, message: impl ToString) -> Self {
        Self::Damaged { file: path.display().to_string(), message: message.to_string() }
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::InUse { .. } | Self::Io { .. })
    }
}

impl From<FsError> for StoreFailure {
    fn from(error: FsError) -> Self {
        let class = if error.is_retryable() { FailureClass::Retryable } else { FailureClass::Permanent };
        Self::new(class, error.to_string())
    }
}

impl From<ProviderError> for FsError {
    fn from(error: ProviderError) -> Self {
        Self::Store { message: error.to_string() }
    }
}

impl From<FsError> for ProviderError {
    fn from(error: FsError) -> Self {
        Self { operation: "open".to_owned(), retryable: error.is_retryable(), message: error.to_string() }
    }
}
