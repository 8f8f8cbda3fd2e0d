//! A store driven by hand in virtual time; where threads matter, with its real threads.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests are tests")]

mod calls;
mod clocks;
mod dead_letters;
mod delegation;
mod failures;
mod hand_over;
mod held_back;
mod lifecycle;
mod logs;
mod nodes;
mod slow_commits;
mod support;
mod wake_ups;
