//! Fetching over HTTP, against servers on loopback.

mod advisories;
mod bases;
mod charts;
mod dependencies;
mod registries;
mod support;
