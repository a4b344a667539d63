//! Behaviour that must equal Go's standard library and its common companions: what charts and Argo CD settings are
//! written against. Everything here is a function of its input.

pub mod escape;
pub mod fmt;
pub mod json;
pub mod rawstr;
pub mod strconv;
pub mod unicode;
