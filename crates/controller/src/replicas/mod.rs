//! Several engines on one cluster share its Applications: each has some, and no two have the same.
//!
//! The hash of an Application's name, or of its destination cluster, says in which of a fixed number of
//! *slots* it is ([`slots`]). Each engine is a *replica* with a Lease of its own, which it renews; the Lease
//! `tiphys-controller` says which replica has which slots ([`leases`]). A slot changes hands there alone, by
//! a write that is refused if another one came before it: from a replica that gives it back when nothing of
//! it is being worked on, or from one that has let its own Lease expire ([`replica`]). Whoever could not
//! renew its Lease stops to write before another one may take over ([`share`], [`tiphys_cluster::Fence`]).

mod engine;
mod leases;
mod ownership;
mod replica;
mod share;
mod slots;

pub(crate) use engine::{ask_owners, follow_share, is_theirs, turn_at, turn_of_set_at};
pub use leases::replica_of;
pub(crate) use ownership::{does_exclusive_work, is_ours, note_written, version_to_follow};
pub use replica::{JoinError, Lost, Replica, replica_name};
pub use share::Share;
