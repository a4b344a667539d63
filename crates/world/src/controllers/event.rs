//! Events are kept for a while after they were told last.

use std::time::Duration;

use tiphys_value::ObjectExt;

use crate::{
    Change, Controller, Key, Outcome, View, controller::Context, event::last_told, object::resources,
};

use super::workload::delete;

/// Forgets old Events.
pub(super) struct EventController;

impl Controller for EventController {
    fn name(&self) -> &'static str {
        "event-ttl"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        let is_new = change.resource == resources::events() && !change.is_deleted;
        is_new.then(|| Key::from_object(&change.object)).into_iter().collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(event) = context.view.get(&resources::events(), key) else { return Outcome::done() };
        // Whoever makes an Event may say that it happened long ago.
        let made = event.str_at(&["metadata", "creationTimestamp"]).and_then(|at| at.parse().ok());
        let Some(told) = last_told(&event).max(made) else { return Outcome::done() };
        let due = told.checked_add(context.settings.event_ttl).unwrap_or(told);
        match Duration::try_from(due.duration_since(context.now)) {
            Ok(left) if !left.is_zero() => Outcome::after(left),
            _ => delete(resources::events(), &event).into(),
        }
    }
}
