//! Lists in strategic merge patches: items that are the same by a key or by their value, and their order.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;
use tiphys_schema::TypeRef;

use super::{Merged, PATCH, RejectionKind, StrategicError, go_print, merge_maps};

/// What is known of a list.
pub(super) struct List<'a> {
    /// The key by which items are the same.
    pub key: Option<&'a str>,
    /// The type of its items.
    pub items: Option<TypeRef<'a>>,
}

/// Works a change into a list; `deletes` if the change lists scalars that go.
pub(super) fn merge_lists(
    before: Vec<Value>,
    change: &mut [Value],
    list: &List<'_>,
    deletes: bool,
) -> Merged<Vec<Value>> {
    if before.is_empty() && change.is_empty() {
        return Ok(before);
    }
    let of_maps = check_kinds(&[before.as_slice(), change])?;
    if !of_maps {
        if deletes {
            let gone: HashSet<&Value> = change.iter().collect();
            return Ok(before.into_iter().filter(|item| !gone.contains(item)).collect());
        }
        let mut known: HashSet<&Value> = before.iter().collect();
        let added = change.iter().filter(|item| known.insert(item));
        let merged = before.iter().chain(added).cloned().collect();
        return ordered_as(merged, change, &before, None);
    }
    let Some(key) = list.key else {
        return Err(StrategicError::unexpected("cannot merge lists without merge key for struct"));
    };
    let (before, mut change) = carry_out(before, change, key)?;
    let mut merged = before.clone();
    let mut places: HashMap<Value, VecDeque<usize>> = HashMap::new();
    for (at, value) in merged.iter().enumerate().filter_map(|(at, item)| Some((at, item.get(key)?))) {
        places.entry(value.clone()).or_default().push_back(at);
    }
    for item in &mut change {
        let Some(value) = item.get(key).cloned() else { return Err(StrategicError::no_key(item, key)) };
        let same = places.entry(value.clone()).or_default();
        match same.front().map(|at| &mut merged[*at]) {
            Some(Value::Object(found)) => {
                if let Value::Object(changes) = item {
                    merge_maps(found, changes, list.items)?;
                }
                // A key that is null goes as every other field does.
                if found.get(key) != Some(&value) {
                    same.pop_front();
                }
            }
            _ => {
                same.push_back(merged.len());
                merged.push(item.clone());
            }
        }
    }
    ordered_as(merged, &change, &before, Some(key))
}

/// Carries out the directives among the items of a change: the list without what they delete, and the change
/// without them.
fn carry_out(mut before: Vec<Value>, change: &[Value], key: &str) -> Merged<(Vec<Value>, Vec<Value>)> {
    let (mut rest, mut replaces, mut gone) = (Vec::new(), false, HashSet::new());
    for item in change {
        let Some(directive) = item.get(PATCH) else {
            rest.push(item.clone());
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                gone.insert(item.get(key).ok_or_else(|| StrategicError::no_key(item, key))?);
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::unexpected(message));
            }
            _ => return Err(StrategicError::directive(directive, item)),
        }
    }
    before.retain(|other| other.get(key).is_none_or(|value| !gone.contains(value)));
    Ok(if replaces { (rest, Vec::new()) } else { (before, rest) })
}

/// Items of all lists have to be of one kind; says whether they are maps.
pub(super) fn check_kinds(lists: &[&[Value]]) -> Merged<bool> {
    let mut items = lists.iter().flat_map(|list| list.iter());
    let Some(first) = items.next() else {
        return Err(StrategicError::unexpected("no elements in any of the given slices"));
    };
    if first.is_array() {
        let message = "lists of lists are not supported".to_owned();
        return Err(StrategicError { fault: RejectionKind::Unprocessable, message });
    }
    let is_float = |value: &Value| value.as_number().is_some_and(serde_json::Number::is_f64);
    let is_same = |item: &Value| {
        std::mem::discriminant(item) == std::mem::discriminant(first) && is_float(item) == is_float(first)
    };
    if items.all(is_same) {
        return Ok(first.is_object());
    }
    let shown: Vec<String> = lists.iter().map(|list| go_print(&Value::from(list.to_vec()))).collect();
    Err(StrategicError::unexpected(format!("list element types are not identical: [{}]", shown.join(" "))))
}

/// What a patch changes has to stand in the order that it asks for, and be in that at all.
pub(super) fn check_order(change: &[Value], order: &[Value], key: Option<&str>) -> Merged<()> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    const MAP: &str = "map[string]interface {}";
    if let Some(odd) = change.iter().find(|item| key.is_some() && !item.is_object()) {
        return Err(StrategicError::kind(MAP, odd));
    }
    let mut wanted = order.iter();
    for item in change.iter().filter(|item| item.get(PATCH).is_none()) {
        let id = |item: &Value| match key {
            None => Ok(item.clone()),
            Some(_) if !item.is_object() => Err(StrategicError::kind(MAP, item)),
            Some(key) => item.get(key).cloned().ok_or_else(|| StrategicError::no_key(item, key)),
        };
        let own = id(item)?;
        loop {
            let Some(next) = wanted.next() else {
                let (change, order) = (change.to_vec().into(), order.to_vec().into());
                return Err(StrategicError::unexpected(format!(
                    "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                    go_print(&change),
                    go_print(&order)
                )));
            };
            if id(next)? == own {
                break;
            }
        }
    }
    Ok(())
}

/// Puts listed items into the given order; items that are not listed keep their place relative to
/// the live list's.
///
/// # Errors
/// Items that lack their key.
pub(super) fn ordered_as(
    list: Vec<Value>,
    order: &[Value],
    live: &[Value],
    key: Option<&str>,
) -> Merged<Vec<Value>> {
    if let Some(key) = key {
        for item in list.iter().chain(order).chain(live) {
            match item {
                Value::Object(map) if map.contains_key(key) => {}
                Value::Object(_) => return Err(StrategicError::no_key(item, key)),
                other => return Err(StrategicError::kind("map[string]interface {}", other)),
            }
        }
    }
    let wanted = first_places(order, key);
    let in_order = |item: &Value| wanted.get(id(item, key)).copied();
    let (mut listed, others): (Vec<_>, Vec<_>) = list.into_iter().partition(|item| in_order(item).is_some());
    listed.sort_by_key(in_order);
    let living = first_places(live, key);
    let place = |item: &Value| living.get(id(item, key)).copied();
    let mut out = Vec::with_capacity(listed.len() + others.len());
    let (mut listed, mut others) = (listed.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(a), Some(b)) = (listed.peek(), others.peek()) {
        let other_first = matches!((place(a), place(b)), (Some(a), Some(b)) if b < a);
        out.extend(if other_first { others.next() } else { listed.next() });
    }
    out.extend(listed);
    out.extend(others);
    Ok(out)
}

/// What makes an item the same as another: its key's value, or itself.
fn id<'a>(item: &'a Value, key: Option<&str>) -> &'a Value {
    key.map_or(item, |key| &item[key])
}

/// Where each item of a list stands first.
fn first_places<'a>(list: &'a [Value], key: Option<&str>) -> HashMap<&'a Value, usize> {
    let mut places = HashMap::new();
    for (at, item) in list.iter().enumerate() {
        places.entry(id(item, key)).or_insert(at);
    }
    places
}
