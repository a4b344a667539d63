//! Causes and repairs as lines for people.

use tiphys_stage::causes::{Cause, Repair};
use tiphys_value::ResourceKey;

use super::text::{NAMED, is_application, short, short_name, some_of};

/// What is wrong, with what, where that is written, and what comes of it.
pub(super) fn cause_lines(cause: &Cause) -> Vec<String> {
    let objects: Vec<String> = cause.objects.iter().map(short_name).collect();
    let id = cause.mechanism.as_ref().map(|it| format!("   [{}]", it.id)).unwrap_or_default();
    let mut lines = vec![format!("{}{id}", short(&cause.text))];
    let place = match cause.places.first() {
        Some(place) => format!("   {place}"),
        None => String::new(),
    };
    let state = if cause.state.is_empty() { String::new() } else { format!("{}: ", cause.state) };
    lines.push(format!("{state}{}{place}", some_of(&objects, 3)));
    lines.extend(cause.places.iter().skip(1).take(2).cloned());
    let hits = hit_names(cause);
    if !hits.is_empty() {
        lines.push(format!("so not: {}", hits.join("; ")));
    }
    if let Some(repair) = &cause.repair {
        lines.extend(repair_lines(repair));
    }
    lines
}

/// What would mend it, a line each.
pub(super) fn repair_lines(repair: &Repair) -> Vec<String> {
    let place = repair.place.as_ref().map(|place| format!("   {place}")).unwrap_or_default();
    let mut lines = vec![format!("repair: {}{place}", repair.text)];
    lines.extend(repair.patch.iter().flat_map(|patch| patch.lines()).map(|line| format!("    {line}")));
    lines.extend(repair.command.iter().map(|command| format!("    {command}")));
    lines
}

/// What is not well because of a cause: objects, then Applications.
pub(super) fn hit_names(cause: &Cause) -> Vec<String> {
    // A ReplicaSet says nothing that its Deployment does not.
    let told = cause.consequences.iter().filter(|key| key.kind != "ReplicaSet");
    let (apps, others): (Vec<&ResourceKey>, Vec<&ResourceKey>) = told.partition(|key| is_application(key));
    let mut hits = Vec::new();
    if !others.is_empty() {
        hits.push(some_of(&others.iter().map(|key| short_name(key)).collect::<Vec<_>>(), 3));
    }
    if !apps.is_empty() {
        let names: Vec<String> = apps.iter().map(|key| key.name.clone()).collect();
        let what = if names.len() == 1 { "Application" } else { "Applications" };
        hits.push(format!("{what} {}", some_of(&names, NAMED)));
    }
    hits
}
