//! The builtin generators.

mod helm;
mod pairs;

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use smol_str::SmolStr;
use tiphys_value::Location;

use crate::{
    context::Context,
    error::{Error, Result},
    kustomization::model::{GeneratorArgs, GeneratorOptions},
    loader::Loader,
    node::{Kind, Node, Style, Tag, lookup_create},
    resource::{Behavior, Resource},
};

pub(crate) use helm::{HelmGenerator, inflate};

/// Which object a generator makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataKind {
    ConfigMap,
    Secret,
}

/// A service account for GKE workload identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IamPolicy {
    pub cloud: String,
    pub service_name: String,
    pub service_namespace: String,
    pub account_name: String,
    pub project_id: String,
}

/// The options of a generator, those of the kustomization behind its own.
pub(crate) fn merge_options(
    own: Option<&GeneratorOptions>,
    global: Option<&GeneratorOptions>,
) -> Option<GeneratorOptions> {
    let Some(global) = global else { return own.cloned() };
    let mut merged = own.cloned().unwrap_or_default();
    let fill = |own: &mut BTreeMap<String, String>, global: &BTreeMap<String, String>| {
        global.iter().for_each(|(key, value)| {
            own.entry(key.clone()).or_insert_with(|| value.clone());
        });
    };
    fill(&mut merged.labels, &global.labels);
    fill(&mut merged.annotations, &global.annotations);
    merged.disable_name_suffix_hash |= global.disable_name_suffix_hash;
    merged.immutable |= global.immutable;
    Some(merged)
}

/// Makes a ConfigMap or Secret.
///
/// # Errors
/// No name, sources that cannot be read, keys given twice.
pub(crate) fn make_data(
    kind: DataKind,
    args: &GeneratorArgs,
    loader: &Loader<'_>,
    location: &Location,
    context: &Context<'_>,
) -> Result<Resource> {
    if args.name.is_empty() {
        return Err(Error::transform("a configmap must have a name"));
    }
    let data = pairs::load(args, loader, &context.meter)?;
    // In base64 it is a third more, and in lines once more.
    context.meter.check(data.values().map(|bytes| 2 * bytes.len()).sum())?;
    let node = build(kind, args, &data).map_err(Error::transform)?;
    let mut resource = Resource::new(node, location.clone(), &context.schemas);
    resource.needs_hash = args.options.as_ref().is_none_or(|options| !options.disable_name_suffix_hash);
    resource.behavior = Behavior::parse(&args.behavior);
    resource.touched = true;
    Ok(resource)
}

fn build(kind: DataKind, args: &GeneratorArgs, data: &BTreeMap<String, Vec<u8>>) -> Result<Node, String> {
    let name = if kind == DataKind::ConfigMap { "ConfigMap" } else { "Secret" };
    let mut metadata = Node::map(vec![(Node::scalar("name"), Node::string(args.name.as_str()))]);
    if !args.namespace.is_empty() {
        metadata.set("namespace", Node::string(args.namespace.as_str()))?;
    }
    let mut node = Node::map(vec![
        (Node::scalar("apiVersion"), Node::string("v1")),
        (Node::scalar("kind"), Node::string(name)),
        (Node::scalar("metadata"), metadata),
    ]);
    if kind == DataKind::Secret {
        let of = if args.r#type.is_empty() { "Opaque" } else { &args.r#type };
        node.set("type", Node::string(of))?;
        lookup_create(&mut node, &["data"], Kind::Map)?;
    }
    for (key, bytes) in data {
        let (field, value) = match (kind, std::str::from_utf8(bytes)) {
            (DataKind::ConfigMap, Ok(text)) => ("data", text.to_owned()),
            (DataKind::ConfigMap, Err(_)) => ("binaryData", wrapped_base64(bytes)),
            (DataKind::Secret, _) => ("data", wrapped_base64(bytes)),
        };
        // No key comes twice.
        if let Some(map) = lookup_create(&mut node, &[field], Kind::Map)? {
            map.add(key, data_value(&value));
        }
    }
    if let Some(options) = &args.options {
        apply_options(&mut node, options)?;
    }
    Ok(node)
}

/// Sets one key of `data` or `binaryData`; a key is one step, whatever it looks like.
fn set_data(node: &mut Node, field: &str, key: &str, value: &str) -> Result<(), String> {
    match lookup_create(node, &[field], Kind::Map)? {
        Some(map) => map.set(key, data_value(value)),
        None => Ok(()),
    }
}

/// A text as a value of `data`.
fn data_value(value: &str) -> Node {
    let style = if value.contains('\n') { Style::Block } else { Style::Plain };
    Node { style, ..Node::tagged(value, Tag::Str) }
}

fn apply_options(node: &mut Node, options: &GeneratorOptions) -> Result<(), String> {
    for (field, pairs) in [("labels", &options.labels), ("annotations", &options.annotations)] {
        for (key, value) in pairs {
            if let Some(map) = lookup_create(node, &["metadata", field], Kind::Map)? {
                map.set(key, Node { style: Style::SingleQuoted, ..Node::tagged(value.as_str(), Tag::Str) })?;
            }
        }
    }
    if options.immutable {
        node.set("immutable", Node::tagged("true", Tag::Bool))?;
    }
    Ok(())
}

/// Base64, in lines of 70 if there is more than one.
fn wrapped_base64(bytes: &[u8]) -> String {
    const LINE: usize = 70;
    let text = STANDARD.encode(bytes);
    if text.len() / LINE == 0 {
        return text;
    }
    let lines: Vec<&str> =
        (0..text.len()).step_by(LINE).map(|at| &text[at..(at + LINE).min(text.len())]).collect();
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

/// Merges `data` and `binaryData` of an older object into a generated one, whose keys win.
///
/// # Errors
/// Data that is no mapping.
pub(crate) fn merge_data(node: &mut Node, old: &Node) -> Result<(), String> {
    for field in ["data", "binaryData"] {
        let mut merged: BTreeMap<SmolStr, SmolStr> = BTreeMap::new();
        for (key, value) in
            [old, &*node].iter().flat_map(|node| node.get(field).map(Node::pairs).unwrap_or_default())
        {
            let text = if value.is_null() { SmolStr::default() } else { value.value_smol() };
            merged.insert(key.value_smol(), text);
        }
        let earlier = node.clear(field)?;
        for (key, value) in &merged {
            set_data(node, field, key, value)?;
        }
        if let Some(map) = node.get_mut(field) {
            let sources = [earlier.as_ref(), old.get(field)];
            adopt_origins(map, &sources);
        }
    }
    Ok(())
}

/// Gives merged values the origins of those that they were taken from.
fn adopt_origins(map: &mut Node, sources: &[Option<&Node>]) {
    for (key, value) in map.pairs_mut().into_iter().flatten() {
        let found = sources.iter().flatten().find_map(|source| source.get(key.value()));
        if let Some(found) = found {
            value.origin = found.origin;
        }
    }
}

/// Makes the service account of an IAM policy.
///
/// # Errors
/// Clouds other than GKE.
pub(crate) fn make_iam_policy(
    policy: &IamPolicy,
    location: &Location,
    context: &Context<'_>,
) -> Result<Resource> {
    if policy.cloud != "gke" {
        return Err(Error::transform(format!("cloud provider {} not supported yet", policy.cloud)));
    }
    let account = format!("{}@{}.iam.gserviceaccount.com", policy.account_name, policy.project_id);
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "annotations": { "iam.gke.io/gcp-service-account": account },
            "name": policy.service_name,
        },
    });
    if !policy.service_namespace.is_empty() {
        object["metadata"]["namespace"] = json!(policy.service_namespace);
    }
    let mut resource = Resource::new(crate::node::from_json(&object), location.clone(), &context.schemas);
    resource.touched = true;
    Ok(resource)
}
