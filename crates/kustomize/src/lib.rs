//! Kustomizations built as `kustomize build` builds them: same bytes, same errors, and the origin
//! of every field. Pure over a [`FileTree`]; remote bases and charts come through injected traits.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod context;
mod crds;
mod error;
mod fields;
mod functions;
mod generate;
mod json_patch;
mod kustomization;
mod label_selector;
mod loader;
mod merge;
mod meter;
mod name_advice;
mod node;
mod options;
mod origins;
mod overlay;
mod plugins;
mod provenance;
mod reader;
mod references;
mod repo_url;
mod resid;
mod resource;
mod resource_map;
mod schema;
mod selector;
mod similar_files;
mod suggest;
mod target;
mod transform;
mod vars;

use tiphys_value::RenderedObject;
use tiphys_vfs::FileTree;

pub use error::{Error, ErrorKind, Result};
pub use functions::{FunctionCall, FunctionOutput, FunctionProgram, FunctionRunner};
pub use options::{
    BuildOptions, ChartInflator, ChartRequest, Limits, LoadRestrictor, Overlay, RemoteError, RemoteLoader,
    Reorder,
};
pub use repo_url::RepoUrl;
pub use schema::{SchemaError, Schemas};
pub use target::FILE_NAMES;

/// A finished build.
#[derive(Clone, Debug)]
pub struct Build {
    objects: Vec<RenderedObject>,
    warnings: Vec<String>,
}

/// Builds the kustomization in the folder `dir` of `tree`.
///
/// # Errors
/// With kustomize's text, the place of the fault and advice.
pub fn build(tree: &dyn FileTree, dir: &str, options: &BuildOptions) -> Result<Build> {
    let mut warnings = Vec::new();
    let built = build_with_warnings(tree, dir, options, &mut warnings);
    built.map(|built| Build { warnings, ..built })
}

/// As [`build`], but the warnings go to `warnings`, also if it fails.
///
/// # Errors
/// As [`build`].
pub fn build_with_warnings(
    tree: &dyn FileTree,
    dir: &str,
    options: &BuildOptions,
    warnings: &mut Vec<String>,
) -> Result<Build> {
    let mut context = context::Context::new(options);
    let built = target::build(tree, dir, options, &mut context);
    warnings.append(&mut context.warnings);
    let objects = built?.list;
    for resource in &objects {
        // What objects share in memory, everyone has of his own when it is printed.
        let counted = context.meter.take_node(&resource.node, 0);
        counted.map_err(|message| {
            Error::new(ErrorKind::Limit, message).located_at(Some(resource.location.clone()))
        })?;
    }
    let finish = |resource: resource::Resource| {
        let value = printed(&resource.node).map_err(|message| {
            Error::new(ErrorKind::MalformedYaml, message).located_at(Some(resource.location.clone()))
        })?;
        Ok(RenderedObject {
            value,
            origins: context.tracker.origins(&resource.node),
            location: resource.location,
        })
    };
    let objects = objects.into_iter().map(finish).collect::<Result<_>>()?;
    Ok(Build { objects, warnings: Vec::new() })
}

/// The value of an object as it is printed, by way of JSON.
fn printed(node: &node::Node) -> std::result::Result<serde_json::Value, String> {
    // Without a map there is none to show.
    let shown = |message: &str| match message.starts_with("json: ") {
        true => node::go_syntax(node),
        false => "map[string]interface {}(nil)".to_owned(),
    };
    let value = node::to_json(node).map_err(|message| format!("{}: {message}", shown(&message)))?;
    tiphys_yaml::through_json(value).map_err(|error| format!("{}: {error}", node::go_syntax(node)))
}

impl Build {
    /// The output of `kustomize build`, byte for byte.
    pub fn to_yaml(&self) -> String {
        let documents: Vec<_> = self.objects.iter().map(|o| tiphys_yaml::to_yaml(&o.value)).collect();
        documents.join("---\n")
    }

    /// The objects in the order of the output.
    pub fn objects(&self) -> &[RenderedObject] {
        &self.objects
    }

    /// The objects, taken.
    pub fn into_objects(self) -> Vec<RenderedObject> {
        self.objects
    }

    /// What kustomize prints on stderr beside a successful build (deprecated fields).
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
