//! Planner and state machine of a sync: targets and live state in, actions and typed waits out. Pure: no
//! IO, no clock; level-triggered: every step looks at everything anew.
//!
//! Where Argo CD's rules trap people, ours differ unless [`SyncSettings::compat`] is set:
//! - waits have deadlines, and an automated operation that only waits yields to a newer revision;
//! - failures are classified: what another object stands in the way of is held and repeated without
//!   burning attempts, and holds only the objects concerned;
//! - an operation that has failed does not wait for what else its wave applied;
//! - what is pruned keeps its wave when other prunes are done;
//! - custom resources wait until their definition is established;
//! - an object whose health depends on the operation itself is applied, not awaited;
//! - objects of other owners are left alone: of other Applications unless `FailOnSharedResource` is set;
//! - the dry run reaches admission, and only failures that can never pass count.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod action;
mod automated_sync;
mod compare;
mod external_urls;
mod failure_class;
mod foreign_owners;
mod generated_names;
mod input;
mod operation_end;
mod order;
mod result_recording;
mod retry;
mod state;
mod step;
mod task;
mod wait;
mod wave;

pub use action::{Action, ApplyMethod, Batch, Done, Failure, Outcome, TaskId, Verb, images};
pub use automated_sync::{AutoSettings, AutoSync, Inputs, auto_sync, record_history};
pub use compare::{CompareInput, Comparison, compare, target_key};
pub use failure_class::{Blocker, ErrorClass, classify};
pub use foreign_owners::left_alone;
pub use generated_names::generated_prefix;
pub use input::{Claim, KindCatalog, KindInfo, LiveObject, SyncInput, SyncSettings};
pub use order::kind_rank;
pub use result_recording::record;
pub use retry::{next_retry, retry_delay};
pub use state::{Ending, Extension, Held, SyncState, SyncStep};
pub use step::step;
pub use wait::{Wait, WaitKind};
