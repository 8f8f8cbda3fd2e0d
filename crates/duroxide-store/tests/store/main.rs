//! A served store, driven by hand in virtual time; where threads matter, over its real threads.

mod calls;
mod dead_letters;
mod failures;
mod hand_over;
mod lifecycle;
mod support;
