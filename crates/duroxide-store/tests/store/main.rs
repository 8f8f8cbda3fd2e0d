//! A served store, driven by hand in virtual time; where threads matter, over its real threads.

mod calls;
mod failures;
mod hand_over;
mod support;
