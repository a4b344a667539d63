//! Causes that no symptom shows.

use std::collections::BTreeSet;

use tiphys_cause::Cause as Id;
use tiphys_stage::{causes::Cause, mechanism::Mechanism, story::Story};
use tiphys_value::ResourceKey;

/// A cause that no symptom shows, of an object from Git.
pub(super) fn hidden_cause(object: ResourceKey, mechanism: Mechanism, text: String, state: &str) -> Cause {
    let sources = BTreeSet::from([object.clone()]);
    Cause { sources, ..Cause::of_object(object, Some(mechanism), text, state) }
}

/// Whether a story tells of an object with one of these causes already.
pub(super) fn is_told(story: &Story, ids: &[Id], object: &ResourceKey) -> bool {
    let mechanisms = story.causes.iter().filter_map(|cause| cause.mechanism.as_ref());
    mechanisms.into_iter().any(|it| ids.contains(&it.id) && it.objects.contains(object))
}
