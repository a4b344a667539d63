//! What keeps an operation from doing harm, whatever the repository says: who owns an object before its
//! first apply, what must not be pruned, what is never awaited, what is on hold, and what is told of it.

pub(crate) mod blockers;
pub(crate) mod competing_engines;
mod needed_objects;
pub(crate) mod object_owners;
pub(crate) mod pause;
pub(crate) mod prune_guard;
pub(crate) mod reverted_changes;
pub(crate) mod wait_cycles;
