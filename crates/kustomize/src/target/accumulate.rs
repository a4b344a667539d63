//! Gathering objects: files, folders with kustomizations, components.

use std::sync::Arc;

use tiphys_value::{Location, OriginKind};

use tiphys_gocompat::strconv::quote;

use super::{Accumulator, Target};
use crate::{
    context::Context,
    crds,
    error::{Context as _, Error, ErrorKind, Result},
    fields::TransformerConfig,
    kustomization::{
        COMPONENT, from_conformed,
        go_json::{Mode, conform},
        types,
    },
    node::Node,
    plugins::in_file,
    provenance::ORIGIN,
    reader::{Text, decoded, read_objects},
    resource::Resource,
};

impl<'a> Target<'a> {
    /// Everything the kustomization makes, added to what is there already if it is a component.
    ///
    /// # Errors
    /// In kustomize's words.
    pub(super) fn accumulate(
        &mut self,
        mut all: Accumulator,
        context: &mut Context<'_>,
    ) -> Result<Accumulator> {
        let resources = std::mem::take(&mut self.k.resources);
        self.add_resources(&mut all, &resources, "resources", context)
            .context(|| "accumulating resources")?;
        let config = self.load_config()?;
        all.config = all.config.merge(&config).map_err(Error::transform)?;
        let from_crds = crds::load(&self.loader, &self.k.crds)
            .context(|| format!("loading CRDs [{}]", self.k.crds.join(" ")))?;
        all.config = all.config.merge(&Arc::new(from_crds)).map_err(Error::transform)?;
        self.run_generators(&mut all, context)?;
        let components = std::mem::take(&mut self.k.components);
        all = self.add_components(all, &components, context).context(|| "accumulating components")?;
        self.run_transformers(&mut all, context)?;
        self.run_validators(&mut all, context)?;
        let vars = self.k.vars.take().unwrap_or_default();
        all.vars
            .add(&vars, &mut all.objects)
            .context(|| format!("merging vars {}", crate::vars::describe_all(&vars)))
            .map_err(|error| error.located_at(Some(self.locate(&["vars"]))))?;
        Ok(all)
    }

    /// The defaults and the files of `configurations`.
    fn load_config(&self) -> Result<Arc<TransformerConfig>> {
        let mut config = TransformerConfig::defaults();
        for path in &self.k.configurations {
            let bytes = self.loader.load(path)?;
            let text = String::from_utf8_lossy(&bytes);
            let place = Some(Location::new(self.loader.file_name(path), 0, 0));
            let value = tiphys_yaml::from_yaml_strict(&text).map_err(|error| {
                Error::new(ErrorKind::MalformedYaml, format!("error converting YAML to JSON: {error}"))
                    .located_at(place.clone())
            })?;
            let value = conform(&value, &types::CONFIGURATION, Mode::LenientStrict).map_err(|misfit| {
                let message = format!("error unmarshaling JSON: while decoding JSON: {}", misfit.message);
                let error = Error::new(ErrorKind::Kustomization, message).located_at(place.clone());
                misfit.advice().into_iter().fold(error, Error::advise)
            })?;
            let mut more: TransformerConfig = from_conformed(&value)?;
            more.sort();
            config = config.merge(&Arc::new(more)).map_err(Error::transform)?;
        }
        Ok(config)
    }

    /// Adds objects of files, and of folders and repositories that are kustomizations.
    pub(super) fn add_resources(
        &mut self,
        all: &mut Accumulator,
        paths: &[String],
        field: &str,
        context: &mut Context<'_>,
    ) -> Result<()> {
        for (index, path) in paths.iter().enumerate() {
            let place = self.locate(&[field, &index.to_string()]);
            let added = self.add_resource(all, path, context);
            if added.as_ref().is_err_and(|error| context.may_skip(error)) {
                continue;
            }
            added.map_err(|error| error.located_at(Some(place)))?;
        }
        Ok(())
    }

    fn add_resource(&mut self, all: &mut Accumulator, path: &str, context: &mut Context<'_>) -> Result<()> {
        let Err(as_file) = self.add_file(all, path, context) else { return Ok(()) };
        if as_file.kind() == ErrorKind::Http {
            return Err(as_file);
        }
        let both = |error: Error| {
            let place = as_file.location().cloned();
            let is_file_fault = !matches!(as_file.kind(), ErrorKind::Load);
            let mut wrapped = error.context(format!("accumulation err='{as_file}'"));
            if is_file_fault {
                wrapped = wrapped.at_first(place);
                wrapped =
                    as_file.advice().iter().fold(wrapped, |error, advice| error.advise(advice.as_str()));
            }
            wrapped
        };
        let below = match self.loader.enter(path) {
            Ok(below) => below,
            Err(error) => {
                let malformed = as_file.to_string().contains("MalformedYAMLError");
                if malformed && error.kind() != ErrorKind::Timeout {
                    return Err(as_file);
                }
                // That a thing is out of reach is the reason, whatever the refusal as a folder says.
                let kind = match as_file.kind() {
                    out_of_reach @ (ErrorKind::Remote | ErrorKind::Restricted) => out_of_reach,
                    _ => error.kind(),
                };
                return Err(both(error).of_kind(kind));
            }
        };
        let from_below = self.build_below(below, path, false, None, context);
        let mut from_below = from_below.map_err(&both)?;
        let root = self.loader.root();
        let merge = || -> Result<()> {
            all.objects.append(std::mem::take(&mut from_below.objects.list))?;
            all.config = all.config.merge(&from_below.config).map_err(Error::transform)?;
            all.vars.merge(std::mem::take(&mut from_below.vars))
        };
        merge_in(merge, &root, path).map_err(&both)
    }

    /// Builds a kustomization that this one names.
    fn build_below(
        &mut self,
        loader: crate::loader::Loader<'a>,
        path: &str,
        is_component: bool,
        parent: Option<Accumulator>,
        context: &mut Context<'_>,
    ) -> Result<Accumulator> {
        let root = loader.root();
        let mut below = Target::load(loader, context, None)
            .context(|| format!("couldn't make target for path '{root}'"))?;
        below.k.build_metadata.clone_from(&self.k.build_metadata);
        below.provenance = self.provenance.as_ref().map(|provenance| provenance.append(path));
        below.helm_namespace =
            if self.k.namespace.is_empty() { self.helm_namespace.clone() } else { self.k.namespace.clone() };
        below.choose_schemas(context, false)?;
        let kind = below.k.kind.as_str();
        if is_component && kind != COMPONENT {
            let message = format!("expected kind '{COMPONENT}' for path '{root}' but got '{kind}'");
            return Err(Error::new(ErrorKind::Kustomization, message)
                .located_at(Some(below.locate(&["kind"])))
                .advise("list it under `resources`, or make it a component"));
        }
        if !is_component && kind == COMPONENT {
            let message = format!("expected kind != '{COMPONENT}' for path '{root}'");
            return Err(Error::new(ErrorKind::Kustomization, message)
                .located_at(Some(below.locate(&["kind"])))
                .advise("list it under `components`"));
        }
        below
            .accumulate(parent.unwrap_or_default(), context)
            .context(|| format!("recursed accumulation of path '{root}'"))
    }

    /// Applies components one after the other to all objects so far.
    fn add_components(
        &mut self,
        mut all: Accumulator,
        paths: &[String],
        context: &mut Context<'_>,
    ) -> Result<Accumulator> {
        for (index, path) in paths.iter().enumerate() {
            let place = self.locate(&["components", &index.to_string()]);
            let below = self.loader.enter(path).map_err(|error| {
                error.reword(|text| format!("loader.New {}", quote(text))).located_at(Some(place.clone()))
            });
            if below.as_ref().is_err_and(|error| context.may_skip(error)) {
                continue;
            }
            let below = below?;
            let merged = self
                .build_below(below, path, true, Some(all), context)
                .and_then(|from_below| self.merge_into_nothing(from_below, path));
            all = merged.map_err(|error| {
                error
                    .reword(|text| format!("accumulateDirectory: {}", quote(text)))
                    .located_at(Some(place.clone()))
            })?;
        }
        Ok(all)
    }

    /// What a component leaves is merged into nothing, which is not without effect: objects are compared
    /// again, and of two field specs with one path the general one is taken for covered by the special one.
    fn merge_into_nothing(&self, from_below: Accumulator, path: &str) -> Result<Accumulator> {
        let mut merged = Accumulator::default();
        let Accumulator { objects, config, vars } = from_below;
        let merge = || -> Result<()> {
            merged.objects.append(objects.list)?;
            merged.config = merged.config.merge(&config).map_err(Error::transform)?;
            merged.vars.merge(vars)
        };
        merge_in(merge, &self.loader.root(), path)?;
        Ok(merged)
    }

    fn add_file(&mut self, all: &mut Accumulator, path: &str, context: &mut Context<'_>) -> Result<()> {
        let objects =
            self.read_file(path, context).context(|| format!("accumulating resources from '{path}'"))?;
        context.check_objects(all.objects.list.len() + objects.len())?;
        all.objects.append(objects).context(|| format!("merging resources from '{path}'"))
    }

    fn read_file(&mut self, path: &str, context: &mut Context<'_>) -> Result<Vec<Resource>> {
        let bytes = self.loader.load(path)?;
        let text = decoded(&bytes).map_err(|error| in_file(error, path))?;
        let file = self.loader.file_name(path);
        let writer = context.tracker.writer(OriginKind::Manifest, &file, "");
        let source = Text { text: &text, file: &file, line_offset: 0, writer };
        let nodes = read_objects(context, source).map_err(|error| in_file(error, path))?;
        let mut objects = crate::resource_map::ResourceMap::default();
        objects.append(nodes.into_iter().map(|node| resource_of(node, &file, context)).collect())?;
        if let Some(provenance) = &self.provenance {
            let text = provenance.append(path).to_text();
            for resource in &mut objects.list {
                let mut annotations = resource.node.metadata_map("annotations");
                annotations.insert(ORIGIN.to_owned(), text.clone());
                resource.node.set_metadata_map("annotations", &annotations).map_err(Error::transform)?;
            }
        }
        Ok(objects.list)
    }
}

fn resource_of(node: Node, file: &str, context: &Context<'_>) -> Resource {
    let location = context.tracker.location(node.origin).unwrap_or_else(|| Location::new(file, 0, 0));
    Resource::new(node, location, &context.schemas)
}

/// Names the folder from which objects could not be merged.
fn merge_in(merge: impl FnOnce() -> Result<()>, root: &str, path: &str) -> Result<()> {
    let shown = crate::provenance::join_clean(if root == "." { "" } else { root }, path);
    merge().context(|| format!("recursed merging from path '{shown}'"))
}
