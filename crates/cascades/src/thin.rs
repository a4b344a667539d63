//! Dumps with parts left out at random: kinds, events, logs.

use std::collections::BTreeSet;

use tiphys_doctor::Case;
use tiphys_value::ObjectExt as _;

use crate::random::Random;

/// A dump without a third of its kinds, its events or its logs.
#[must_use]
pub fn thinned(case: &Case, random: &mut Random) -> Case {
    let mut thin = case.clone();
    let kinds: BTreeSet<String> = case.objects.iter().map(|object| object.kind().to_owned()).collect();
    let dropped: BTreeSet<String> = kinds.into_iter().filter(|_| random.chance(33)).collect();
    thin.objects.retain(|object| !dropped.contains(object.kind()));
    thin.listed.retain(|kind| !dropped.contains(kind));
    if random.chance(40) {
        thin.events.clear();
    }
    if random.chance(40) {
        thin.logs.clear();
    }
    thin
}
