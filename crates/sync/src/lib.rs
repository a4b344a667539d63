//! Planner and state machine of a sync: targets and live state in, actions and typed waits out. Pure: no
//! IO, no clock; level-triggered: every step looks at everything anew.
//!
//! Where Argo CD's rules trap people, ours differ unless [`SyncSettings::compat`] is set:
//! - waits have deadlines, and an automated operation that only waits gives way to a newer revision;
//! - failures are classified: what another object stands in the way of is held and repeated without
//!   burning attempts, and holds only the objects concerned;
//! - an operation that has failed does not wait for what else its wave applied;
//! - what is pruned keeps its wave when other prunes are done;
//! - custom resources wait until their definition is established;
//! - an object whose health depends on the operation itself is applied, not awaited;
//! - objects of other owners are left alone: of other Applications unless `FailOnSharedResource` is set;
//! - the dry run reaches admission, and only failures that can never pass count.

mod action;
mod auto;
mod classify;
mod compare;
mod finish;
mod generated;
mod input;
mod links;
mod order;
mod owned;
mod record;
mod state;
mod step;
mod task;
mod wait;
mod wave;

pub use action::{Action, ApplyMethod, Batch, Done, Failure, Outcome, TaskId, Verb, images};
pub use auto::{AutoSettings, AutoSync, Inputs, auto_sync, record_history};
pub use classify::{Blocker, ErrorClass, classify};
pub use compare::{CompareInput, Comparison, compare, target_key};
pub use finish::{next_retry, retry_delay};
pub use generated::generated_prefix;
pub use input::{Claim, KindCatalog, KindInfo, LiveObject, SyncInput, SyncSettings};
pub use order::kind_rank;
pub use owned::left_alone;
pub use record::record;
pub use state::{Ending, Extension, Held, SyncState, SyncStep};
pub use step::step;
pub use wait::{Wait, WaitKind};
