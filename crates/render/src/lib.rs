//! One Application to the objects that it wants, each field with its origin. Pure over file trees:
//! repositories, charts and what the cluster serves are passed in.
//!
//! The order of effects is Argo CD's (`ARCHITECTURE.md`, "Rendering"): per source the overrides of
//! `.argocd-source*.yaml`, the choice of the tool, the tool, the expansion of lists; then the sources
//! one after the other, namespaces, tracking.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod budget;
mod build_flags;
mod charts;
mod directory;
mod env;
mod error;
mod helm;
mod jsonnet;
mod kustomize;
mod lfs;
pub mod manifest;
mod out_of_reach;
mod overrides;
mod plugin;
mod postprocess;
mod secret_masking;
mod sources;
mod tool;

use std::collections::BTreeMap;

use tiphys_model::{Application, ApplicationSource, SourceType, Timestamp, Tracking};
use tiphys_value::{GroupVersionKind, RenderedObject};
use tiphys_vfs::EntryKind;

pub use budget::object_bytes;
pub use charts::HelmCharts;
pub use error::{Cause, RenderError, Subject};
pub use jsonnet::{EVALUATOR, container_memory, evaluate_in, serve_evaluator};
pub use out_of_reach::{OutOfReach, out_of_reach};
pub use plugin::Plugins;
pub use secret_masking::mask_secrets;
pub use sources::{SourceTree, Sources, open_source};

use budget::ObjectBudget;
use env::BuildEnv;
use sources::SourceSet;

/// What rendering is told of the world.
pub struct Context<'a> {
    /// Serves repositories and charts.
    pub sources: &'a dyn Sources,
    /// Version of the destination cluster, such as `v1.36.1`.
    pub kube_version: &'a str,
    /// What the destination cluster serves, for charts; empty leaves Helm's own list.
    pub api_versions: &'a [String],
    /// How objects are marked as the Application's.
    pub tracking: &'a Tracking,
    /// Namespace of the engine: Applications in it are called by name alone.
    pub engine_namespace: &'a str,
    /// Whether a kind lives in namespaces, where that is known.
    pub is_namespaced: &'a dyn Fn(&GroupVersionKind) -> Option<bool>,
    /// Whether to find out where every field came from.
    pub origins: bool,
    /// Whether keys and hashes of passwords only have to be of the right form, because nobody is going to
    /// apply the objects.
    pub mock_secrets: bool,
    /// The time that charts of an Application see which no cluster has created yet; `None` for the machine's
    /// clock.
    pub now: Option<Timestamp>,
}

/// What became of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedSource {
    /// The revision that the source was read at.
    pub revision: String,
    /// The tool that rendered it; `None` if it is there only to be referred to.
    pub source_type: Option<SourceType>,
    /// Whether the source may say the revision's name in its objects (`$ARGOCD_APP_REVISION`): then another
    /// revision renders to something else though its files are the same.
    pub names_revision: bool,
    /// API versions of the cluster that the source asked for, with the answers, see
    /// [`tiphys_helm::Questions`].
    pub asked_versions: BTreeMap<String, bool>,
}

/// The objects that an Application wants.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// The objects in the order of the sources. One object may occur more than once.
    pub objects: Vec<RenderedObject>,
    /// One entry for each source.
    pub sources: Vec<RenderedSource>,
    /// What is odd but no fault.
    pub warnings: Vec<String>,
}

/// Renders an Application.
///
/// # Errors
/// A source cannot be had, or does not render. The error shows the place where there is one.
pub fn render(app: &Application, context: &Context<'_>) -> Result<Rendered, RenderError> {
    let declared = app.spec.effective_sources();
    if declared.is_empty() {
        return Err(RenderError::new(
            "spec.source and spec.sources are both empty: nothing says where the manifests are",
        ));
    }
    let set = SourceSet::open(&declared, context.sources)?;
    let mut rendered = Rendered::default();
    if let Some(hydrator) = &app.spec.source_hydrator {
        rendered.warnings.push(format!(
            "spec.sourceHydrator: nothing is hydrated; branch {} is taken as whoever hydrates it left it",
            hydrator.sync_source.target_branch
        ));
    }
    let budget = ObjectBudget::new(context.origins);
    for (index, source) in declared.iter().enumerate() {
        let one = render_source(app, source, index, &set, context, &budget)
            .map_err(|error| lfs::explain(error, set.tree(index), &source.path))?;
        rendered.sources.push(RenderedSource {
            revision: set.revision(index).to_owned(),
            source_type: one.source_type,
            names_revision: one.names_revision,
            asked_versions: one.asked_versions,
        });
        rendered.warnings.extend(one.warnings);
        rendered.objects.extend(one.objects);
    }
    postprocess::finish(&mut rendered, app, context)?;
    Ok(rendered)
}

/// The objects of manifests that are given in the place of an Application's sources.
///
/// # Errors
/// A manifest cannot be read. The error names it by its number.
pub fn render_given(
    app: &Application,
    manifests: &[String],
    context: &Context<'_>,
) -> Result<Rendered, RenderError> {
    let mut rendered = Rendered::default();
    let budget = ObjectBudget::new(context.origins);
    for (index, text) in manifests.iter().enumerate() {
        let name = format!("manifest {} of the operation", index + 1);
        let objects = manifest::parse_objects(&name, text, context.origins)?;
        rendered.objects.extend(budget.count(objects, &name)?);
    }
    postprocess::expand_lists(&mut rendered.objects)?;
    postprocess::finish(&mut rendered, app, context)?;
    Ok(rendered)
}

/// What one source yields.
#[derive(Default)]
pub(crate) struct Yield {
    objects: Vec<RenderedObject>,
    warnings: Vec<String>,
    source_type: Option<SourceType>,
    names_revision: bool,
    asked_versions: BTreeMap<String, bool>,
}

/// Everything that rendering one source needs.
pub(crate) struct Job<'a> {
    app: &'a Application,
    /// The source with its overrides.
    source: ApplicationSource,
    index: usize,
    set: &'a SourceSet,
    context: &'a Context<'a>,
    env: BuildEnv,
    budget: &'a ObjectBudget,
}

fn render_source(
    app: &Application,
    declared: &ApplicationSource,
    index: usize,
    set: &SourceSet,
    context: &Context<'_>,
    budget: &ObjectBudget,
) -> Result<Yield, RenderError> {
    if declared.is_reference_only() {
        return Ok(Yield::default());
    }
    let tree = set.tree(index);
    check_path(declared, tree)?;
    let source = overrides::apply(declared, tree.as_ref(), &app.instance_name(context.engine_namespace))?;
    let names_revision = env::names_revision(&source);
    let env = BuildEnv::new(app, &source, set.revision(index), context)?;
    let job = Job { app, source, index, set, context, env, budget };
    if let Some(yielded) = plugin::render(&job)? {
        return Ok(yielded);
    }
    let source_type = tool::choose(&job.source, tree.as_ref(), context.sources)?;
    let mut yielded = match source_type {
        SourceType::Helm => helm::render(&job)?,
        SourceType::Kustomize => kustomize::render(&job)?,
        SourceType::Directory | SourceType::Plugin => directory::render(&job)?,
    };
    yielded.source_type = Some(source_type);
    yielded.names_revision = names_revision;
    postprocess::expand_lists(&mut yielded.objects)?;
    budget.count_objects(yielded.objects.len(), &job.source.path)?;
    Ok(yielded)
}

/// The path of a source must be a folder of its repository.
fn check_path(source: &ApplicationSource, tree: &dyn tiphys_vfs::FileTree) -> Result<(), RenderError> {
    let fail = |why: String| {
        RenderError::new(format!(
            "source path {:?} of repository {} at {}: {why}",
            source.path,
            source.repo_url,
            source.revision_or_head()
        ))
        .caused_by(Cause::Missing)
    };
    match tree.kind(&source.path) {
        Ok(EntryKind::Dir) => Ok(()),
        Ok(EntryKind::File) => Err(fail("it is a file, not a folder".into())),
        Err(error) if error.is_not_found() => {
            Err(fail(format!("there is no such folder{}", folders_beside(tree, &source.path))))
        }
        Err(error) => Err(fail(error.kind.to_string())),
    }
}

/// The folders beside a missing one, to be appended to a message.
fn folders_beside(tree: &dyn tiphys_vfs::FileTree, path: &str) -> String {
    let mut above = tiphys_vfs::normalize(path).unwrap_or_default();
    while let Some(parent) = tiphys_vfs::parent(&above).map(str::to_owned) {
        if let Ok(entries) = tree.read_dir(&parent) {
            let folders: Vec<String> = entries
                .into_iter()
                .filter(|entry| entry.kind == EntryKind::Dir && !entry.name.starts_with('.'))
                .map(|entry| entry.name)
                .take(8)
                .collect();
            let place = if parent.is_empty() { "the root".to_owned() } else { format!("{parent:?}") };
            return if folders.is_empty() {
                String::new()
            } else {
                format!("; {place} has {}", folders.join(", "))
            };
        }
        above = parent;
    }
    String::new()
}
