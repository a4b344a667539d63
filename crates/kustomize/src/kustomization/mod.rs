//! Kustomization files: reading, checking, older spellings.

pub(crate) mod go_json;
pub(crate) mod legacy;
pub(crate) mod model;
pub(crate) mod types;

use std::sync::Arc;

use serde_json::Value;
use tiphys_value::{FieldPath, Location, Segment};

use crate::error::{Error, ErrorKind, Result};
use go_json::{Misfit, Mode, conform};
pub(crate) use model::Kustomization;

/// `kind` of kustomizations.
pub(crate) const KIND: &str = "Kustomization";
/// `kind` of components.
pub(crate) const COMPONENT: &str = "Component";

/// The `apiVersion` that goes with a kind.
pub(crate) fn api_version_of(kind: &str) -> &'static str {
    if kind == COMPONENT { "kustomize.config.k8s.io/v1alpha1" } else { "kustomize.config.k8s.io/v1beta1" }
}

/// A kustomization file with its text, for places in it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Path in the tree.
    pub file: Arc<str>,
    /// Whether the file sets nothing.
    pub is_empty: bool,
    root: Option<tiphys_yaml::Node>,
}

impl Source {
    /// Where the value at a path of keys and indices stands; the file, if that is not known.
    pub(crate) fn locate(&self, path: &[&str]) -> Location {
        let segments = path.iter().map(|step| match step.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Key((*step).to_owned()),
        });
        let mut path = FieldPath(segments.collect());
        while let Some(root) = &self.root {
            if let Some((key, value)) = root.spans(&path) {
                let start = key.unwrap_or(value).start;
                return Location::new(self.file.clone(), start.line, start.column);
            }
            match path.parent() {
                Some(parent) => path = parent,
                None => break,
            }
        }
        Location::new(self.file.clone(), 0, 0)
    }
}

/// Reads a kustomization file: its data before older spellings are moved, and its text.
///
/// # Errors
/// Texts that are no YAML, unknown fields, wrong types, in kustomize's words.
pub(crate) fn parse(file: &str, text: &str) -> Result<(Kustomization, Source)> {
    let file: Arc<str> = file.into();
    let value = tiphys_yaml::from_yaml(text).map_err(|error| {
        let place = error.position().map(|at| Location::new(file.clone(), at.line, at.column));
        Error::new(ErrorKind::MalformedYaml, format!("invalid Kustomization: {error}")).located_at(place)
    })?;
    let root = tiphys_yaml::parse_first(text, tiphys_yaml::Profile::Go2).ok().flatten();
    let mut source = Source { file, is_empty: false, root: root.map(|document| document.root) };
    let value = conform(&value, &types::KUSTOMIZATION, Mode::Strict)
        .map_err(|misfit| misfit_error(misfit, &source))?;
    source.is_empty = is_empty(&value);
    Ok((from_conformed(&value)?, source))
}

fn misfit_error(misfit: Misfit, source: &Source) -> Error {
    let path: Vec<&str> = misfit.path.iter().map(String::as_str).collect();
    let error = Error::new(ErrorKind::Kustomization, format!("invalid Kustomization: {}", misfit.message))
        .located_at(Some(source.locate(&path)));
    match misfit.advice() {
        Some(advice) => error.advise(advice),
        None => error,
    }
}

/// Reads data that passed [`conform`].
pub(crate) fn from_conformed<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
    serde_json::from_value(value.clone())
        .map_err(|error| Error::new(ErrorKind::Kustomization, format!("invalid Kustomization: {error}")))
}

/// Whether a file sets nothing (`CheckEmpty`): moved lists do not count while they are empty.
fn is_empty(value: &Value) -> bool {
    let moved = |key: &str| matches!(key, "bases" | "imageTags" | "helmChartInflationGenerator");
    let sets = |(key, value): (&String, &Value)| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !(moved(key) && items.is_empty()),
        _ => true,
    };
    !value.as_object().is_some_and(|map| {
        map.iter().filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion")).any(sets)
    })
}

/// Checks kind and `apiVersion` (`EnforceFields`).
pub(crate) fn field_errors(k: &Kustomization) -> Vec<String> {
    let mut errors = Vec::new();
    if k.kind != KIND && k.kind != COMPONENT {
        errors.push(format!("kind should be {KIND} or {COMPONENT}"));
    }
    let wanted = api_version_of(&k.kind);
    if k.api_version != wanted {
        errors.push(format!("apiVersion for {} should be {wanted}", k.kind));
    }
    errors
}
