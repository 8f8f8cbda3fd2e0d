//! [`Finding`]: something that a check objects to.

use std::fmt;

/// The rules of the checks, with their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A source file that ARCHITECTURE.md does not name, or a name in it without a file.
    Map,
    /// A file that does not begin with `//!`.
    ModuleDoc,
    /// A file with more lines than [`Self::limit`].
    ProductFileLength,
    /// The same for tests and tools.
    OtherFileLength,
    /// A function with too many lines.
    FunctionLength,
    /// A folder with too many source files directly in it.
    FolderSize,
    /// A crate that does not ask clippy about wildcard arms.
    Wildcard,
}

impl Rule {
    /// The largest number that is no finding.
    pub(crate) fn limit(self) -> usize {
        match self {
            Self::Map | Self::ModuleDoc | Self::Wildcard => 0,
            Self::ProductFileLength => 400,
            Self::OtherFileLength => 500,
            Self::FunctionLength => 70,
            Self::FolderSize => 15,
        }
    }
}

/// One objection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) rule: Rule,
    /// A file, a folder, or `file::function`.
    pub(crate) place: String,
    /// How many; 1 for rules that do not count.
    pub(crate) measure: usize,
    detail: String,
}

impl Finding {
    /// An objection of a rule that does not count.
    pub(crate) fn new(rule: Rule, place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { rule, place: place.into(), measure: 1, detail: detail.into() }
    }

    /// An objection if `measure` is above the rule's limit. `what` is counted.
    pub(crate) fn above_limit(
        rule: Rule,
        place: impl Into<String>,
        measure: usize,
        what: &str,
    ) -> Option<Self> {
        let limit = rule.limit();
        let detail = format!("has {measure} {what}, more than {limit}");
        (measure > limit).then(|| Self { rule, place: place.into(), measure, detail })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.place, self.detail)
    }
}
