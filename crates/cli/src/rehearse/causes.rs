//! Causes and repairs as lines for people.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use tiphys_render::out_of_reach;
use tiphys_stage::causes::{Cause, Repair};
use tiphys_value::ResourceKey;

use super::text::{NAMED, is_application, short, short_name, some_of};

/// How many addresses that could not be had are causes of their own.
const ADDRESSES: usize = 2;

/// Causes as they are told: what could not be had from anywhere, for one reason, is one. A repository names a
/// chart server for each of its charts, and all are out of reach together.
pub(super) fn grouped(causes: &[Cause]) -> Vec<Cow<'_, Cause>> {
    let mut by_reason: BTreeMap<&str, Vec<&Cause>> = BTreeMap::new();
    for cause in causes {
        if let Some(missing) = out_of_reach(&cause.text) {
            by_reason.entry(missing.reason).or_default().push(cause);
        }
    }
    let mut told = Vec::new();
    for cause in causes {
        let group = out_of_reach(&cause.text).map(|missing| (missing, &by_reason[missing.reason]));
        match group {
            Some((missing, group)) if group.len() > ADDRESSES => {
                if std::ptr::eq(group[0], cause) {
                    told.push(Cow::Owned(together(missing.reason, group)));
                }
            }
            _ => told.push(Cow::Borrowed(cause)),
        }
    }
    told
}

fn together(reason: &str, group: &[&Cause]) -> Cause {
    let mut all = group[0].clone();
    for cause in &group[1..] {
        all.objects.extend(cause.objects.iter().cloned());
        all.sources.extend(cause.sources.iter().cloned());
        all.applications.extend(cause.applications.iter().cloned());
        all.places.extend(cause.places.iter().cloned());
        all.consequences.extend(cause.consequences.iter().cloned());
    }
    let mut told = BTreeSet::new();
    all.places.retain(|place| told.insert(place.clone()));
    all.text = format!("{} addresses cannot be fetched from: {reason}", group.len());
    all.repair = None;
    all
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_out_of_reach_for_one_reason_are_one_cause() {
        let cause = |at: usize, text: String| {
            let object = ResourceKey::new("", "ConfigMap", "shop", format!("c{at}"));
            Cause::of_object(object, None, text, "Unknown")
        };
        let fetch =
            |at: usize| cause(at, format!("cannot fetch https://h{at}.example.com/x: working offline"));
        let fetch = |at| Cause { places: vec!["apps/set.yaml:2".to_owned()], ..fetch(at) };
        let other = cause(9, "no".to_owned());
        let causes = [fetch(0), other.clone(), fetch(1), fetch(2)];
        let told = grouped(&causes);
        assert_eq!(told.len(), 2);
        assert_eq!(told[0].text, "3 addresses cannot be fetched from: working offline");
        assert_eq!(told[0].objects.len(), 3);
        assert_eq!(told[0].places, ["apps/set.yaml:2"], "each place once");
        assert_eq!(*told[1], other);
        assert_eq!(grouped(&causes[..3]).len(), 3, "few are told one by one");
    }
}
