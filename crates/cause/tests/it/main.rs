//! What kubelets, runtimes, schedulers, API servers and deliverers say, each line with what it means.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod wordings;
