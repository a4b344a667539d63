//! Renders Applications in processes of their own.
//!
//! What renders are files of strangers: a chart that fills the memory or never ends must be that
//! Application's error, and nobody else's. So the process that talks to clusters and hosts keeps some
//! [`Workers`], each a process of the same program with limits that the kernel holds (memory, processor time,
//! no files, no network, no programs). A worker has nothing but a pipe: what it reads of repositories and
//! charts it asks for there, and [`Workers::render`] answers from the same
//! [`Sources`](tiphys_render::Sources) that would serve a rendering in the process itself.
//!
//! The other side of the pipe is [`serve`].

mod fault_transfer;
mod host_side;
mod limits;
mod pool;
mod protocol;
mod remote_trees;
mod worker_side;

pub use limits::Limits;
pub use pool::Workers;
pub use worker_side::serve;
