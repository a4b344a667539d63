//! Strategic merge patches and JSON patches.

use std::collections::HashSet;

use tiphys_gocompat::strconv::quote;
use tiphys_value::Location;

use super::Transformer;
use crate::{
    context::Context,
    error::{Error, ErrorKind, Result},
    json_patch::{JsonPatch, Places},
    kustomization::model::{PatchOptions, Selector},
    merge::Merger,
    reader::{Text, read_objects},
    resid::ResId,
    resource::Resource,
    resource_map::ResourceMap,
    selector::Matcher,
    suggest::{id_of, similar, with_similar},
};

/// The text of a patch, with its place.
#[derive(Clone, Debug)]
pub(crate) struct PatchText {
    pub text: String,
    pub file: String,
    pub line_offset: u32,
    pub writer: u32,
}

/// What a patch turned out to be.
#[derive(Debug)]
enum Content {
    Strategic(Vec<Resource>),
    Json(JsonPatch, Places),
}

/// An entry of `patches`.
#[derive(Debug)]
pub(crate) struct Patches {
    content: Content,
    target: Option<Selector>,
    /// How errors name the patch.
    source: String,
}

/// `patchesStrategicMerge`.
pub(crate) struct StrategicPatches {
    pub patches: Vec<Resource>,
}

/// An entry of `patchesJson6902`.
pub(crate) struct JsonPatches {
    pub patch: JsonPatch,
    pub places: Places,
    pub target: Selector,
}

impl PatchText {
    /// The objects in the text.
    ///
    /// # Errors
    /// What is no YAML or no object.
    pub(crate) fn objects(&self, context: &mut Context<'_>) -> Result<Vec<Resource>> {
        let source =
            Text { text: &self.text, file: &self.file, line_offset: self.line_offset, writer: self.writer };
        let nodes = read_objects(context, source)?;
        let place = Location::new(self.file.as_str(), self.line_offset + 1, 0);
        Ok(nodes
            .into_iter()
            .map(|node| {
                let location = context.tracker.location(node.origin).unwrap_or_else(|| place.clone());
                Resource::new(node, location, &context.schemas)
            })
            .collect())
    }

    /// Where the operations of a JSON patch stand.
    pub(crate) fn places(&self, context: &Context<'_>) -> Places {
        let mut places = Places { writer: self.writer, positions: Vec::new() };
        if context.tracker.is_enabled()
            && let Ok(Some(document)) = tiphys_yaml::parse_first(&self.text, tiphys_yaml::Profile::Go3)
        {
            let items = document.root.items().unwrap_or_default();
            let start =
                |item: &tiphys_yaml::Node| (item.span.start.line + self.line_offset, item.span.start.column);
            places.positions = items.iter().map(start).collect();
        }
        places
    }
}

impl Patches {
    /// Reads a patch and finds out of which kind it is.
    ///
    /// # Errors
    /// Neither, or both.
    pub(crate) fn new(
        text: &PatchText,
        source: String,
        target: Option<&Selector>,
        options: Option<PatchOptions>,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        let objects = text.objects(context);
        let operations = JsonPatch::parse(&text.text);
        if let (Ok(objects), Ok(operations)) = (&objects, &operations)
            && !objects.is_empty()
            && operations.len() > 0
        {
            return Err(Error::transform(format!(
                "illegally qualifies as both an SM and JSON patch: {source}"
            )));
        }
        let content = match (objects, operations) {
            (Ok(mut objects), _) => {
                for object in &mut objects {
                    object.patch_options = options.unwrap_or(object.patch_options);
                    if object.patch_options != PatchOptions::default() {
                        make_texts(object).map_err(Error::transform)?;
                    }
                }
                Content::Strategic(objects)
            }
            (Err(_), Ok(operations)) => Content::Json(operations, text.places(context)),
            (Err(objects), Err(operations)) => {
                let place = Location::new(text.file.as_str(), text.line_offset + 1, 0);
                return Err(Error::transform(format!("unable to parse SM or JSON patch from {source}"))
                    .located_at(Some(objects.location().cloned().unwrap_or(place)))
                    .advise(format!("as a strategic merge patch: {objects}"))
                    .advise(format!("as a JSON patch: {operations}")));
            }
        };
        Ok(Self { content, target: target.cloned(), source })
    }

    fn strategic(
        &self,
        patches: &[Resource],
        objects: &mut ResourceMap,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let Some(target) = &self.target else {
            for patch in patches {
                let id = patch.original_id();
                if context.options.partial && objects.find_unique(&id).is_err() {
                    continue;
                }
                let at = objects.find_unique(&id).map_err(|error| {
                    with_similar(
                        error.context(format!(
                            "no resource matches strategic merge patch {}",
                            quote(&id.to_string())
                        )),
                        &id,
                        objects,
                    )
                    .located_at(Some(patch.location.clone()))
                })?;
                apply_strategic(&mut objects.list[at], patch, context)?;
            }
            return Ok(());
        };
        let [patch] = patches else {
            return match patches {
                [] => Ok(()),
                _ => Err(Error::transform(format!(
                    "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set `patches.target` field: {}",
                    self.source
                ))),
            };
        };
        let chosen = Matcher::new(target).and_then(|matcher| matcher.select(objects));
        let chosen = chosen.map_err(|error| {
            error
                .context(format!("unable to find patch target {} in `resources`", quote(&target.to_string())))
        })?;
        let chosen = objects.list.iter().zip(chosen).filter(|(_, chosen)| *chosen);
        let selected: HashSet<ResId> = chosen.map(|(resource, _)| resource.id()).collect();
        if selected.is_empty() {
            context.notes.push(selects_nothing("the patch", target, objects));
        }
        apply_to_selected(objects, &selected, patch, context)
    }

    fn json(
        &self,
        patch: &JsonPatch,
        places: &Places,
        objects: &mut ResourceMap,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let Some(target) = &self.target else {
            return Err(Error::transform(format!("must specify a target for JSON patch {}", self.source)));
        };
        let selected = Matcher::new(target)?.select(objects)?;
        if !selected.contains(&true) {
            context.notes.push(selects_nothing("the patch", target, objects));
        }
        for (resource, _) in objects.list.iter_mut().zip(selected).filter(|(_, selected)| *selected) {
            context.check_time()?;
            resource.remember_id();
            apply_json(resource, patch, places, true, context)?;
            restore_annotations(resource).map_err(Error::transform)?;
        }
        Ok(())
    }
}

impl Transformer for Patches {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        match &self.content {
            Content::Strategic(patches) => self.strategic(patches, objects, context),
            Content::Json(patch, places) => self.json(patch, places, objects, context),
        }
    }
}

impl Transformer for StrategicPatches {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        for patch in &self.patches {
            let id = patch.original_id();
            if context.options.partial && objects.find_unique(&id).is_err() {
                continue;
            }
            let at = objects.find_unique(&id).map_err(|error| {
                with_similar(error, &id, objects).located_at(Some(patch.location.clone()))
            })?;
            let selected = HashSet::from([objects.list[at].id()]);
            apply_to_selected(objects, &selected, patch, context)?;
        }
        Ok(())
    }
}

impl Transformer for JsonPatches {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        let selected = Matcher::new(&self.target)?.select(objects)?;
        if !selected.contains(&true) {
            context.notes.push(selects_nothing("the patch", &self.target, objects));
        }
        for (resource, _) in objects.list.iter_mut().zip(selected).filter(|(_, selected)| *selected) {
            apply_json(resource, &self.patch, &self.places, false, context)?;
            restore_annotations(resource).map_err(Error::transform)?;
            let metadata = resource.node.get("metadata").filter(|metadata| !metadata.is_null());
            if let Some(metadata) = metadata.filter(|metadata| metadata.kind() != crate::node::Kind::Map) {
                return Err(Error::transform(crate::node::kind_error(crate::node::Kind::Map, metadata)));
            }
        }
        Ok(())
    }
}

/// Kustomize says nothing when a selector selects nothing; the user wants to know.
pub(super) fn selects_nothing(what: &str, target: &Selector, objects: &ResourceMap) -> String {
    let id = id_of(&target.gvk, &target.name, &target.namespace);
    let advice = similar(&id, objects).map(|advice| format!(" ({advice})")).unwrap_or_default();
    format!("{what} selects no object{advice}")
}

/// Applies a patch to objects of these ids (`ResMap.ApplySmPatch`): the patch takes each object's
/// `apiVersion`, name and namespace.
fn apply_to_selected(
    objects: &mut ResourceMap,
    selected: &HashSet<ResId>,
    patch: &Resource,
    context: &mut Context<'_>,
) -> Result<()> {
    for resource in objects.list.iter_mut().filter(|resource| selected.contains(&resource.id())) {
        let mut copy = patch.clone();
        let adapt = |copy: &mut Resource| -> Result<(), String> {
            copy.take_metadata_of(patch)?;
            copy.node.set_top("kind", resource.node.object_kind())?;
            copy.node.set_top("apiVersion", resource.node.api_version())?;
            copy.node.set_top("kind", patch.node.object_kind())
        };
        adapt(&mut copy).map_err(Error::transform)?;
        apply_strategic(resource, &copy, context)?;
    }
    let list = std::mem::take(&mut objects.list);
    objects.append(list.into_iter().filter(|resource| !resource.node.is_empty()).collect())
}

/// Merges a patch into an object; name, namespace and kind stay unless it may change them.
fn apply_strategic(resource: &mut Resource, patch: &Resource, context: &mut Context<'_>) -> Result<()> {
    let options = patch.patch_options;
    let (name, namespace, kind) = (
        resource.node.name().to_owned(),
        resource.node.namespace().to_owned(),
        resource.node.object_kind().to_owned(),
    );
    if options.allow_name_change || options.allow_kind_change {
        resource.remember_id();
    }
    resource.touched = true;
    context.meter.take_node(&patch.node, 0).map_err(Error::transform)?;
    let schemas = context.schemas.clone();
    let mut merger =
        Merger { schemas: Some(&schemas), tracker: &mut context.tracker, meter: &context.meter, depth: 0 };
    let drops_annotations = drops_annotations(patch);
    let stays = merger
        .merge(&mut resource.node, patch.node.clone())
        .map_err(|message| Error::transform(message).located_at(Some(patch.location.clone())))?;
    resource.kind_may_have_changed();
    if !stays {
        resource.node = crate::node::Node::null();
        return Ok(());
    }
    if drops_annotations {
        resource.forget_state();
    }
    let restore = |resource: &mut Resource| -> Result<(), String> {
        if !options.allow_kind_change {
            resource.node.set_top("kind", &kind)?;
        }
        if !options.allow_name_change {
            resource.node.set_name(&name)?;
        }
        resource.node.set_namespace(&namespace)
    };
    restore(resource).map_err(Error::transform)
}

/// Whether a patch removes all annotations; kustomize keeps its own state in them.
fn drops_annotations(patch: &Resource) -> bool {
    let Some(metadata) = patch.node.get("metadata") else { return false };
    let replaces = |node: &crate::node::Node| matches!(node.text_of("$patch"), "replace" | "delete");
    replaces(metadata)
        || metadata
            .get("annotations")
            .is_some_and(|annotations| annotations.is_null() || replaces(annotations))
}

/// Kustomize keeps the options of a patch in its annotations, which makes texts of them all: one that is null
/// no longer removes an annotation.
fn make_texts(patch: &mut Resource) -> Result<(), String> {
    let metadata = patch.node.get("metadata");
    if metadata.and_then(|metadata| metadata.get("annotations")).is_none() {
        return Ok(());
    }
    let annotations = patch.node.metadata_map("annotations");
    patch.node.set_metadata_map("annotations", &annotations)
}

/// Kustomize writes its own annotations again after a JSON patch, over what is no mapping.
fn restore_annotations(resource: &mut Resource) -> Result<(), String> {
    let Some(metadata) = resource.node.get_mut("metadata") else { return Ok(()) };
    let is_text = |node: &crate::node::Node| node.kind() == crate::node::Kind::Scalar && !node.is_null();
    if !metadata.get("annotations").is_some_and(is_text) {
        return Ok(());
    }
    metadata.set("annotations", crate::node::Node::map(Vec::new()))
}

/// Applies a JSON patch to one object. With state to keep, kustomize's own annotations are there
/// during the patch, so that `/metadata/annotations/…` can be added to.
fn apply_json(
    resource: &mut Resource,
    patch: &JsonPatch,
    places: &Places,
    has_state: bool,
    context: &mut Context<'_>,
) -> Result<()> {
    let has_state = has_state || resource.has_state();
    let mut apply = |resource: &mut Resource| -> Result<(), String> {
        if has_state {
            let annotations = crate::node::lookup_create(
                &mut resource.node,
                &["metadata", "annotations"],
                crate::node::Kind::Map,
            )?;
            if let Some(annotations) = annotations.filter(|annotations| annotations.is_null()) {
                annotations.become_kind(crate::node::Kind::Map, crate::node::Tag::Map);
            }
        }
        patch.apply(&mut resource.node, places, &mut context.tracker, &context.meter)
    };
    let id = resource.id();
    apply(resource).map_err(|message| {
        let missing = patch.missing_field(&resource.node);
        let error = Error::new(ErrorKind::Transform, message);
        let error = missing.into_iter().fold(error, Error::advise);
        error.advise(format!("the patch was applied to {id} from {}", resource.location))
    })?;
    resource.kind_may_have_changed();
    resource.unshare();
    resource.touched = true;
    Ok(())
}
