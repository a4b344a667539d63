//! What Tiphys would do otherwise than the Argo CD of an installation.

pub mod differences;
pub mod installation;
pub mod plan;
mod report;
mod rules;
mod settings;
