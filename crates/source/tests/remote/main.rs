//! Fetching over HTTP, against servers on loopback.

mod bases;
mod charts;
mod dependencies;
mod registries;
mod support;
