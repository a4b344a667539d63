//! Tests of what the crate offers, in one binary: a module for each subject.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod origins;
mod render;
mod repeated_renders;
