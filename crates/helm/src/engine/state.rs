//! What one rendering keeps beside the templates.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use tiphys_gotemplate::TemplateSet;
use tiphys_value::Value;

use crate::Compat;

/// The name that Helm gives to the template above all templates.
pub(super) const ROOT: &str = "gotpl";

/// What Go prints for nothing, and Helm removes.
pub(crate) const NO_VALUE: &str = "<no value>";

/// Answers `lookup` from a cluster.
pub trait ClusterLookup: Send + Sync {
    /// The object of that name, or the list if `name` is empty; `None` if there is none, which
    /// templates see as an empty map.
    ///
    /// # Errors
    /// The cluster could not be asked; the text becomes the template's error.
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String>;
}

/// How often a named template may be on the stack, as in Helm.
const MAX_RECURSION: usize = 1000;

/// A text given to `tpl`, and the set of templates that it saw.
type TplKey = (smol_str::SmolStr, usize);

/// State of a rendering, reached by the functions through the executor.
pub(crate) struct RenderState {
    pub(crate) lookup: Option<Arc<dyn ClusterLookup>>,
    /// Which Helm to equal.
    pub(crate) compat: Compat,
    included: RefCell<HashMap<smol_str::SmolStr, usize>>,
    tpl: RefCell<HashMap<TplKey, Arc<TemplateSet>>>,
}

impl RenderState {
    pub(crate) fn new(lookup: Option<Arc<dyn ClusterLookup>>, compat: Compat) -> Self {
        Self { lookup, compat, included: RefCell::default(), tpl: RefCell::default() }
    }

    /// Notes that a template is included.
    ///
    /// # Errors
    /// Helm's text if it is on the stack too often.
    pub(crate) fn enter(&self, name: &smol_str::SmolStr) -> Result<(), String> {
        let mut included = self.included.borrow_mut();
        let count = included.entry(name.clone()).or_default();
        if *count > MAX_RECURSION {
            return Err(format!(
                "rendering template has a nested reference name: {name}: unable to execute template"
            ));
        }
        *count += 1;
        Ok(())
    }

    /// Notes that a template has ended.
    pub(crate) fn leave(&self, name: &str) {
        if let Some(count) = self.included.borrow_mut().get_mut(name) {
            *count = count.saturating_sub(1);
        }
    }

    /// The parsed text of an earlier `tpl`.
    pub(crate) fn parsed_tpl(
        &self,
        text: &smol_str::SmolStr,
        base: &Arc<TemplateSet>,
    ) -> Option<Arc<TemplateSet>> {
        self.tpl.borrow().get(&(text.clone(), Arc::as_ptr(base) as usize)).cloned()
    }

    /// Keeps the parsed text of a `tpl`. The layer holds its base, so that the base's address stays taken.
    pub(crate) fn keep_tpl(&self, text: smol_str::SmolStr, base: &Arc<TemplateSet>, layer: Arc<TemplateSet>) {
        self.tpl.borrow_mut().insert((text, Arc::as_ptr(base) as usize), layer);
    }
}
