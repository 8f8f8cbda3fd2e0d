//! A request on its way in and out: its guard, its form for handlers, and its response.

pub(crate) mod changed;
pub(crate) mod csrf;
pub(crate) mod failure;
pub(crate) mod fields;
pub(crate) mod guard;
pub(crate) mod links;
pub(crate) mod response;
pub(crate) mod visit;
