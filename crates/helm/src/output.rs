//! What a rendering yields.

use std::{
    fmt,
    ops::{Deref, Range},
    sync::{Arc, OnceLock},
};

use tiphys_value::{Budget, Location, Origins, OverBudget, RenderedObject, Value, origin_bytes};
use tiphys_yaml::ErrorKind;

use crate::origins::{self, Trace};

/// When a hook runs (`helm.sh/hook`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// `pre-install`.
    PreInstall,
    /// `post-install`.
    PostInstall,
    /// `pre-delete`.
    PreDelete,
    /// `post-delete`.
    PostDelete,
    /// `pre-upgrade`.
    PreUpgrade,
    /// `post-upgrade`.
    PostUpgrade,
    /// `pre-rollback`.
    PreRollback,
    /// `post-rollback`.
    PostRollback,
    /// `test`, also `test-success`.
    Test,
}

impl HookEvent {
    /// The event that a word of the annotation means, in lower case.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "pre-install" => Self::PreInstall,
            "post-install" => Self::PostInstall,
            "pre-delete" => Self::PreDelete,
            "post-delete" => Self::PostDelete,
            "pre-upgrade" => Self::PreUpgrade,
            "post-upgrade" => Self::PostUpgrade,
            "pre-rollback" => Self::PreRollback,
            "post-rollback" => Self::PostRollback,
            "test" | "test-success" => Self::Test,
            _ => return None,
        })
    }
}

/// The text of a document: a part of what a template rendered to, which its other documents hold, too.
#[derive(Clone, Debug)]
pub struct DocumentText {
    file: Arc<String>,
    part: Range<usize>,
}

impl DocumentText {
    /// A part of a file.
    pub(crate) fn new(file: &Arc<String>, part: Range<usize>) -> Self {
        Self { file: file.clone(), part }
    }
}

impl From<String> for DocumentText {
    fn from(text: String) -> Self {
        let part = 0..text.len();
        Self { file: Arc::new(text), part }
    }
}

impl Deref for DocumentText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.file[self.part.clone()]
    }
}

impl fmt::Display for DocumentText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// One document that a template rendered to.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Path of the template as in `# Source:`.
    pub path: String,
    /// The text of the document, as Helm prints it.
    pub content: DocumentText,
    /// `kind` of the document, or empty.
    pub kind: String,
    /// The document as data, once somebody has asked for it.
    pub(crate) value: OnceLock<Value>,
}

impl Manifest {
    /// The document as data; null if it holds only comments.
    pub fn value(&self) -> &Value {
        // It was read before, without being kept: it is YAML.
        self.value.get_or_init(|| tiphys_yaml::from_yaml(&self.printed()).unwrap_or_default())
    }

    /// As [`Self::value`], within a budget that other documents share.
    fn value_within(&self, budget: &Budget) -> Result<&Value, OverBudget> {
        if let Some(value) = self.value.get() {
            budget.charge_value(value)?;
            return Ok(value);
        }
        let before = budget.remaining_bytes();
        match tiphys_yaml::from_yaml_within(&self.printed(), budget) {
            Err(error) if error.kind() == ErrorKind::Budget => Err(OverBudget { limit: before }),
            read => Ok(self.value.get_or_init(|| read.unwrap_or_default())),
        }
    }

    /// Where the document starts in the text of its rendered file.
    pub(crate) fn offset(&self) -> usize {
        self.content.part.start
    }

    /// The text with the line break behind it that Helm prints: a block scalar at the end takes it in.
    fn printed(&self) -> String {
        format!("{}\n", self.content)
    }
}

/// A document that is a hook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The document.
    pub manifest: Manifest,
    /// When it runs.
    pub events: Vec<HookEvent>,
    /// `helm.sh/hook-weight`, 0 if absent or no number.
    pub weight: i64,
}

/// What a rendering yields.
#[derive(Debug, Default)]
pub struct TemplateOutput {
    /// What `helm template` writes to standard output, byte for byte.
    pub stdout: String,
    /// What Helm logs to standard error, one line each.
    pub warnings: Vec<String>,
    /// Files of `crds/` folders if CRDs are included, chart before subcharts.
    pub crds: Vec<Manifest>,
    /// Documents that are no hooks, in install order.
    pub manifests: Vec<Manifest>,
    /// Documents that are hooks, in the order in which Helm prints them.
    pub hooks: Vec<Hook>,
    /// The rendered `NOTES.txt` of the chart.
    pub notes: String,
    pub(crate) trace: Option<Trace>,
}

impl TemplateOutput {
    /// The objects that were rendered (CRDs if included, manifests, hooks), with their origins if
    /// they were asked for. `List` kinds are not taken apart.
    pub fn objects(&self) -> Vec<RenderedObject> {
        self.objects_within(&Budget::new(u64::MAX)).unwrap_or_default()
    }

    /// As [`Self::objects`], within a budget that others may share.
    ///
    /// # Errors
    /// They take more memory.
    pub fn objects_within(&self, budget: &Budget) -> Result<Vec<RenderedObject>, OverBudget> {
        let mut objects = Vec::new();
        for file in &self.crds {
            for object in crd_objects(file) {
                budget.charge_value(&object.value)?;
                objects.push(object);
            }
        }
        for manifest in self.manifests.iter().chain(self.hooks.iter().map(|hook| &hook.manifest)) {
            let value = manifest.value_within(budget)?;
            if self.trace.is_some() {
                budget.take(origin_bytes(value))?;
            }
            if value.is_object() {
                objects.push(origins::object(manifest, self.trace.as_ref()));
            }
        }
        Ok(objects)
    }
}

/// The objects of a file in `crds/`, which may hold several documents.
fn crd_objects(file: &Manifest) -> Vec<RenderedObject> {
    let printed = file.printed();
    tiphys_yaml::split_kubernetes_documents(&printed)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(offset, text)| {
            let value = tiphys_yaml::from_yaml(text).ok().filter(Value::is_object)?;
            let line = printed[..offset].matches('\n').count() + 1;
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            let location = Location::new(file.path.as_str(), line, 1);
            Some(RenderedObject { value, location, origins: Origins::default() })
        })
        .collect()
}
