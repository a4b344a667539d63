//! Behaviour that must equal Go's standard library and its common companions: what charts and Argo CD
//! settings are written against. Everything here is a function of its input.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod base64;
pub mod cron;
pub mod csv;
pub mod decimal;
pub mod escape;
pub mod fmt;
pub mod glob;
pub mod json;
pub mod path;
pub mod rawstr;
pub mod regex;
pub mod semver;
pub mod strconv;
pub mod text;
pub mod time;
pub mod unicode;
pub mod url;
