//! Field specs from `crds`: OpenAPI definitions whose properties carry kustomize's extensions.

use serde_json::Value;

use crate::{
    error::{Context as _, Error, ErrorKind, Result},
    fields::{NameReference, TransformerConfig},
    kustomization::model::FieldSpec,
    loader::Loader,
    resid::Gvk,
};

/// References that are followed from one type before the definition is taken for endless.
const MAX_DEPTH: usize = 64;

/// Reads the field specs of all files.
///
/// # Errors
/// Files that cannot be read, or are no definitions.
pub(crate) fn load(loader: &Loader<'_>, paths: &[String]) -> Result<TransformerConfig> {
    let mut config = TransformerConfig::default();
    for path in paths {
        let bytes = loader.load(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let parse = || -> Result<Value> {
            tiphys_yaml::from_yaml(&text)
                .map_err(|error| Error::new(ErrorKind::MalformedYaml, error.to_string()))
        };
        let definitions = parse().context(|| format!("unable to parse open API definition from '{path}'"))?;
        for (name, definition) in definitions.as_object().into_iter().flatten() {
            let properties = &definition["Schema"]["properties"];
            if ["kind", "apiVersion", "metadata"].iter().all(|field| properties.get(field).is_some()) {
                let kind = name.rsplit('.').next().unwrap_or(name);
                let gvk = Gvk { kind: kind.into(), ..Gvk::default() };
                collect(&mut config, &gvk, &definitions, name, &mut Vec::new());
            }
        }
    }
    config.sort();
    Ok(config)
}

/// Adds the specs of one type, following references into others.
fn collect(
    config: &mut TransformerConfig,
    gvk: &Gvk,
    definitions: &Value,
    name: &str,
    path: &mut Vec<String>,
) {
    if path.len() > MAX_DEPTH {
        return;
    }
    let properties = definitions[name]["Schema"]["properties"].as_object();
    for (field, property) in properties.into_iter().flatten() {
        path.push(field.clone());
        collect_property(config, gvk, property, path);
        if let Some(reference) = property.get("$ref").and_then(Value::as_str) {
            collect(config, gvk, definitions, reference, path);
        }
        path.pop();
    }
}

fn collect_property(config: &mut TransformerConfig, gvk: &Gvk, property: &Value, path: &[String]) {
    let text = |name: &str| property.get(name).and_then(Value::as_str);
    let spec = |path: &[String]| FieldSpec { gvk: gvk.clone(), path: path.join("/"), create: false };
    if text("x-kubernetes-annotation").is_some() {
        config.common_annotations.push(spec(path));
    }
    if text("x-kubernetes-label-selector").is_some() {
        config.common_labels.push(spec(path));
    }
    if text("x-kubernetes-identity").is_some() {
        config.name_prefix.push(spec(path));
    }
    let (version, kind) = (text("x-kubernetes-object-ref-api-version"), text("x-kubernetes-object-ref-kind"));
    if let (Some(version), Some(kind)) = (version, kind) {
        let key = text("x-kubernetes-object-ref-name-key").unwrap_or("name");
        let mut below = path.to_vec();
        below.push(key.to_owned());
        let gvk = Gvk { version: version.into(), kind: kind.into(), ..Gvk::default() };
        let reference = NameReference { gvk, field_specs: vec![spec(&below)] };
        // Specs from one file never disagree on `create`.
        let _ = config.add_name_reference(&reference);
    }
}
