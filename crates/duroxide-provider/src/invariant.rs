//! The named guarantees, checked over a snapshot of a store.
//!
//! Tests, simulators, chaos runs and operators use the same code: [`check`] takes the whole content of any store and
//! returns its violations. Each check is a function named after its invariant. Properties that one content cannot show
//! (fencing, atomicity, order, liveness) are not checked here.

mod attempts;
mod family;
mod history;
mod locks;
mod status;
mod view;
mod work;

use std::fmt;

use self::view::View;
use crate::store::StoreSnapshot;

/// A broken guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its name, such as `I05 OneCompletion`.
    pub invariant: &'static str,
    /// The instance it shows at.
    pub instance: String,
    /// The violation in words.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: instance {}: {}", self.invariant, self.instance, self.detail)
    }
}

/// Everything that is wrong with a store. Costs time linear in its size.
///
/// An execution with an event that cannot be decoded is checked up to that event only: a corrupt row stops its own
/// instance, and is not itself a violation.
pub fn check(snapshot: &StoreSnapshot) -> Vec<Violation> {
    let view = View::new(snapshot);
    let mut found = Violations::default();
    locks::lock_exclusive(snapshot, &mut found);
    for instance in view.instances() {
        history::well_formed(instance, &mut found);
        work::work_conserved(&view, instance, &mut found);
        work::terminal_holds_nothing(instance, &mut found);
        locks::lock_holds_messages(instance, &mut found);
        attempts::attempts_counted(instance, &mut found);
        family::one_current_execution(instance, &mut found);
        family::family_agrees(&view, instance, &mut found);
        status::status_agrees(instance, &mut found);
        status::custom_status_agrees(instance, &mut found);
        status::key_values_agree(instance, &mut found);
    }
    found.0
}

/// Collects violations.
#[derive(Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, invariant: &'static str, instance: &str, detail: impl Into<String>) {
        self.0.push(Violation { invariant, instance: instance.to_owned(), detail: detail.into() });
    }
}

#[cfg(test)]
mod tests;
