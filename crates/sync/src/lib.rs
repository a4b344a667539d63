//! Planner and state machine of a sync: targets and live state in, actions and typed waits out. Pure:
//! no IO, no clock; level-triggered: every step looks at everything anew.
mod action;
mod input;
mod state;
mod wait;

pub use action::{Action, ApplyMethod, Batch, Done, Failure, Outcome, TaskId, Verb, images};
pub use input::{KindCatalog, KindInfo, LiveObject, SyncInput, SyncSettings};
pub use state::{Extension, Held, SyncState, SyncStep};
pub use wait::{Wait, WaitKind};

/// One step of an operation.
pub fn step(_input: &SyncInput<'_>, state: &SyncState) -> SyncStep {
    SyncStep { state: state.clone(), batch: Vec::new(), requeue_at: None }
}

/// Takes up what became of the actions of a step.
pub fn record(_state: &mut SyncState, _outcomes: &[Outcome], _now: tiphys_model::Timestamp) {}
