//! A request on its way in and out: its guard, what handlers know of it, and how it is answered.

pub(crate) mod changed;
pub(crate) mod csrf;
pub(crate) mod failure;
pub(crate) mod fields;
pub(crate) mod guard;
pub(crate) mod links;
pub(crate) mod response;
pub(crate) mod visit;
