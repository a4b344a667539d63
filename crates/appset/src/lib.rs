//! ApplicationSets: from generators and a template to Applications, and from those to a plan of changes
//! (Argo CD docs, "ApplicationSet"). Pure: clusters, repositories and plugins are asked through [`Inputs`].
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod combine;
mod generator;
mod git;
mod limits;
mod normalize;
mod owner;
mod params;
mod plan;
mod preview;
mod render;
mod rollout;
mod selector;
mod template;

use std::{collections::BTreeMap, sync::Arc};

pub use generator::GENERATOR_KINDS;
pub use owner::{is_owned_by, owner_of, owner_reference};
pub use plan::{Brake, Plan, Policy, Update, plan};
pub use preview::{Deleted, Preview, preview};
use render::Renderer;
pub use rollout::{AppRollout, Rollout, is_rolling, removal_order, roll};
pub use selector::{check_selector, selects, selects_nothing};
use serde_json::{Value, json};
use tiphys_gotemplate::{Map, Numbers};
use tiphys_model::names;
use tiphys_value::ObjectExt;

/// One set of parameters.
pub type Params = serde_json::Map<String, Value>;

/// A field of an object of the cluster as Go prints it: what such an object says of a cluster is handed to
/// templates as text.
pub fn print_field(value: &Value) -> String {
    params::text_of(&tiphys_gotemplate::Value::from_json(value, Numbers::AsStored))
}

/// A cluster that the engine knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterInfo {
    /// Name.
    pub name: String,
    /// Address.
    pub server: String,
    /// Project, may be empty.
    pub project: String,
    /// Labels of its Secret; the cluster the engine runs in may have none.
    pub labels: BTreeMap<String, String>,
    /// Annotations of its Secret.
    pub annotations: BTreeMap<String, String>,
    /// It is declared by a Secret, not implied.
    pub declared: bool,
}

/// The files of a repository at a revision.
pub trait GitFiles {
    /// Paths of all files, relative to the root, in order.
    fn files(&self) -> Vec<String>;
    /// The text of a file.
    ///
    /// # Errors
    /// It cannot be read, or is no text.
    fn read(&self, path: &str) -> Result<String, String>;
}

/// What generators ask for.
pub trait Inputs {
    /// All clusters.
    ///
    /// # Errors
    /// They cannot be listed.
    fn clusters(&self) -> Result<Vec<ClusterInfo>, String>;
    /// A repository at a revision.
    ///
    /// # Errors
    /// It cannot be read.
    fn git(&self, repo_url: &str, revision: &str) -> Result<Arc<dyn GitFiles>, String>;
    /// Whether patterns of files are those of the newer kind (Argo CD documentation, "Git File Generator
    /// Globbing").
    fn has_new_file_globbing(&self) -> bool {
        false
    }
    /// Whether patterns of directories may mean hidden ones, whose names begin with a dot.
    fn sees_hidden_directories(&self) -> bool {
        false
    }
    /// The entries of the status list of a placement decision; the generator is handed over as it is.
    ///
    /// # Errors
    /// It cannot be read.
    fn decisions(&self, generator: &Value) -> Result<Vec<Params>, String>;
    /// What a plugin answers; the generator is handed over as it is.
    ///
    /// # Errors
    /// It cannot be asked, or is not allowed.
    fn plugin(&self, generator: &Value) -> Result<Vec<Params>, String>;
    /// What a generator yields that asks a host of repositories: `scmProvider` and `pullRequest`.
    ///
    /// # Errors
    /// Nobody can ask it here.
    fn hosted(&self, kind: &str, generator: &Value) -> Result<Vec<Params>, String> {
        let _ = generator;
        Err(format!("generator {kind} is not supported"))
    }
}

/// Why an ApplicationSet yields nothing. Its Applications are then left as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// A generator failed.
    #[error("error generating params from generator {at}: {message}")]
    Generator {
        /// Which one, such as `spec.generators[0].matrix.generators[1]`.
        at: String,
        /// What is wrong.
        message: String,
    },
    /// The template cannot be rendered with a set of parameters.
    #[error("error rendering the template: {0}")]
    Template(String),
}

/// One Application of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// The Application, without an owner reference.
    pub application: Value,
    /// Why it cannot be used: a name that another one has too, no name.
    pub fault: Option<String>,
}

/// The Applications that an ApplicationSet yields, in the order of its generators.
///
/// # Errors
/// A generator or the template fails.
pub fn generate(set: &Value, inputs: &dyn Inputs) -> Result<Vec<Generated>, GenerateError> {
    let renderer = Renderer::for_set(set);
    let template = set.at(&["spec", "template"]).cloned().unwrap_or_default();
    let generators = match set.at(&["spec", "generators"]) {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(generators)) => generators,
        Some(_) => {
            let message = "it has to be a list".to_owned();
            return Err(GenerateError::Generator { at: "spec.generators".to_owned(), message });
        }
    };
    let mut out = Vec::new();
    template::check_types(&template).map_err(|error| GenerateError::Template(format!("template.{error}")))?;
    for (index, generator) in generators.iter().enumerate() {
        let at = format!("spec.generators[{index}]");
        for yielded in generator::all(generator, &at, &renderer, inputs)? {
            let template = template::merge_override(&template, generator, yielded.kind);
            template::check_types(&template)
                .map_err(|error| GenerateError::Template(format!("{at}: {error}")))?;
            for params in yielded.sets {
                let application = application(set, &template, &params, &renderer)?;
                renderer.account().count_application(&application).map_err(GenerateError::Template)?;
                out.push(Generated { application, fault: None });
            }
        }
    }
    mark_faults(set.name(), &mut out);
    Ok(out)
}

fn application(
    set: &Value,
    template: &Value,
    params: &Map,
    renderer: &Renderer,
) -> Result<Value, GenerateError> {
    // Without parameters, a template is taken as it is.
    let rendered = if params.is_empty() {
        template.clone()
    } else {
        renderer.value(template, params).map_err(GenerateError::Template)?
    };
    let part = |name: &str| rendered.get(name).filter(|part| !part.is_null()).cloned();
    let mut app = json!({"apiVersion": names::API_VERSION, "kind": "Application",
        "metadata": part("metadata").unwrap_or_else(|| json!({})),
        "spec": part("spec").unwrap_or_else(|| json!({}))});
    let preserved =
        set.at(&["spec", "syncPolicy", "preserveResourcesOnDeletion"]) == Some(&Value::Bool(true));
    let given = app.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    if !given && !preserved && !params.is_empty() {
        app["metadata"]["finalizers"] = json!([names::RESOURCES_FINALIZER]);
    }
    if let Some(patch) = set.str_at(&["spec", "templatePatch"]) {
        let text = renderer.text(patch, params).map_err(|error| {
            GenerateError::Template(format!("error replacing values in templatePatch: {error}"))
        })?;
        app = template::apply_patch(&app, &text).map_err(GenerateError::Template)?;
    }
    app["metadata"]["namespace"] = set.namespace().into();
    Ok(app)
}

fn mark_faults(set: &str, generated: &mut [Generated]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for one in generated.iter() {
        *seen.entry(one.application.name().to_owned()).or_default() += 1;
    }
    for one in generated.iter_mut() {
        let name = one.application.name();
        if name.is_empty() {
            one.fault = Some(format!(
                "ApplicationSet {set} contains an application with no name; a name must be set in the template's metadata.name or via a templatePatch (generateName is not supported)"
            ));
        } else if seen.get(name).is_some_and(|count| *count > 1) {
            one.fault =
                Some(format!("ApplicationSet {set} contains applications with duplicate name: {name}"));
        }
    }
}
