//! Validations of a provider, one function per rule.
//!
//! Every validation makes its own provider through a [`ProviderFactory`] and panics when a rule is broken, with a
//! message that says what was expected. The functions of the basic topics are here, those of the others in a module
//! per topic. [`VALIDATIONS`] lists them all; [`run_all`] and [`run_topic`] run them;
//! [`conformance_tests!`](crate::conformance_tests) makes tests of them.

pub use crate::factory::ProviderFactory;
pub use crate::suite::exports::*;
pub use crate::suite::{VALIDATIONS, Validation, check, run_all, run_topic};
