//! Running one generator: choosing its kind, its values, its selector.

use serde_json::Value as Json;
use tiphys_gotemplate::{ListType, Map, Value};
use tiphys_model::names;
use tiphys_value::ObjectExt;

use crate::{ClusterInfo, GenerateError, Inputs, Params, combine, git, params, render::Renderer, selector};

/// Combinations of combinations end here.
const MAX_DEPTH: usize = 3;
/// The kinds of generators, in the order in which one entry that names several of them yields.
pub const GENERATOR_KINDS: [&str; 9] = [
    "list",
    "clusters",
    "git",
    "scmProvider",
    "clusterDecisionResource",
    "pullRequest",
    "matrix",
    "merge",
    "plugin",
];

/// The kinds of generators that an entry names.
pub(crate) fn kinds(generator: &Json) -> impl Iterator<Item = &'static str> {
    GENERATOR_KINDS.into_iter().filter(|kind| generator.get(*kind).is_some_and(Json::is_object))
}

/// The sets of one kind of generator.
pub(crate) struct Yield {
    pub kind: &'static str,
    pub sets: Vec<Map>,
}

/// What each of the generators of an entry yields.
pub(crate) fn all(
    generator: &Json,
    at: &str,
    renderer: &Renderer,
    inputs: &dyn Inputs,
) -> Result<Vec<Yield>, GenerateError> {
    run(generator, None, at, renderer, inputs, 0)
}

/// What the one generator of an entry below another generator yields; it may be templated from a set.
pub(crate) fn run_single(
    generator: &Json,
    from: Option<&Map>,
    at: &str,
    renderer: &Renderer,
    inputs: &dyn Inputs,
    depth: usize,
) -> Result<Vec<Map>, GenerateError> {
    let mut yielded = run(generator, from, at, renderer, inputs, depth)?;
    match yielded.len() {
        0 | 1 => Ok(yielded.pop().map(|one| one.sets).unwrap_or_default()),
        _ => {
            let message = "found more than one generator where only one may be".into();
            Err(GenerateError::Generator { at: at.to_owned(), message })
        }
    }
}

fn run(
    generator: &Json,
    from: Option<&Map>,
    at: &str,
    renderer: &Renderer,
    inputs: &dyn Inputs,
    depth: usize,
) -> Result<Vec<Yield>, GenerateError> {
    let fail = |message: String| GenerateError::Generator { at: at.to_owned(), message };
    if depth >= MAX_DEPTH {
        return Err(fail("combination generators are nested too deeply".into()));
    }
    // The selector counts as it is written, also below a matrix that templates the rest.
    let by = generator.get("selector").filter(|by| by.is_object());
    if let Some(by) = by {
        selector::check_selector(by)
            .map_err(|error| fail(format!("error parsing label selector: {error}")))?;
    }
    let render = |set| renderer.generator(&without_templates(generator), set);
    let rendered = from.map(render).transpose().map_err(fail)?;
    let generator = rendered.as_ref().unwrap_or(generator);
    let mut out = Vec::new();
    for kind in kinds(generator) {
        let spec = generator.get(kind).unwrap_or(&Json::Null);
        let sets = match kind {
            "matrix" => combine::matrix(spec, &format!("{at}.matrix"), renderer, inputs, depth + 1)?,
            "merge" => combine::merge(spec, &format!("{at}.merge"), renderer, inputs, depth + 1)?,
            kind => terminal(kind, spec, renderer, inputs).map_err(fail)?,
        };
        if !matches!(kind, "matrix" | "merge") {
            sets.iter().try_for_each(|set| renderer.account().count(set)).map_err(fail)?;
        }
        out.push(Yield { kind, sets: filtered(sets, by).map_err(fail)? });
    }
    if out.is_empty() {
        return Err(fail("the generator is of no known kind".into()));
    }
    Ok(out)
}

/// A matrix or merge below a matrix has no template of its own; what stands there is not rendered.
fn without_templates(generator: &Json) -> Json {
    let mut out = generator.clone();
    for kind in ["matrix", "merge"] {
        if let Some(spec) = out.get_mut(kind).and_then(Json::as_object_mut) {
            spec.remove("template");
        }
    }
    out
}

/// A generator that is not made of others.
fn terminal(kind: &str, spec: &Json, renderer: &Renderer, inputs: &dyn Inputs) -> Result<Vec<Map>, String> {
    match kind {
        "list" => list(spec, renderer),
        "clusters" => clusters(spec, renderer, inputs),
        "git" => with_values(git::run(spec, renderer, inputs)?, spec, renderer),
        "clusterDecisionResource" => {
            let sets: Vec<Map> = inputs.decisions(spec)?.iter().map(params::from_json).collect();
            // These values are taken as they are written.
            let values = values(spec)?;
            let pairs: Vec<(&str, String)> =
                values.iter().map(|(key, text)| (*key, (*text).into())).collect();
            sets.iter().for_each(|set| add_values(set, &pairs, renderer));
            Ok(sets)
        }
        "plugin" => {
            let asked = spec.at(&["input", "parameters"]).map_or(Value::Nil, params::value_of);
            let mut sets = Vec::new();
            for answer in inputs.plugin(spec)? {
                let set = template_params(&answer, renderer);
                let input = Map::from_iter([("input", Map::from_iter([("parameters", asked.clone())]))]);
                if renderer.is_go() {
                    set.insert("generator", input);
                } else {
                    let named = Map::from_iter([("generator", input)]);
                    params::overlay(&set, &params::flatten(&named));
                }
                sets.push(set);
            }
            with_values(sets, spec, renderer)
        }
        other => {
            let sets = inputs.hosted(other, spec)?;
            with_values(sets.iter().map(|set| template_params(set, renderer)).collect(), spec, renderer)
        }
    }
}

/// Parameters in the form that a template language knows: trees, or flat texts.
pub(crate) fn template_params(params: &Params, renderer: &Renderer) -> Map {
    let tree = params::from_json(params);
    if renderer.is_go() { tree } else { params::flatten(&tree) }
}

/// Keeps the sets that the post-filter selects.
fn filtered(sets: Vec<Map>, by: Option<&Json>) -> Result<Vec<Map>, String> {
    let Some(by) = by.filter(|selector| !selector::selects_nothing(selector)) else { return Ok(sets) };
    let mut kept = Vec::new();
    for set in sets {
        let flat = params::flatten(&set);
        if selector::selects(by, &|key| flat.get(key).as_ref().map(params::text_of))? {
            kept.push(set);
        }
    }
    Ok(kept)
}

fn list(spec: &Json, renderer: &Renderer) -> Result<Vec<Map>, String> {
    let elements = spec.get("elements").and_then(Json::as_array);
    let mut sets = Vec::new();
    for element in elements.into_iter().flatten() {
        let element = object(element)?;
        sets.push(if renderer.is_go() { params::from_json(&element) } else { plain_element(&element)? });
    }
    if let Some(text) = spec.str_at(&["elementsYaml"]).filter(|text| !text.is_empty()) {
        let more = tiphys_yaml::from_yaml(text).map_err(|error| format!("elementsYaml: {error}"))?;
        let more = match &more {
            Json::Null => &[][..],
            Json::Array(more) => more,
            _ => return Err("elementsYaml is no list".into()),
        };
        for element in more {
            sets.push(params::from_json(&object(element)?));
        }
    }
    Ok(sets)
}

/// An element of a list; null is one without parameters.
fn object(element: &Json) -> Result<Params, String> {
    match element {
        Json::Object(map) => Ok(map.clone()),
        Json::Null => Ok(Params::new()),
        other => Err(format!("list element {other} is no object")),
    }
}

/// Plain templates take texts only, and those below `values`.
fn plain_element(element: &Params) -> Result<Map, String> {
    let text = |key: &str, value: &Json| match value {
        Json::String(text) => Ok(text.clone()),
        other => Err(format!(
            "{key} of a list element is {other}; without goTemplate it has to be a text, in quotes"
        )),
    };
    let out = Map::new();
    for (key, value) in element {
        match value {
            Json::Object(values) if key == "values" => {
                for (name, value) in values {
                    let key = format!("values.{name}");
                    out.insert(key.as_str(), text(&key, value)?);
                }
            }
            value if key == "values" => {
                return Err(format!("values of a list element is {value}; it has to be a mapping"));
            }
            value => out.insert(key.as_str(), text(key, value)?),
        }
    }
    Ok(out)
}

fn clusters(spec: &Json, renderer: &Renderer, inputs: &dyn Inputs) -> Result<Vec<Map>, String> {
    let by =
        spec.get("selector").filter(|by| !selector::selects_nothing(by)).cloned().map(without_secret_type);
    if let Some(by) = &by {
        let checked = selector::check_selector(by).and_then(|()| selector::check_values(by));
        checked.map_err(|error| format!("error converting label selector: {error}"))?;
    }
    let mut selected: Vec<ClusterInfo> = Vec::new();
    for mut cluster in inputs.clusters()? {
        if cluster.declared {
            // That a Secret declares a cluster is written in a label, which sets select by.
            cluster.labels.entry(names::SECRET_TYPE.into()).or_insert_with(|| "cluster".into());
        }
        let is_selected = match &by {
            Some(by) => cluster.declared && selector::selects(by, &|key| cluster.labels.get(key).cloned())?,
            None => true,
        };
        if is_selected {
            // Of several clusters with one name, the last counts.
            selected.retain(|other| other.name != cluster.name);
            selected.push(cluster);
        }
    }
    let sets = selected.iter().map(|cluster| cluster_params(cluster, renderer)).collect();
    let sets = with_values(sets, spec, renderer)?;
    if spec.get("flatList") == Some(&Json::Bool(true)) {
        let all = sets.into_iter().map(Value::from).collect();
        let all = tiphys_gotemplate::List::with_type(ListType::Maps, all);
        return Ok(vec![Map::from_iter([("clusters", all)])]);
    }
    Ok(sets)
}

/// Which Secrets declare clusters is no matter of choice: Argo CD sets this label itself.
fn without_secret_type(mut selector: Json) -> Json {
    if let Some(labels) = selector.get_mut("matchLabels").and_then(Json::as_object_mut) {
        labels.remove(names::SECRET_TYPE);
    }
    selector
}

fn cluster_params(cluster: &ClusterInfo, renderer: &Renderer) -> Map {
    let set = Map::from_iter([
        ("name", cluster.name.clone()),
        ("nameNormalized", params::normalize(&cluster.name)),
        ("server", cluster.server.clone()),
        ("project", cluster.project.clone()),
    ]);
    if !cluster.declared {
        return set;
    }
    let metadata = Map::new();
    for (name, map) in [("annotations", &cluster.annotations), ("labels", &cluster.labels)] {
        if !map.is_empty() {
            metadata.insert(name, params::texts(map.iter().map(|(key, value)| (key, value.as_str()))));
        }
    }
    if renderer.is_go() {
        set.insert("metadata", metadata);
    } else {
        params::overlay(&set, &params::flatten(&Map::from_iter([("metadata", metadata)])));
    }
    set
}

/// The generator's `values`.
fn values(spec: &Json) -> Result<Vec<(&str, &str)>, String> {
    let values = spec.get("values").and_then(Json::as_object).into_iter().flatten();
    values
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| match value.as_str() {
            Some(text) => Ok((key.as_str(), text)),
            None => Err(format!("values.{key} is {value}; it has to be a text, in quotes")),
        })
        .collect()
}

/// Adds the generator's `values`, each rendered with the set it goes to.
fn with_values(sets: Vec<Map>, spec: &Json, renderer: &Renderer) -> Result<Vec<Map>, String> {
    let values = values(spec)?;
    for set in &sets {
        let mut rendered = Vec::new();
        for (key, text) in &values {
            rendered.push((*key, renderer.text(text, set)?));
        }
        add_values(set, &rendered, renderer);
    }
    Ok(sets)
}

/// Adds values to a set; where templates see trees, they are all there is below `values`.
fn add_values(set: &Map, values: &[(&str, String)], renderer: &Renderer) {
    if !renderer.is_go() {
        values.iter().for_each(|(key, value)| set.insert(format!("values.{key}"), value.as_str()));
    } else if !values.is_empty() {
        set.insert("values", params::texts(values.iter().map(|(key, value)| (key, value.as_str()))));
    }
}
