//! Tests of what the crate offers, in one binary.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod verdicts;
