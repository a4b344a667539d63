//! Tests of what the crate offers, in one binary: a module for each subject.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod admission;
mod api;
mod client_go;
mod durability;
mod hostile_requests;
mod invalid;
mod logs;
mod scale;
