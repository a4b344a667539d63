//! Tests of what the crate offers, in one binary: a module for each subject.

mod bad_input;
mod common;
mod fixes;
mod incidents;
mod outputs;
mod pages;
mod quiet;
mod refused;
mod sarif;
mod set_aside;
mod told;
