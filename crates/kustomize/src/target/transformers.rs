//! Running transformers: those of the kustomization's own fields in kustomize's order, then those in
//! files; and validators.

use tiphys_value::{Location, OriginKind, Value};

use super::{Accumulator, Target};
use crate::{
    context::Context,
    error::{Error, Result},
    fields::TransformerConfig,
    functions::function_io::PATHS,
    kustomization::model::{FieldSpec, Label, Patch},
    plugins,
    resource::Resource,
    resource_map::ResourceMap,
    transform::{
        Affix, Affixes, Annotations, Configured, ImageTag, Labels, NamespaceTransformer, PatchText, Replicas,
        SubjectMode, Transformer,
    },
};

impl<'a> Target<'a> {
    /// Runs all transformers; every one is configured before the first runs.
    ///
    /// # Errors
    /// Configurations that do not fit, transformations that fail.
    pub(super) fn run_transformers(
        &mut self,
        all: &mut Accumulator,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let mut transformers = self.own_transformers(&all.config.clone(), context)?;
        let entries = std::mem::take(&mut self.k.transformers);
        if !entries.is_empty() {
            let configs = self.plugin_configs(&entries, "transformers", context)?;
            transformers.extend(plugins::transformers(&configs, &self.loader, context)?);
        }
        transformers.iter().try_for_each(|transformer| transformer.run(&mut all.objects, context))
    }

    /// Runs validators, which are transformers that may change nothing but one label.
    ///
    /// # Errors
    /// As [`Self::run_transformers`], and objects that were changed.
    pub(super) fn run_validators(&mut self, all: &mut Accumulator, context: &mut Context<'_>) -> Result<()> {
        let entries = std::mem::take(&mut self.k.validators);
        if entries.is_empty() {
            return Ok(());
        }
        let configs = self.plugin_configs(&entries, "validators", context)?;
        for validator in plugins::transformers(&configs, &self.loader, context)? {
            let before = all.objects.clone();
            // What validates is not noted at the objects as what changed them.
            let validator = Configured { provenance: None, ..validator };
            validator.run(&mut all.objects, context)?;
            if let Some(change) = difference(&before, &all.objects) {
                let text = format!("validator shouldn't modify the resource map: {change}");
                let error = Error::transform(text).located_at(Some(validator.location));
                return Err(if only_paths_differ(&before, &all.objects) {
                    error.advise("the function changed nothing: kustomize notes paths at what functions return, and takes them for changes; list it under `transformers`")
                } else {
                    error
                });
            }
        }
        Ok(())
    }

    fn own_transformers(
        &mut self,
        config: &TransformerConfig,
        context: &mut Context<'_>,
    ) -> Result<Vec<Configured<'a>>> {
        let mut list = Vec::new();
        self.strategic_patches(&mut list, context)?;
        self.patches(&mut list, context)?;
        if !self.k.namespace.is_empty() {
            let transformer = NamespaceTransformer {
                namespace: self.k.namespace.clone(),
                specs: config.namespace.clone(),
                unset_only: false,
                subjects: SubjectMode::DefaultOnly,
            };
            list.push(self.configure(Box::new(transformer), &["namespace"], "NamespaceTransformer", context));
        }
        let (prefix, suffix) = (self.k.name_prefix.clone(), self.k.name_suffix.clone());
        for (end, text, field, kind, specs) in [
            (Affix::Prefix, prefix, "namePrefix", "PrefixTransformer", &config.name_prefix),
            (Affix::Suffix, suffix, "nameSuffix", "SuffixTransformer", &config.name_suffix),
        ] {
            if !text.is_empty() {
                let transformer = Affixes { end, text, specs: specs.clone() };
                list.push(self.configure(Box::new(transformer), &[field], kind, context));
            }
        }
        self.labels(&mut list, config, context)?;
        if !self.k.common_annotations.is_empty() {
            let transformer = Annotations {
                annotations: self.k.common_annotations.clone(),
                specs: config.common_annotations.clone(),
            };
            list.push(self.configure(
                Box::new(transformer),
                &["commonAnnotations"],
                "AnnotationsTransformer",
                context,
            ));
        }
        self.json_patches(&mut list, context)?;
        self.counts_and_images(&mut list, config, context);
        if !self.k.replacements.is_empty() {
            // The list is written down before it is read again, and empty targets are not written.
            let mut fields = self.k.replacements.clone();
            for field in &mut fields {
                field.targets = field.targets.take().filter(|targets| !targets.is_empty());
            }
            let replacements =
                plugins::load_replacements(&fields, &self.loader, context).map_err(|error| {
                    self.configuring(error, "ReplacementTransformer", "", ("replacements", 0))
                })?;
            list.push(self.configure(
                Box::new(replacements),
                &["replacements"],
                "ReplacementTransformer",
                context,
            ));
        }
        Ok(list)
    }

    fn counts_and_images(
        &mut self,
        list: &mut Vec<Configured<'a>>,
        config: &TransformerConfig,
        context: &mut Context<'_>,
    ) {
        for (index, replica) in self.k.replicas.clone().into_iter().enumerate() {
            let transformer = Replicas { replica, specs: config.replicas.clone() };
            let place = ["replicas", &index.to_string()];
            list.push(self.configure(Box::new(transformer), &place, "ReplicaCountTransformer", context));
        }
        for (index, image) in self.k.images.clone().into_iter().enumerate() {
            let transformer = ImageTag { image, specs: config.images.clone() };
            let place = ["images", &index.to_string()];
            list.push(self.configure(Box::new(transformer), &place, "ImageTagTransformer", context));
        }
    }

    fn configure(
        &self,
        transformer: Box<dyn Transformer + 'a>,
        path: &[&str],
        kind: &str,
        context: &mut Context<'_>,
    ) -> Configured<'a> {
        let writer =
            context.tracker.writer(OriginKind::Transformer, &self.source.file, path.first().unwrap_or(&kind));
        Configured {
            transformer,
            provenance: self.builtin_provenance(kind),
            writer,
            location: self.locate(path),
        }
    }

    /// The text of a patch that stands in the kustomization itself. Block scalars begin on the line
    /// after their key.
    fn inline_patch(&self, text: &str, location: &Location, context: &mut Context<'_>) -> PatchText {
        let writer = context.tracker.writer(OriginKind::Patch, &self.source.file, "");
        PatchText {
            text: text.to_owned(),
            file: self.source.file.to_string(),
            line_offset: location.line,
            writer,
        }
    }

    fn strategic_patches(&mut self, list: &mut Vec<Configured<'a>>, context: &mut Context<'_>) -> Result<()> {
        let entries = self.k.patches_strategic_merge.take().unwrap_or_default();
        if entries.is_empty() {
            return Ok(());
        }
        const FIELD: &str = "patchesStrategicMerge";
        const KIND: &str = "PatchStrategicMergeTransformer";
        let config = || tiphys_yaml::to_yaml(&serde_json::json!({ "paths": entries }));
        let mut patches = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let location = self.locate(&[FIELD, &index.to_string()]);
            let inline = self.inline_patch(entry, &location, context);
            let found = plugins::strategic_patch(entry, &inline, &self.loader, context);
            patches.extend(found.map_err(|error| self.configuring(error, KIND, &config(), (FIELD, index)))?);
        }
        let transformer = plugins::strategic(patches, &entries, "")
            .map_err(|error| self.configuring(error, KIND, &config(), (FIELD, 0)))?;
        list.push(self.configure(Box::new(transformer), &[FIELD], KIND, context));
        Ok(())
    }

    fn patches(&mut self, list: &mut Vec<Configured<'a>>, context: &mut Context<'_>) -> Result<()> {
        const KIND: &str = "PatchTransformer";
        for (index, patch) in std::mem::take(&mut self.k.patches).into_iter().enumerate() {
            let number = index.to_string();
            let location = self.locate(&["patches", &number, "patch"]);
            let inline = self.inline_patch(patch.patch.trim(), &location, context);
            let transformer =
                plugins::load_patch(&patch, &inline, &self.loader, context).map_err(|error| {
                    let config = tiphys_yaml::to_yaml(&serde_json::to_value(&patch).unwrap_or_default());
                    self.configuring(error, KIND, &config, ("patches", index))
                })?;
            list.push(self.configure(Box::new(transformer), &["patches", &number], KIND, context));
        }
        Ok(())
    }

    fn json_patches(&mut self, list: &mut Vec<Configured<'a>>, context: &mut Context<'_>) -> Result<()> {
        const FIELD: &str = "patchesJson6902";
        const KIND: &str = "PatchJson6902Transformer";
        for (index, patch) in self.k.patches_json6902.take().unwrap_or_default().into_iter().enumerate() {
            let number = index.to_string();
            let location = self.locate(&[FIELD, &number, "patch"]);
            let inline = self.inline_patch(&patch.patch, &location, context);
            let transformer =
                plugins::load_json_patch(patch.target.as_ref(), &patch.path, inline, &self.loader, context)
                    .map_err(|error| self.configuring(error, KIND, &config_text(&patch), (FIELD, index)))?;
            list.push(self.configure(Box::new(transformer), &[FIELD, &number], KIND, context));
        }
        Ok(())
    }

    /// `labels`, then `commonLabels`.
    fn labels(
        &mut self,
        list: &mut Vec<Configured<'a>>,
        config: &TransformerConfig,
        context: &mut Context<'_>,
    ) -> Result<()> {
        const KIND: &str = "LabelTransformer";
        let common = self.k.common_labels.take().unwrap_or_default();
        if self.k.labels.is_empty() && common.is_empty() {
            return Ok(());
        }
        for (index, label) in std::mem::take(&mut self.k.labels).into_iter().enumerate() {
            let specs = label_specs(&label, config)
                .map_err(|error| Error::transform(format!("failed to merge labels: {error}")))?;
            let transformer = Labels { labels: label.pairs, specs };
            list.push(self.configure(Box::new(transformer), &["labels", &index.to_string()], KIND, context));
        }
        let transformer = Labels { labels: common, specs: config.common_labels.clone() };
        list.push(self.configure(Box::new(transformer), &["commonLabels"], KIND, context));
        Ok(())
    }
}

/// The configuration that an entry of `patchesJson6902` makes, as errors show it: without what is empty.
fn config_text(patch: &Patch) -> String {
    let mut config = serde_json::json!({});
    if let Some(target) = &patch.target {
        config["target"] = serde_json::json!(target);
    }
    for (name, text) in [("path", &patch.path), ("jsonOp", &patch.patch)] {
        if !text.is_empty() {
            config[name] = text.as_str().into();
        }
    }
    tiphys_yaml::to_yaml(&config)
}

/// Where an entry of `labels` writes.
fn label_specs(label: &Label, config: &TransformerConfig) -> Result<Vec<FieldSpec>, String> {
    let mut specs = label.fields.clone();
    crate::fields::merge_specs(&mut specs, &config.labels)?;
    if label.include_selectors {
        crate::fields::merge_specs(&mut specs, &config.common_labels)?;
        return Ok(specs);
    }
    if label.include_templates {
        crate::fields::merge_specs(&mut specs, &config.template_labels)
            .map_err(|error| format!("failed to merge template fieldSpec: {error}"))?;
    }
    let metadata = FieldSpec { path: "metadata/labels".to_owned(), create: true, ..FieldSpec::default() };
    crate::fields::merge_specs(&mut specs, &[metadata])?;
    Ok(specs)
}

/// What a validator changed, in kustomize's words as far as they are no addresses in memory.
fn difference(before: &ResourceMap, after: &ResourceMap) -> Option<String> {
    if before.list.len() != after.list.len() {
        return Some("lists have different number of entries".to_owned());
    }
    before.list.iter().find_map(|old| {
        let id = old.id();
        let found: Vec<&Resource> = after.list.iter().filter(|new| new.id().same(&id)).collect();
        let [new] = found.as_slice() else {
            return Some(match found.len() {
                0 => format!("id in self missing from other; id: {id}"),
                count => format!("id in self matches {count} in other; id: {id}"),
            });
        };
        let (old, new) = (old.json_with_state(), without_mark(new.json_with_state()));
        (old != new).then(|| format!("nodes unequal: \n -- {old},\n -- {new}"))
    })
}

/// Whether objects are the same but for the paths that functions leave at them.
fn only_paths_differ(before: &ResourceMap, after: &ResourceMap) -> bool {
    let mut after = after.clone();
    for resource in &mut after.list {
        let mut annotations = resource.node.metadata_map("annotations");
        annotations.retain(|name, _| !PATHS.contains(&name.as_str()));
        if resource.node.set_metadata_map("annotations", &annotations).is_err() {
            return false;
        }
    }
    difference(before, &after).is_none()
}

/// An object without the label that a validator may set.
fn without_mark(mut object: Value) -> Value {
    let labels = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
    if labels.is_some_and(|labels| labels.remove("validated-by").is_some() && labels.is_empty())
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("labels");
    }
    object
}
