//! The order of the output.

use std::{cmp::Ordering, collections::HashMap};

use crate::{
    error::{Error, ErrorKind, Result},
    kustomization::model::SortOptions,
    options::Reorder,
    resid::{Gvk, default_order},
    resource::Resource,
    resource_map::ResourceMap,
};

/// Sorts as `sortOptions` say, or as the caller does where they say nothing.
///
/// # Errors
/// Options that contradict each other.
pub(crate) fn sort(objects: &mut ResourceMap, options: Option<&SortOptions>, reorder: Reorder) -> Result<()> {
    let Some(options) = options else {
        if reorder == Reorder::Legacy {
            sort_by_kind(objects, &default_ranks());
        }
        return Ok(());
    };
    match options.order.as_str() {
        "legacy" => {
            let ranks = match &options.legacy_sort_options {
                Some(lists) => ranks(&lists.order_first, &lists.order_last),
                None => default_ranks(),
            };
            sort_by_kind(objects, &ranks);
            Ok(())
        }
        "fifo" if options.legacy_sort_options.is_some() => Err(invalid(
            "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not 'legacy'",
        )),
        "fifo" => Ok(()),
        _ => Err(invalid("the field 'sortOptions.order' must be one of [fifo, legacy]")),
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Kustomization, message)
}

/// Ranks of kinds: below zero for those to come first, above for those to come last.
type Ranks = HashMap<String, i64>;

fn ranks<S: AsRef<str>>(first: &[S], last: &[S]) -> Ranks {
    let count = first.len() as i64;
    let before =
        first.iter().enumerate().map(|(index, kind)| (kind.as_ref().to_owned(), index as i64 - count));
    let after = last.iter().enumerate().map(|(index, kind)| (kind.as_ref().to_owned(), index as i64 + 1));
    before.chain(after).collect()
}

fn default_ranks() -> Ranks {
    let (first, last) = default_order();
    ranks(first, last)
}

fn sort_by_kind(objects: &mut ResourceMap, ranks: &Ranks) {
    let list = std::mem::take(&mut objects.list);
    let mut keyed: Vec<(Gvk, String, String, Resource)> = list
        .into_iter()
        .map(|resource| {
            let id = resource.id();
            let mut text = id.gvk.to_string();
            for (part, empty) in [(&id.namespace, "~X"), (&id.name, "~N")] {
                text.push('|');
                text.push_str(if part.is_empty() { empty } else { part });
            }
            (id.gvk.clone(), id.gvk.sort_text(), text, resource)
        })
        .collect();
    keyed.sort_by(|a, b| compare_kinds(a, b, ranks).then_with(|| a.2.cmp(&b.2)));
    objects.list = keyed.into_iter().map(|(.., resource)| resource).collect();
}

fn compare_kinds(
    a: &(Gvk, String, String, Resource),
    b: &(Gvk, String, String, Resource),
    ranks: &Ranks,
) -> Ordering {
    let rank = |gvk: &Gvk| ranks.get(gvk.kind.as_str()).copied().unwrap_or(0);
    let ordered = rank(&a.0).cmp(&rank(&b.0));
    if ordered != Ordering::Equal {
        return ordered;
    }
    let by_text = a.1.cmp(&b.1);
    let namespaces = a.0.kind == "Namespace" && b.0.kind == "Namespace";
    // Kustomize puts core namespaces before those of other groups.
    if namespaces && (a.0.group.is_empty() || b.0.group.is_empty()) { by_text.reverse() } else { by_text }
}
