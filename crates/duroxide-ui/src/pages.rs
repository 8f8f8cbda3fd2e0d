//! The pages: for each a handler, a view and a template.
//!
//! A handler reads from the store, a pure function makes a view of the result, and a template renders the view.

pub(crate) mod actions;
pub(crate) mod assets;
pub(crate) mod bulk;
pub(crate) mod dead_letters;
pub(crate) mod event;
pub(crate) mod export;
pub(crate) mod failures;
pub(crate) mod instance;
pub(crate) mod instances;
pub(crate) mod login;
pub(crate) mod nodes;
pub(crate) mod overview;
