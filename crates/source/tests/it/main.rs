//! Tests of what the crate offers, in one binary: a module for each subject.

mod git;
mod git_http;
mod git_ssh;
mod remote;
mod tls;
