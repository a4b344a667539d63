//! Tests of what the crate offers, in one binary: a module for each subject.

mod budget;
mod properties;
mod reading;
mod writing;
