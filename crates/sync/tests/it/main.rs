//! Tests of what the crate offers, in one binary: a module for each subject.

mod argocd_cases;
mod decisions;
mod hooks_and_waves;
mod properties;
mod support;
