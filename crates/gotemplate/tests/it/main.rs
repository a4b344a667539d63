//! Tests of what the crate offers, in one binary: a module for each subject.

mod crypto;
mod exec;
mod golden;
mod robust;
mod trace;
