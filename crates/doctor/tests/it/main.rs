//! Tests of the diagnosis, in one binary.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod cases;
