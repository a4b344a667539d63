//! The vocabulary of causes: the mechanisms that break something in a cluster, with stable ids. Pure: no IO, no clock.

mod vocabulary;

pub use vocabulary::Cause;
