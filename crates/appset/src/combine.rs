//! Generators made of generators: matrix and merge.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use tiphys_gotemplate::{Map, json};

use crate::{GenerateError, Inputs, generator, params, render::Renderer};

/// Every set of the first child with every set of the second, which may be templated from the first.
pub(crate) fn matrix(
    spec: &Json,
    at: &str,
    renderer: &Renderer,
    inputs: &dyn Inputs,
    depth: usize,
) -> Result<Vec<Map>, GenerateError> {
    let fail = |message: String| GenerateError::Generator { at: at.to_owned(), message };
    let children = children(spec);
    let [first, second] = children else {
        return Err(fail(format!("found {} generators, Matrix support only exactly two", children.len())));
    };
    let mut out = Vec::new();
    for left in generator::run_single(first, None, &format!("{at}.generators[0]"), renderer, inputs, depth)? {
        let from = Some(&left).filter(|left| !left.is_empty());
        for right in
            generator::run_single(second, from, &format!("{at}.generators[1]"), renderer, inputs, depth)?
        {
            let set = if renderer.is_go() {
                let set = params::copy(&right);
                params::overlay(&set, &left);
                set
            } else {
                combined(&left, &right).map_err(fail)?
            };
            renderer.account().count(&set).map_err(fail)?;
            out.push(set);
        }
    }
    Ok(out)
}

/// Flat parameters of both sides as texts; they may not contradict each other.
fn combined(left: &Map, right: &Map) -> Result<Map, String> {
    let texts = |set: &Map| -> Vec<(String, String)> {
        set.entries().iter().map(|entry| (entry.key.to_string(), params::text_of(&entry.value))).collect()
    };
    let mut out: BTreeMap<String, String> = texts(left).into_iter().collect();
    for (key, value) in texts(right) {
        match out.get(&key) {
            Some(have) if *have != value => {
                return Err(format!("found duplicate key {key} with different value, a: {have} ,b: {value}"));
            }
            _ => drop(out.insert(key, value)),
        }
    }
    Ok(out.into_iter().collect())
}

/// The sets of the first child, each with what the later children say of the same key values.
pub(crate) fn merge(
    spec: &Json,
    at: &str,
    renderer: &Renderer,
    inputs: &dyn Inputs,
    depth: usize,
) -> Result<Vec<Map>, GenerateError> {
    let fail = |message: String| GenerateError::Generator { at: at.to_owned(), message };
    let children = children(spec);
    if children.len() < 2 {
        return Err(fail(format!("found {} generators, Merge requires two or more", children.len())));
    }
    let keys: BTreeSet<&str> = spec
        .get("mergeKeys")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    if keys.is_empty() {
        return Err(fail("no merge keys were specified, Merge requires at least one".into()));
    }
    // The order of the base is kept; Argo CD's is random.
    let mut order = Vec::new();
    let mut sets: BTreeMap<String, Map> = BTreeMap::new();
    for (index, child) in children.iter().enumerate() {
        let at = format!("{at}.generators[{index}]");
        let mut seen = BTreeSet::new();
        for set in generator::run_single(child, None, &at, renderer, inputs, depth)? {
            let id = identity(&set, &keys).map_err(fail)?;
            if !seen.insert(id.clone()) {
                return Err(fail(format!(
                    "the parameters from a generator were not unique by the given mergeKeys, Merge requires all param sets to be unique. Duplicate key was {id}"
                )));
            }
            match sets.get(&id) {
                Some(base) if renderer.is_go() => params::overlay(base, &set),
                Some(base) => {
                    set.snapshot().into_iter().for_each(|entry| base.insert(entry.key, entry.value))
                }
                None if index == 0 => {
                    order.push(id.clone());
                    sets.insert(id, params::copy(&set));
                }
                None => {}
            }
        }
    }
    Ok(order.iter().filter_map(|id| sets.remove(id)).collect())
}

/// What a set says of the merge keys. Those name parameters of the first level; what is not there is null.
fn identity(set: &Map, keys: &BTreeSet<&str>) -> Result<String, String> {
    let chosen: Map = keys.iter().map(|key| (*key, set.get(key).unwrap_or_default())).collect();
    json::to_string(&chosen.into(), json::Options::default())
}

fn children(spec: &Json) -> &[Json] {
    spec.get("generators").and_then(Json::as_array).map_or(&[], Vec::as_slice)
}
