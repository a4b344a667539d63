//! Tests of what the crate offers, in one binary: a module for each subject.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod causes;
mod conformance;
mod controllers;
mod found;
mod operators;
mod ownership;
mod scenarios;
mod scheduling;
mod servers;
mod support;
