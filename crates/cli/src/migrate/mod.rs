//! What Tiphys would do otherwise than the Argo CD of an installation.

pub(crate) mod differences;
pub(crate) mod installation;
pub(crate) mod plan;
mod report;
mod rules;
mod settings;
