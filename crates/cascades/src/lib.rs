//! Generated cascades: a repository is brought up in an embedded cluster, a fault is put in, time passes, the
//! cluster is saved, and doctor has to name the fault.
//!
//! The doctor is held against faults that are known because we put them in. Misses are written into a folder.
#![allow(missing_docs, clippy::missing_panics_doc, reason = "a developer's tool")]

pub mod dump;
pub mod flux;
pub mod generate;
pub mod plant;
pub mod play;
pub mod random;
pub mod repository;
pub mod run;
pub mod score;
pub mod thin;
pub mod tree;
