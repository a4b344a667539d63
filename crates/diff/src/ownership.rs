//! Who owns which field of a live object, by its `managedFields`
//! (Kubernetes docs, "Server-Side Apply").

use serde_json::{Map, Value};
use tiphys_model::names;
use tiphys_value::{ObjectExt, Segment};

use crate::normalize::encoded_secret;

/// Managers whose fields an apply of ours takes over: what they set and the target does not is removed.
const OURS: [&str; 3] = [names::FIELD_MANAGER, names::ARGO_CD_MANAGER, names::CLIENT_SIDE_APPLY_MANAGER];

/// Deeper field sets are not followed.
const MAX_DEPTH: usize = 100;

/// The field sets of a live object.
#[derive(Default)]
pub(crate) struct Managers {
    entries: Vec<(String, Value)>,
    /// The field sets that applies of ours left: what they hold was in a manifest.
    applied: Vec<Value>,
    /// Those of them that managers before us left, and that become ours with the next apply.
    before_us: Vec<Value>,
}

impl Managers {
    pub(crate) fn read(live: &Value) -> Self {
        let list = live.at(&["metadata", "managedFields"]).and_then(Value::as_array);
        let last = live.annotation(names::LAST_APPLIED);
        let last: Option<Value> = last.and_then(|text| serde_json::from_str(text).ok());
        let last = last.map(|last| encoded_secret(&last).unwrap_or(last));
        let (mut entries, mut applied, mut before_us) = (Vec::new(), Vec::new(), Vec::new());
        for entry in list.into_iter().flatten() {
            let (Some(manager), Some(fields)) = (entry.str_at(&["manager"]), entry.get("fieldsV1")) else {
                continue;
            };
            entries.push((manager.to_owned(), fields.clone()));
            // What came by a subresource was in no manifest; who is trusted is so there too: replicas that an
            // autoscaler sets are set by `scale`.
            if !OURS.contains(&manager) || entry.get("subresource").is_some() {
                continue;
            }
            let set = match (entry.str_at(&["operation"]), &last) {
                (Some("Apply"), _) => fields.clone(),
                // Creations and client-side applies own what the API server filled in, too.
                (_, Some(last)) => restricted(fields, last, 0),
                (_, None) => continue,
            };
            if manager != names::FIELD_MANAGER {
                before_us.push(set.clone());
            }
            applied.push(set);
        }
        Self { entries, applied, before_us }
    }

    /// The field sets of managers before us, as far as they come from a manifest.
    pub(crate) fn to_be_moved(&self) -> impl Iterator<Item = &Value> {
        self.before_us.iter()
    }

    /// The field sets of one manager.
    pub(crate) fn fields_of<'a>(&'a self, manager: &'a str) -> impl Iterator<Item = &'a Value> {
        self.entries.iter().filter(move |(name, _)| name == manager).map(|(_, fields)| fields)
    }
}

/// Removes what only we own and the target no longer sets; says whether there was anything.
pub(crate) fn remove_abandoned(managers: &Managers, target: &Value, predicted: &mut Value) -> bool {
    remove_all(managers, &managers.applied, target, predicted)
}

/// The same of what managers before us own.
pub(crate) fn remove_moved(managers: &Managers, target: &Value, predicted: &mut Value) -> bool {
    !managers.before_us.is_empty() && remove_all(managers, &managers.before_us, target, predicted)
}

fn remove_all(managers: &Managers, sets: &[Value], target: &Value, predicted: &mut Value) -> bool {
    let others: Vec<&Value> = managers
        .entries
        .iter()
        .filter(|(name, _)| !OURS.contains(&name.as_str()))
        .map(|(_, fields)| fields)
        .collect();
    let mut is_less = false;
    for fields in sets {
        is_less |= remove(fields, &others, Some(target), predicted, 0);
    }
    is_less
}

/// The part of a field set that a manifest sets.
fn restricted(fields: &Value, manifest: &Value, depth: usize) -> Value {
    let mut out = Map::new();
    for (key, below) in fields.as_object().into_iter().flatten().filter(|_| depth < MAX_DEPTH) {
        if let Some(found) = read_step(key).as_ref().and_then(|step| find(manifest, step)) {
            let is_leaf = below.as_object().is_none_or(Map::is_empty);
            let below = if is_leaf { below.clone() } else { restricted(below, found, depth + 1) };
            // A map that the manifest leaves empty owns none of what others, or the API server, put there.
            if is_leaf || below.as_object().is_some_and(|below| !below.is_empty()) {
                out.insert(key.clone(), below);
            }
        }
    }
    Value::Object(out)
}

/// What one key of a field set leads to.
enum Step<'a> {
    Field(&'a str),
    Item(Value),
    Member(Value),
}

fn read_step(key: &str) -> Option<Step<'_>> {
    if let Some(name) = key.strip_prefix("f:") {
        return Some(Step::Field(name));
    }
    if let Some(text) = key.strip_prefix("k:") {
        return serde_json::from_str(text).ok().map(Step::Item);
    }
    serde_json::from_str(key.strip_prefix("v:")?).ok().map(Step::Member)
}

/// Where the list item with the values of a field set's key is.
fn position(list: &[Value], key: &Value) -> Option<usize> {
    let fields = key.as_object()?;
    let has = |item: &Value, left_out: &dyn Fn(&str, &Value) -> bool| {
        fields.iter().all(|(name, value)| match item.get(name) {
            Some(have) => have == value,
            None => left_out(name, value),
        })
    };
    let is_it = |item: &Value| has(item, &|_, _| false);
    // The one key field of Kubernetes' own kinds that may be left out is a port's protocol; of custom kinds
    // the default is not known here, and cannot be told from another value.
    let may_be_it = |item: &Value| has(item, &|name, value| name != "protocol" || value == "TCP");
    list.iter().position(is_it).or_else(|| list.iter().position(may_be_it))
}

fn find<'a>(value: &'a Value, step: &Step<'_>) -> Option<&'a Value> {
    match step {
        Step::Field(name) => value.get(name).filter(|value| !value.is_null()),
        Step::Item(key) => value.as_array().and_then(|list| list.get(position(list, key)?)),
        Step::Member(member) => value.as_array()?.iter().find(|item| *item == member),
    }
}

fn remove(
    fields: &Value,
    others: &[&Value],
    target: Option<&Value>,
    predicted: &mut Value,
    depth: usize,
) -> bool {
    let Some(fields) = fields.as_object().filter(|_| depth < MAX_DEPTH) else { return false };
    let mut is_less = false;
    for (key, below) in fields.iter().filter(|(key, _)| *key != ".") {
        let Some(step) = read_step(key) else { continue };
        if depth == 0 && matches!(step, Step::Field("status" | "apiVersion" | "kind")) {
            continue;
        }
        let below_others: Vec<&Value> = others.iter().filter_map(|fields| fields.get(key)).collect();
        let wanted = target.and_then(|target| find(target, &step));
        let is_leaf = below.as_object().is_none_or(Map::is_empty);
        // A null is written too: what is stored of it, the API server decides, and not who owned the field.
        if is_leaf && is_scalar_set_to_null(target, predicted, &step) {
            continue;
        }
        if wanted.is_none() && below_others.is_empty() {
            is_less |= take(predicted, &step);
            continue;
        }
        if !is_leaf && let Some(child) = find_mut(predicted, &step) {
            is_less |= remove(below, &below_others, wanted, child, depth + 1);
        }
    }
    is_less
}

/// Whether a target sets a text, number or flag to null.
fn is_scalar_set_to_null(target: Option<&Value>, predicted: &Value, step: &Step<'_>) -> bool {
    let Step::Field(name) = step else { return false };
    let is_null = target.and_then(|target| target.get(name)).is_some_and(Value::is_null);
    is_null && predicted.get(name).is_some_and(|value| !value.is_object() && !value.is_array())
}

fn find_mut<'a>(value: &'a mut Value, step: &Step<'_>) -> Option<&'a mut Value> {
    match step {
        Step::Field(name) => value.get_mut(name),
        Step::Item(key) => {
            let list = value.as_array_mut()?;
            position(list, key).and_then(|at| list.get_mut(at))
        }
        Step::Member(member) => value.as_array_mut()?.iter_mut().find(|item| *item == member),
    }
}

/// Takes out what a step leads to; says whether it was there.
fn take(value: &mut Value, step: &Step<'_>) -> bool {
    match (step, value) {
        // A null is equivalent to nothing; kinds of which any field is taken keep it.
        (Step::Field(name), Value::Object(map)) if map.get(*name).is_some_and(|value| !value.is_null()) => {
            map.remove(*name).is_some()
        }
        (Step::Item(key), Value::Array(list)) => position(list, key).map(|at| list.remove(at)).is_some(),
        (Step::Member(member), Value::Array(list)) => {
            let before = list.len();
            list.retain(|item| item != member);
            list.len() < before
        }
        _ => false,
    }
}

/// Sets every field of a set that differs back to the live value: its owner is trusted.
pub(crate) fn trust(fields: &Value, target: &mut Value, live: &Value, depth: usize) {
    let Some(fields) = fields.as_object().filter(|_| depth < MAX_DEPTH) else { return };
    for (key, below) in fields.iter().filter(|(key, _)| *key != ".") {
        let Some(step) = read_step(key) else { continue };
        let Some(have) = find(live, &step) else { continue };
        let is_leaf = below.as_object().is_none_or(Map::is_empty);
        let Some(wanted) = find_mut(target, &step) else { continue };
        if is_leaf {
            wanted.clone_from(have);
        } else {
            trust(below, wanted, have, depth + 1);
        }
    }
}

/// Whether a field set (`fieldsV1`) has something at, above or below a path. Items of lists are not told
/// apart.
pub fn owns(fields: Option<&Value>, path: &[Segment]) -> bool {
    let Some(fields) = fields.and_then(Value::as_object) else { return false };
    match path.first() {
        None => true,
        Some(_) if fields.is_empty() => true,
        Some(Segment::Key(key)) => {
            let below = fields.get(&format!("f:{key}"));
            below.is_some_and(|below| {
                below.as_object().is_none_or(Map::is_empty) || owns(Some(below), &path[1..])
            })
        }
        Some(Segment::Index(_)) => {
            let mut items = fields.iter().filter(|(key, _)| key.starts_with("k:") || key.starts_with("v:"));
            items.any(|(_, below)| owns(Some(below), &path[1..]))
        }
    }
}
