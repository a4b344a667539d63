//! Generators made of generators: matrix and merge.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{GenerateError, Inputs, Params, generator, params, render::Renderer};

/// Every set of the first child with every set of the second, which may be templated from the first.
pub(crate) fn matrix(
    spec: &Value,
    at: &str,
    renderer: &Renderer,
    inputs: &dyn Inputs,
    depth: usize,
) -> Result<Vec<Params>, GenerateError> {
    let fail = |message: String| GenerateError::Generator { at: at.to_owned(), message };
    let children = children(spec);
    let [first, second] = children else {
        return Err(fail(format!("found {} generators, Matrix support only exactly two", children.len())));
    };
    let mut out = Vec::new();
    for left in generator::run(first, &format!("{at}.generators[0]"), renderer, inputs, depth)? {
        let templated = renderer.value(second, &left, 0).map_err(fail)?;
        for right in generator::run(&templated, &format!("{at}.generators[1]"), renderer, inputs, depth)? {
            let mut set = left.clone();
            if !renderer.is_go() {
                let clash =
                    right.iter().find(|(key, value)| left.get(*key).is_some_and(|have| have != *value));
                if let Some((key, _)) = clash {
                    return Err(fail(format!("found duplicate key {key} with different value")));
                }
            }
            params::overlay(&mut set, &right, 0);
            out.push(set);
        }
    }
    Ok(out)
}

/// The sets of the first child, each with what the later children say of the same key values.
pub(crate) fn merge(
    spec: &Value,
    at: &str,
    renderer: &Renderer,
    inputs: &dyn Inputs,
    depth: usize,
) -> Result<Vec<Params>, GenerateError> {
    let fail = |message: String| GenerateError::Generator { at: at.to_owned(), message };
    let children = children(spec);
    if children.len() < 2 {
        return Err(fail(format!("found {} generators, Merge requires two or more", children.len())));
    }
    let keys: Vec<&str> = spec
        .get("mergeKeys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if keys.is_empty() {
        return Err(fail("no merge keys were specified, Merge requires at least one".into()));
    }
    // The order of the base is kept; Argo CD's is random.
    let mut order = Vec::new();
    let mut sets: BTreeMap<String, Params> = BTreeMap::new();
    for (index, child) in children.iter().enumerate() {
        let yielded = generator::run(child, &format!("{at}.generators[{index}]"), renderer, inputs, depth)?;
        let mut seen = BTreeMap::new();
        for set in yielded {
            let id: Vec<Value> = keys.iter().map(|key| lookup(&set, key)).collect();
            let id = Value::from(id).to_string();
            if seen.insert(id.clone(), ()).is_some() {
                return Err(fail(format!(
                    "the parameters from a generator were not unique by the given mergeKeys, Merge requires all param sets to be unique. Duplicate key was {id}"
                )));
            }
            match sets.get_mut(&id) {
                Some(base) if renderer.is_go() => params::overlay(base, &set, 0),
                Some(base) => base.extend(set),
                None if index == 0 => {
                    order.push(id.clone());
                    sets.insert(id, set);
                }
                None => {}
            }
        }
    }
    Ok(order.iter().filter_map(|id| sets.remove(id)).collect())
}

/// A parameter by name; dots lead into trees.
fn lookup(set: &Params, key: &str) -> Value {
    if let Some(value) = set.get(key) {
        return value.clone();
    }
    let mut parts = key.split('.');
    let first = parts.next().and_then(|part| set.get(part));
    parts.try_fold(first, |value, part| Some(value?.get(part))).flatten().cloned().unwrap_or_default()
}

fn children(spec: &Value) -> &[Value] {
    spec.get("generators").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
