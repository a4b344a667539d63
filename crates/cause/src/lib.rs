//! The vocabulary of causes, and readers of what other programs say about them: kubelet, scheduler, API
//! server, Argo CD, Flux, Helm, and the logs of containers. Pure: no IO, no clock.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod access;
mod address;
mod admission;
mod autoscaler;
mod delivery;
mod eviction;
mod image;
mod kubelet;
mod network;
mod pattern;
mod program;
mod proxy;
mod schedule;
mod vocabulary;

pub use access::{Forbidden, caches_unsynced, cannot_own, forbidden};
pub use address::{Address, addresses};
pub use admission::{Refusal, TakenRoute, refusal, taken_route};
pub use autoscaler::{ScaleFault, scale_fault};
pub use delivery::{
    ValuesAbsent, WaitsFor, delivery_fault, failed_hook, leftover_hook, source_unreachable, unwrapped,
    values_absent, waits_for,
};
pub use eviction::{EvictionRefusal, eviction_refusal};
pub use image::{PullFault, image_parts, pull_fault};
pub use kubelet::{
    Absent, MountFault, ProbeFault, absent, absent_file, absent_key, mount_fault, probe_fault, sandbox_fault,
    sandbox_plugin, start_fault,
};
pub use network::{FailedCall, Failure, failed_calls};
pub use program::{Complaint, RefusedValue, complaints, refused_values};
pub use proxy::{ProxyAnswer, proxy_answer};
pub use schedule::{Obstacle, Placement, placement};
pub use vocabulary::Cause;
