//! The set of field specs of a kustomization: the defaults, its `configurations` and `crds`, and
//! those of what it includes.

use std::sync::Arc;

use serde::Deserialize;

use super::defaults;
use crate::{kustomization::model::FieldSpec, resid::Gvk};

/// A kind, and where others refer to it by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NameReference {
    #[serde(flatten)]
    pub gvk: Gvk,
    pub field_specs: Vec<FieldSpec>,
}

/// Where each builtin transformer writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TransformerConfig {
    pub name_prefix: Vec<FieldSpec>,
    pub name_suffix: Vec<FieldSpec>,
    pub namespace: Vec<FieldSpec>,
    pub common_labels: Vec<FieldSpec>,
    pub labels: Vec<FieldSpec>,
    pub template_labels: Vec<FieldSpec>,
    pub common_annotations: Vec<FieldSpec>,
    pub name_reference: Vec<NameReference>,
    pub var_reference: Vec<FieldSpec>,
    pub images: Vec<FieldSpec>,
    pub replicas: Vec<FieldSpec>,
}

impl TransformerConfig {
    /// Kustomize's defaults.
    pub(crate) fn defaults() -> Arc<Self> {
        defaults::config()
    }

    /// The union with another set.
    ///
    /// # Errors
    /// A spec that both have with different `create`.
    pub(crate) fn merge(self: &Arc<Self>, other: &Arc<Self>) -> Result<Arc<Self>, String> {
        if Arc::ptr_eq(self, other) || **other == Self::default() {
            return Ok(self.clone());
        }
        // Merging into nothing is not without effect: of two specs with one path the general one, which
        // sorts last, is taken for covered by the special one. The defaults have no such pairs.
        if **self == Self::default() && Arc::ptr_eq(other, &defaults::config()) {
            return Ok(other.clone());
        }
        let mut merged = (**self).clone();
        for ((name, specs), (_, others)) in merged.lists_mut().into_iter().zip(other.lists()) {
            merge_specs(specs, others)
                .map_err(|error| format!("failed to merge {name} fieldSpec: {error}"))?;
        }
        for reference in &other.name_reference {
            merged
                .add_name_reference(reference)
                .map_err(|error| format!("failed to merge NameReference fieldSpec: {error}"))?;
        }
        merged.sort();
        Ok(Arc::new(merged))
    }

    /// Adds where a kind is referred to.
    ///
    /// # Errors
    /// As [`Self::merge`].
    pub(crate) fn add_name_reference(&mut self, reference: &NameReference) -> Result<(), String> {
        match self.name_reference.iter_mut().find(|known| known.gvk == reference.gvk) {
            Some(known) => merge_specs(&mut known.field_specs, &reference.field_specs),
            None => {
                self.name_reference.push(reference.clone());
                Ok(())
            }
        }
    }

    fn lists_mut(&mut self) -> [(&'static str, &mut Vec<FieldSpec>); 10] {
        [
            ("NamePrefix", &mut self.name_prefix),
            ("NameSuffix", &mut self.name_suffix),
            ("NameSpace", &mut self.namespace),
            ("CommonAnnotations", &mut self.common_annotations),
            ("CommonLabels", &mut self.common_labels),
            ("Labels", &mut self.labels),
            ("TemplateLabels", &mut self.template_labels),
            ("VarReference", &mut self.var_reference),
            ("Images", &mut self.images),
            ("Replicas", &mut self.replicas),
        ]
    }

    fn lists(&self) -> [(&'static str, &[FieldSpec]); 10] {
        [
            ("NamePrefix", &self.name_prefix),
            ("NameSuffix", &self.name_suffix),
            ("NameSpace", &self.namespace),
            ("CommonAnnotations", &self.common_annotations),
            ("CommonLabels", &self.common_labels),
            ("Labels", &self.labels),
            ("TemplateLabels", &self.template_labels),
            ("VarReference", &self.var_reference),
            ("Images", &self.images),
            ("Replicas", &self.replicas),
        ]
    }

    /// Sorts all lists by kind, as kustomize does before use.
    pub(crate) fn sort(&mut self) {
        for (_, specs) in self.lists_mut() {
            specs.sort_by(|a, b| a.gvk.compare(&b.gvk));
        }
        self.name_reference.sort_by(|a, b| a.gvk.compare(&b.gvk));
    }
}

/// Adds specs that are not covered yet.
///
/// # Errors
/// One that is covered, with another `create`.
pub(crate) fn merge_specs(specs: &mut Vec<FieldSpec>, others: &[FieldSpec]) -> Result<(), String> {
    for other in others {
        match specs.iter().find(|known| covers(known, other)) {
            Some(known) if known.create != other.create => return Err("conflicting fieldspecs".to_owned()),
            Some(_) => {}
            None => specs.push(other.clone()),
        }
    }
    Ok(())
}

/// Whether a known spec stands for another: same path, and its kind is one that the other selects.
fn covers(known: &FieldSpec, other: &FieldSpec) -> bool {
    known.path == other.path && known.gvk.is_selected_by(&other.gvk)
}
