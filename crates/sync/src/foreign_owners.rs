//! Objects that somebody else looks after. They are held one by one: the rest of an Application is synced.

use std::collections::BTreeMap;

use tiphys_model::{OperationPhase, SyncOptions, names};
use tiphys_value::ResourceKey;

use crate::{
    Claim, Ending, SyncInput, SyncSettings, operation_end,
    step::{Progress, result_of},
    task::Task,
};

/// The option that says what becomes of objects that another Application tracks.
const SHARED_OPTION: &str = "FailOnSharedResource";

/// The objects that no sync writes, with who looks after them: `claims` of other tools, and what other
/// Applications track (`shared`) unless an option says that it is fought for, or that the operation fails.
pub fn left_alone(
    claims: &BTreeMap<ResourceKey, Claim>,
    shared: &BTreeMap<ResourceKey, String>,
    options: &SyncOptions,
    settings: &SyncSettings,
) -> BTreeMap<ResourceKey, String> {
    if settings.compat {
        return BTreeMap::new();
    }
    let claimed = claims.iter().filter_map(|(key, claim)| match claim {
        Claim::Refused(owner) => Some((key.clone(), owner.clone())),
        Claim::Shared | Claim::Adopted(_) => None,
    });
    let is_undecided = options.get(SHARED_OPTION).is_none() && settings.refuse_shared;
    let shared = shared.iter().filter(|_| is_undecided);
    let shared = shared.map(|(key, owner)| (key.clone(), format!("Application {}", owner.replace('_', "/"))));
    claimed.chain(shared).collect()
}

/// Fails the operation for the first object that another Application tracks, where the option asks for that.
pub(crate) fn fails_on_shared(progress: &mut Progress<'_, '_>) -> bool {
    let input = progress.input;
    let fails = input.options.is_on(SHARED_OPTION);
    let Some((key, owner)) = input.shared.iter().next().filter(|_| fails) else { return false };
    let owner = owner.replace('_', "/");
    let message = format!(
        "Shared resource found: {}/{} is part of applications {owner} and this one",
        key.kind, key.name
    );
    operation_end::fail_for_good(progress, &message, Ending::Owned);
    true
}

/// Settles the tasks of objects that are left alone before anything is done for them.
pub(crate) fn settle_left_alone(progress: &mut Progress<'_, '_>) {
    let owners = owners(progress.input);
    let open = |task: &Task<'_>| task.is_pending() && !task.is_prune() && !task.is_hook();
    for at in 0..progress.tasks.len() {
        let task = &mut progress.tasks[at];
        let Some(owner) = owners.get(&task.id.key).filter(|_| open(task)) else { continue };
        let template = result_of(task);
        let result = progress.state.result_mut(&task.id, || template);
        result.hook_phase = Some(OperationPhase::Succeeded);
        result.message = advice(owner);
        task.result = Some(result.clone());
        let left = &mut progress.state.extension.left_alone;
        if !left.contains(&task.id.key) {
            left.push(task.id.key.clone());
        }
    }
}

fn owners(input: &SyncInput<'_>) -> BTreeMap<ResourceKey, String> {
    left_alone(input.claims, input.shared, input.options, input.settings)
}

/// What is said of an object that is left alone.
fn advice(owner: &str) -> String {
    format!(
        "left alone: it belongs to {owner}. To take it over, annotate the object or the Application with {}=adopt; to set only what nobody else owns, with {}=share",
        names::OWNERSHIP,
        names::OWNERSHIP
    )
}

/// What the message of an operation that succeeded says of what it left alone; empty if there is nothing.
pub(crate) fn summary(progress: &Progress<'_, '_>) -> String {
    let owners = owners(progress.input);
    let left = &progress.state.extension.left_alone;
    let Some(first) = left.first() else { return String::new() };
    let owner = owners.get(first).map_or("another owner", String::as_str);
    let more = match left.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; left alone: {}/{} of {owner}{more}", first.kind, first.name)
}
