//! The order in which tasks run: phase, wave, kind, name; Namespaces and CustomResourceDefinitions
//! before what needs them; prunes in mirrored waves (Argo CD docs, "Sync Phases and Waves").

use std::collections::{BTreeMap, BTreeSet};

use tiphys_value::{INSTALL_ORDER, ObjectExt};

use crate::task::Task;

/// Kinds in the order in which they are applied; all others come after. Argo CD took Helm's order when that
/// had neither classes of priority nor webhooks.
fn kinds() -> &'static [&'static str] {
    &INSTALL_ORDER[1..36]
}

/// The place of a kind in the order in which kinds are applied within a wave.
pub fn kind_rank(kind: &str) -> usize {
    kinds().iter().position(|known| *known == kind).unwrap_or(kinds().len())
}

/// Puts tasks into the order in which they run.
pub(crate) fn sort(tasks: &mut Vec<Task<'_>>) {
    tasks.sort_by(|a, b| {
        let key = |t: &Task<'_>| (t.id.phase, t.wave, kind_rank(&t.id.key.kind));
        key(a)
            .cmp(&key(b))
            .then_with(|| a.id.key.name.cmp(&b.id.key.name))
            .then_with(|| a.id.key.cmp(&b.id.key))
    });
    move_before(tasks, |task| {
        let is_namespace = task.id.key.kind == "Namespace" && task.id.key.group.is_empty();
        is_namespace.then(|| Needs::Namespace(task.id.key.name.clone()))
    });
    move_before(tasks, |task| {
        let crd = task.target.as_ref().filter(|_| task.id.key.kind == "CustomResourceDefinition")?;
        let group = crd.str_at(&["spec", "group"])?.to_owned();
        Some(Needs::Kind(group, crd.str_at(&["spec", "names", "kind"])?.to_owned()))
    });
}

/// Objects of a kind that the cluster does not have wait for the Applications of later waves, too: one of
/// these may bring the kind, and none of them would ever come if the wave of such an object had to end first.
/// Once the kind is there they are back in their own wave.
pub(crate) fn put_off(tasks: &mut [Task<'_>]) {
    let brings = |task: &Task<'_>| {
        task.id.key.group == tiphys_model::names::GROUP
            && matches!(task.id.key.kind.as_str(), "Application" | "ApplicationSet")
            && !task.is_prune()
    };
    let sync = tiphys_model::SyncPhase::Sync;
    let last = tasks.iter().filter(|task| task.id.phase == sync && brings(task)).map(|task| task.wave).max();
    let Some(last) = last else { return };
    let waits = |task: &&mut Task<'_>| task.unknown_kind && task.id.phase == sync && !task.is_hook();
    for task in tasks.iter_mut().filter(waits) {
        task.wave = task.wave.max(last);
    }
}

/// What other tasks need a task for.
enum Needs {
    Namespace(String),
    Kind(String, String),
}

impl Needs {
    fn is_needed_by(&self, task: &Task<'_>) -> bool {
        match self {
            Self::Namespace(name) => task.id.key.namespace == *name,
            Self::Kind(group, kind) => task.id.key.group == *group && task.id.key.kind == *kind,
        }
    }
}

/// Moves every provider before the first task that needs it, into that task's phase and wave.
fn move_before(tasks: &mut Vec<Task<'_>>, provides: impl Fn(&Task<'_>) -> Option<Needs>) {
    for at in 0..tasks.len() {
        if tasks[at].is_prune() {
            continue;
        }
        let Some(needs) = provides(&tasks[at]) else { continue };
        let first = tasks[..at].iter().position(|task| !task.is_prune() && needs.is_needed_by(task));
        if let Some(first) = first {
            let mut provider = tasks.remove(at);
            provider.id.phase = tasks[first].id.phase;
            provider.wave = tasks[first].wave;
            tasks.insert(first, provider);
        }
    }
}

/// The waves of all that is pruned, as its annotations have them.
pub(crate) fn prune_waves(tasks: &[Task<'_>]) -> BTreeSet<i64> {
    tasks.iter().filter(|task| task.is_prune()).map(|task| task.wave).collect()
}

/// Gives prunes the waves mirrored among `waves`, which hold those of all prunes: the objects of the highest
/// wave go first. Those marked to be pruned last get a wave of their own after all others.
pub(crate) fn assign_prune_waves(tasks: &mut [Task<'_>], waves: &BTreeSet<i64>) {
    let mirrored: BTreeMap<i64, i64> = waves.iter().copied().zip(waves.iter().rev().copied()).collect();
    for task in tasks.iter_mut().filter(|task| task.is_prune() && !task.prune_last) {
        task.wave = mirrored[&task.wave];
    }
    let sync = tiphys_model::SyncPhase::Sync;
    let last =
        tasks.iter().filter(|t| t.id.phase == sync && !t.prune_last).map(|t| t.wave).max().unwrap_or(0);
    for task in tasks.iter_mut().filter(|task| task.prune_last) {
        task.wave = last.max(0).saturating_add(1);
    }
}
