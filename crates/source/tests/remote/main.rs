//! Fetching over HTTP, against servers on loopback.

mod charts;
mod registries;
mod support;
