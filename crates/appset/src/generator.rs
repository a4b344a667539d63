//! Running one generator: choosing its kind, its values, its selector.

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use crate::{ClusterInfo, GenerateError, Inputs, Params, combine, git, params, render::Renderer, selector};

/// Combinations of combinations end here.
const MAX_DEPTH: usize = 3;
/// Kinds that need a service we do not speak to.
const UNSUPPORTED: [&str; 2] = ["scmProvider", "pullRequest"];

/// The sets that a generator yields.
pub(crate) fn run(
    generator: &Value,
    at: &str,
    renderer: &Renderer,
    inputs: &dyn Inputs,
    depth: usize,
) -> Result<Vec<Params>, GenerateError> {
    let fail = |message: String| GenerateError::Generator { at: at.to_owned(), message };
    if depth >= MAX_DEPTH {
        return Err(fail("combination generators are nested too deeply".into()));
    }
    let part = |name: &str| generator.get(name).filter(|value| value.is_object());
    let sets = if let Some(spec) = part("list") {
        list(spec, renderer).map_err(fail)?
    } else if let Some(spec) = part("clusters") {
        clusters(spec, renderer, inputs).map_err(fail)?
    } else if let Some(spec) = part("git") {
        with_values(git::run(spec, renderer, inputs).map_err(fail)?, spec, renderer).map_err(fail)?
    } else if let Some(spec) = part("matrix") {
        combine::matrix(spec, &format!("{at}.matrix"), renderer, inputs, depth + 1)?
    } else if let Some(spec) = part("merge") {
        combine::merge(spec, &format!("{at}.merge"), renderer, inputs, depth + 1)?
    } else if let Some(spec) = part("clusterDecisionResource") {
        let sets = inputs.decisions(spec).map_err(fail)?;
        with_values(shaped(sets, renderer), spec, renderer).map_err(fail)?
    } else if let Some(spec) = part("plugin") {
        let mut sets = inputs.plugin(spec).map_err(fail)?;
        let input = json!({"input": {"parameters": spec.at(&["input", "parameters"])}});
        sets.iter_mut().for_each(|set| drop(set.insert("generator".into(), input.clone())));
        with_values(shaped(sets, renderer), spec, renderer).map_err(fail)?
    } else if let Some(kind) = UNSUPPORTED.iter().find(|kind| part(kind).is_some()) {
        return Err(fail(format!("generator {kind} is not supported")));
    } else {
        return Err(fail("the generator is of no known kind".into()));
    };
    filtered(sets, generator.get("selector")).map_err(fail)
}

fn shaped(sets: Vec<Params>, renderer: &Renderer) -> Vec<Params> {
    if renderer.is_go() { sets } else { sets.iter().map(params::flatten).collect() }
}

/// Keeps the sets that the post-filter selects.
fn filtered(sets: Vec<Params>, by: Option<&Value>) -> Result<Vec<Params>, String> {
    let Some(by) = by.filter(|selector| !selector::is_empty(selector)) else { return Ok(sets) };
    let mut kept = Vec::new();
    for set in sets {
        let flat = params::flatten(&set);
        if selector::selects(by, &|key| flat.get(key).map(params::text_of))? {
            kept.push(set);
        }
    }
    Ok(kept)
}

fn list(spec: &Value, renderer: &Renderer) -> Result<Vec<Params>, String> {
    let mut elements: Vec<Value> =
        spec.get("elements").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(text) = spec.str_at(&["elementsYaml"]).filter(|text| !text.is_empty()) {
        let more = tiphys_yaml::from_yaml(text).map_err(|error| format!("elementsYaml: {error}"))?;
        elements.extend(more.as_array().cloned().unwrap_or_default());
    }
    let sets: Result<Vec<Params>, String> = elements
        .into_iter()
        .map(|element| match element {
            Value::Object(map) => Ok(map),
            other => Err(format!("list element {other} is no object")),
        })
        .collect();
    Ok(shaped(sets?, renderer))
}

fn clusters(spec: &Value, renderer: &Renderer, inputs: &dyn Inputs) -> Result<Vec<Params>, String> {
    let none = json!({});
    let by = spec.get("selector").unwrap_or(&none);
    let mut sets = Vec::new();
    for cluster in inputs.clusters()? {
        let selected = if selector::is_empty(by) {
            true
        } else {
            cluster.declared && selector::selects(by, &|key| cluster.labels.get(key).cloned())?
        };
        if selected {
            sets.push(cluster_params(&cluster));
        }
    }
    let sets = with_values(shaped(sets, renderer), spec, renderer)?;
    if spec.get("flatList") == Some(&Value::Bool(true)) {
        let all: Vec<Value> = sets.into_iter().map(Value::Object).collect();
        return Ok(vec![Params::from_iter([("clusters".to_owned(), Value::from(all))])]);
    }
    Ok(sets)
}

fn cluster_params(cluster: &ClusterInfo) -> Params {
    let mut set = Params::new();
    set.insert("name".into(), cluster.name.clone().into());
    set.insert("nameNormalized".into(), params::normalize(&cluster.name).into());
    set.insert("server".into(), cluster.server.clone().into());
    set.insert("project".into(), cluster.project.clone().into());
    if cluster.declared {
        let metadata = json!({"labels": cluster.labels, "annotations": cluster.annotations});
        set.insert("metadata".into(), metadata);
    }
    set
}

/// Adds the generator's `values`, each rendered with the set it goes to.
fn with_values(sets: Vec<Params>, spec: &Value, renderer: &Renderer) -> Result<Vec<Params>, String> {
    let Some(values) = spec.get("values").and_then(Value::as_object) else { return Ok(sets) };
    let add = |mut set: Params| {
        let rendered = renderer.value(&Value::Object(values.clone()), &set, 0)?;
        let named = Params::from_iter([("values".to_owned(), rendered)]);
        params::overlay(&mut set, &if renderer.is_go() { named } else { params::flatten(&named) }, 0);
        Ok(set)
    };
    sets.into_iter().map(add).collect()
}

/// The set's template with what the generator's own template says.
pub(crate) fn overridden(template: &Value, generator: &Value) -> Value {
    let kinds = ["list", "clusters", "git", "matrix", "merge", "clusterDecisionResource", "plugin"];
    let own = kinds.iter().find_map(|kind| generator.get(*kind)?.get("template"));
    let mut out = template.clone();
    if let (Some(base), Some(over)) = (out.as_object_mut(), own.and_then(Value::as_object)) {
        params::overlay(base, &without_empty(over, 0), 0);
    }
    out
}

/// Empty fields of an overriding template say nothing.
fn without_empty(map: &Params, depth: usize) -> Params {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    map.iter()
        .map(|(key, value)| match value {
            Value::Object(inner) if depth < 64 => {
                (key.clone(), Value::Object(without_empty(inner, depth + 1)))
            }
            other => (key.clone(), other.clone()),
        })
        .filter(|(_, value)| !is_empty(value))
        .collect()
}
