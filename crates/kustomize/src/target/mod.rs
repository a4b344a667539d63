//! One kustomization: loading it and what it includes, generating, transforming.

mod accumulate;
mod generators;
mod transformers;

use std::sync::Arc;

use tiphys_value::{Location, OriginKind};
use tiphys_vfs::FileTree;

use crate::{
    context::Context,
    error::{Error, ErrorKind, Result},
    fields::TransformerConfig,
    kustomization::{self, Kustomization, Source, legacy},
    loader::Loader,
    node::{Kind, StringMap, kind_error},
    options::{BuildOptions, Overlay},
    overlay,
    provenance::{ORIGIN, Provenance, TRANSFORMATIONS},
    references,
    resource::Resource,
    resource_map::ResourceMap,
    schema::Schemas,
    similar_files,
    transform::{self, Labels, Transformer},
    vars::Vars,
};

/// The names that a kustomization may have in its folder (`kustomize build`,
/// `RecognizedKustomizationFileNames`).
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The version that objects are labelled with when `managedByLabel` is asked for.
const MANAGED_BY: &str = "kustomize-v5.8.1";

/// A kustomization being built.
pub(crate) struct Target<'a> {
    k: Kustomization,
    source: Source,
    file_name: &'static str,
    loader: Loader<'a>,
    provenance: Option<Provenance>,
    /// Namespace for charts, from kustomizations above.
    helm_namespace: String,
}

/// What has been gathered so far.
#[derive(Default)]
pub(crate) struct Accumulator {
    objects: ResourceMap,
    config: Arc<TransformerConfig>,
    vars: Vars,
}

/// Builds the kustomization in a folder.
///
/// # Errors
/// In kustomize's words.
pub(crate) fn build<'a>(
    tree: &'a dyn FileTree,
    dir: &str,
    options: &'a BuildOptions,
    context: &mut Context<'a>,
) -> Result<ResourceMap> {
    let loader = Loader::new(tree, dir, options, context.meter.waited())?;
    let mut target = Target::load(loader, context, options.overlay.as_ref())?;
    target.choose_schemas(context, true)?;
    if !target.k.build_metadata.is_empty() {
        target.provenance = Some(Provenance::default());
    }
    let accumulator = target.accumulate(Accumulator::default(), context)?;
    let Accumulator { mut objects, config, vars } = accumulator;
    transform::add_hashes(&mut objects)?;
    let writer = context.tracker.writer(OriginKind::Transformer, &target.source.file, "name suffix hash");
    transform::finish(&mut objects, context, writer, &Location::new(target.source.file.clone(), 0, 0));
    references::fix(&mut objects, &config.name_reference, context)?;
    vars.resolve(&mut objects, &config.var_reference, context)?;
    drop_local(&mut objects)?;
    transform::sort(&mut objects, target.k.sort_options.as_ref(), options.reorder)?;
    target.finish_metadata(&mut objects, context)?;
    Ok(objects)
}

/// Objects that are only for the build (`config.kubernetes.io/local-config`).
fn drop_local(objects: &mut ResourceMap) -> Result<()> {
    let check = |resource: &Resource| {
        crate::reader::check_metadata(&resource.node, &resource.state_annotations()).map_err(|message| {
            Error::new(ErrorKind::MalformedYaml, message).located_at(Some(resource.location.clone()))
        })
    };
    objects.drop_empties();
    objects.list.iter().try_for_each(check)?;
    objects.list.iter().try_for_each(check_maps)?;
    const LOCAL: &str = "config.kubernetes.io/local-config";
    objects.list.retain(|resource| resource.node.annotation(LOCAL).is_none_or(|value| value == "false"));
    // A replacement or patch may have given two objects one name; kustomize ends with a panic then.
    let list = std::mem::take(&mut objects.list);
    objects.append(list)
}

/// Labels and annotations are mappings; kustomize ends with a panic at a list of them that has no pairs.
fn check_maps(resource: &Resource) -> Result<()> {
    let metadata = resource.node.get("metadata");
    let maps = ["labels", "annotations"].into_iter().filter_map(|field| metadata?.get(field));
    match maps.into_iter().find(|map| map.items().len() % 2 == 1) {
        Some(list) => {
            Err(Error::transform(kind_error(Kind::Map, list)).located_at(Some(resource.location.clone())))
        }
        None => Ok(()),
    }
}

impl<'a> Target<'a> {
    /// Reads the kustomization file of a folder.
    ///
    /// # Errors
    /// None or several files, texts that are no kustomization.
    fn load(loader: Loader<'a>, context: &mut Context<'_>, edits: Option<&Overlay>) -> Result<Self> {
        context.kustomizations += 1;
        let limits = context.options.limits;
        if context.kustomizations > limits.kustomizations || loader.depth() > limits.depth {
            let message = format!(
                "more than {} kustomizations, or {} levels of them",
                limits.kustomizations, limits.depth
            );
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let (file_name, text) = find_file(&loader)?;
        let (mut k, source) = kustomization::parse(&loader.file_name(file_name), &text)?;
        context.warnings.extend(legacy::warnings(&k));
        legacy::fix(&mut k);
        if source.is_empty && edits.is_none_or(Overlay::edits_nothing) {
            return Err(Error::new(ErrorKind::Kustomization, "kustomization.yaml is empty")
                .located_at(Some(source.locate(&[]))));
        }
        let errors = kustomization::field_errors(&k);
        if !errors.is_empty() {
            let message =
                format!("Failed to read kustomization file under {}:\n{}", loader.root(), errors.join("\n"));
            return Err(
                Error::new(ErrorKind::Kustomization, message).located_at(Some(source.locate(&["kind"])))
            );
        }
        if let Some(edits) = edits {
            overlay::apply(edits, &mut k, &loader)?;
        }
        Ok(Self { k, source, file_name, loader, provenance: None, helm_namespace: String::new() })
    }

    /// Lets the kustomization choose the schemas, unless one before it has.
    fn choose_schemas(&self, context: &mut Context<'_>, first: bool) -> Result<()> {
        let invalid = |message: &str| {
            Error::new(ErrorKind::Kustomization, message).located_at(Some(self.source.locate(&["openapi"])))
        };
        let path = self.k.openapi.get("path");
        let bytes = path.map(|path| self.loader.load(path)).transpose()?;
        if context.schemas_chosen && !first {
            return Ok(());
        }
        let version = self.k.openapi.get("version");
        if let Some(bytes) = bytes {
            if version.is_some() {
                return Err(invalid("builtin version and custom schema provided, cannot use both"));
            }
            let text = String::from_utf8_lossy(&bytes);
            let document = tiphys_yaml::from_yaml(&text)
                .map_err(|error| invalid(&format!("invalid schema file: {error}")))?;
            // Below the top kustomize has read its own schemas by then, and keeps them beside the new.
            let read =
                if first { Schemas::from_openapi(&document) } else { context.schemas.extend_from(&document) };
            context.schemas = Arc::new(read.map_err(|error| invalid(&error.to_string()))?);
            context.schemas_chosen = true;
        } else if let Some(version) = version.filter(|version| !version.is_empty()) {
            if version != "v1.21.2" {
                return Err(invalid("the specified OpenAPI version is not built in"));
            }
            context.schemas_chosen = true;
        }
        Ok(())
    }

    /// Where a field of the kustomization stands.
    fn locate(&self, path: &[&str]) -> Location {
        self.source.locate(path)
    }

    /// Labels that name the tool, and the annotations that stay.
    fn finish_metadata(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        let wants = |name: &str| self.k.build_metadata.iter().any(|option| option == name);
        let here = self.locate(&["buildMetadata"]);
        let writer = context.tracker.writer(OriginKind::Transformer, &self.source.file, "buildMetadata");
        if context.options.managed_by_label || wants("managedByLabel") {
            let spec = kustomization::model::FieldSpec {
                path: "metadata/labels".to_owned(),
                create: true,
                ..Default::default()
            };
            let labels =
                StringMap::from([("app.kubernetes.io/managed-by".to_owned(), MANAGED_BY.to_owned())]);
            Labels { labels, specs: vec![spec] }.transform(objects, context)?;
        }
        transform::finish(objects, context, writer, &here);
        let mut dropped = Vec::new();
        if !wants("originAnnotations") {
            dropped.push(ORIGIN);
        }
        if !wants("transformerAnnotations") {
            dropped.push(TRANSFORMATIONS);
        }
        for resource in &mut objects.list {
            resource.clean_annotations(&dropped).map_err(Error::transform)?;
        }
        Ok(())
    }
}

/// The kustomization file of a folder.
fn find_file(loader: &Loader<'_>) -> Result<(&'static str, String)> {
    let found: Vec<_> =
        FILE_NAMES.into_iter().filter_map(|name| Some((name, loader.load_if_present(name)?))).collect();
    match found.as_slice() {
        [(name, bytes)] => match tiphys_yaml::decode_text(bytes) {
            Ok(text) => Ok((*name, text.into_owned())),
            Err(error) => {
                Err(Error::new(ErrorKind::Kustomization, format!("invalid Kustomization: {error}")))
            }
        },
        [] => {
            let text = format!(
                "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory '{}'",
                loader.root()
            );
            let error = Error::new(ErrorKind::Kustomization, text);
            let advice = similar_files::kustomizations(loader.tree(), loader.folder(), &FILE_NAMES);
            Err(advice.into_iter().fold(error, Error::advise))
        }
        _ => Err(Error::new(
            ErrorKind::Kustomization,
            format!("Found multiple kustomization files under: {}\n", loader.root()),
        )),
    }
}
