//! Tests of what the crate offers, in one binary: a module for each subject.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod cyclic_apps;
mod environments;
mod incremental_survey;
mod secrets;
mod stalls;
mod tools;
