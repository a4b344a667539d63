//! What keeps an operation from doing harm, whatever the repository says: who owns an object before its
//! first apply, what must not be pruned, what is never awaited, what is on hold, and what is told of it.

pub(crate) mod awaits;
pub(crate) mod blockers;
pub(crate) mod drift;
pub(crate) mod guard;
pub(crate) mod owners;
pub(crate) mod pause;
mod references;
pub(crate) mod rivals;
