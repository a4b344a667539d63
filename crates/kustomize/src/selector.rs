//! Choosing objects: anchored regular expressions, label and annotation selectors.

use tiphys_gocompat::regex::Regex;

use crate::{
    error::{Error, Result},
    kustomization::model::Selector,
    label_selector::LabelSelector,
    resid::{Gvk, ResId},
    resource::Resource,
    resource_map::ResourceMap,
};

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = ResId {
            gvk: self.gvk.clone(),
            name: self.name.as_str().into(),
            namespace: self.namespace.as_str().into(),
            cluster_scoped: false,
        };
        write!(f, "{id}:a={}:l={}", self.annotation_selector, self.label_selector)
    }
}

/// A part of a selector.
#[derive(Clone, Debug)]
enum Pattern {
    Any,
    /// Text without anything special in it.
    Literal(String),
    Regex(Regex),
}

impl Pattern {
    fn new(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::Any);
        }
        if text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/')) {
            return Ok(Self::Literal(text.to_owned()));
        }
        let regex = Regex::compile(&format!("^(?:{text})$"));
        regex.map(Self::Regex).map_err(|error| Error::transform(error.to_string()))
    }

    fn matches_text(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Literal(literal) => literal == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// A regular expression as the text that it most likely stands for, for comparisons with names.
pub(crate) fn plain_text(pattern: &str) -> String {
    pattern.trim_start_matches('^').trim_end_matches('$').replace(".*", "").replace('\\', "")
}

/// A [`Selector`] ready to be used.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
    labels: Metadata,
    annotations: Metadata,
}

/// A selector of labels or annotations; one that is none fails once an object is held against it.
#[derive(Clone, Debug)]
struct Metadata {
    field: &'static str,
    selector: Result<LabelSelector, String>,
    is_empty: bool,
}

impl Metadata {
    fn new(field: &'static str, text: &str) -> Self {
        Self { field, selector: LabelSelector::parse(text), is_empty: text.is_empty() }
    }

    fn matches(&self, resource: &Resource) -> Result<bool> {
        if self.is_empty {
            return Ok(true);
        }
        let selector = self.selector.as_ref().map_err(Error::transform)?;
        Ok(selector.matches(&resource.node.metadata_map(self.field)))
    }
}

impl Matcher {
    /// Compiles a selector.
    ///
    /// # Errors
    /// Texts that are no regular expression.
    pub(crate) fn new(selector: &Selector) -> Result<Self> {
        let gvk = &selector.gvk;
        Ok(Self {
            group: Pattern::new(&gvk.group)?,
            version: Pattern::new(&gvk.version)?,
            kind: Pattern::new(&gvk.kind)?,
            name: Pattern::new(&selector.name)?,
            namespace: Pattern::new(&selector.namespace)?,
            labels: Metadata::new("labels", &selector.label_selector),
            annotations: Metadata::new("annotations", &selector.annotation_selector),
        })
    }

    /// Whether group, version and kind fit.
    pub(crate) fn fits_kind(&self, gvk: &Gvk) -> bool {
        self.group.matches_text(&gvk.group)
            && self.version.matches_text(&gvk.version)
            && self.kind.matches_text(&gvk.kind)
    }

    /// Whether an id fits, its namespace as it is written.
    pub(crate) fn fits_id(&self, gvk: &Gvk, name: &str, namespace: &str) -> bool {
        self.fits_kind(gvk) && self.name.matches_text(name) && self.namespace.matches_text(namespace)
    }

    /// Whether annotations and labels fit.
    ///
    /// # Errors
    /// A selector that is none.
    pub(crate) fn fits_metadata(&self, resource: &Resource) -> Result<bool> {
        Ok(self.annotations.matches(resource)? & self.labels.matches(resource)?)
    }

    /// Whether there are label or annotation selectors.
    pub(crate) fn has_metadata(&self) -> bool {
        !self.labels.is_empty || !self.annotations.is_empty
    }

    /// For each object whether it is selected, by its first or its current name and namespace (`Select`).
    ///
    /// # Errors
    /// A label or annotation selector that is none, if it comes to that.
    pub(crate) fn select(&self, objects: &ResourceMap) -> Result<Vec<bool>> {
        objects.list.iter().map(|resource| self.selects(resource)).collect()
    }

    fn selects(&self, resource: &Resource) -> Result<bool> {
        if !self.fits_kind(&resource.gvk()) {
            return Ok(false);
        }
        let earlier = resource.earlier.first();
        let name = resource.node.name();
        let first_name = earlier.map_or(name, |earlier| earlier.name.as_str());
        if !self.name.matches_text(first_name) && !self.name.matches_text(name) {
            return Ok(false);
        }
        let namespace_fits = match &self.namespace {
            Pattern::Any => true,
            pattern => {
                let original = resource.original_id();
                pattern.matches_text(original.effective_namespace())
                    || pattern.matches_text(resource.effective_namespace())
            }
        };
        Ok(namespace_fits && self.labels.matches(resource)? && self.annotations.matches(resource)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_anchored() {
        assert!(Pattern::new("web").unwrap().matches_text("web"));
        assert!(!Pattern::new("web").unwrap().matches_text("web-2"));
        assert!(Pattern::new("web.*|api").unwrap().matches_text("web-2"));
        assert!(!Pattern::new("a|b").unwrap().matches_text("ab"));
    }
}
