//! What happens to all objects whatever tool made them.

use std::collections::HashMap;

use serde_json::Value;
use tiphys_model::Application;
use tiphys_value::{
    FieldPath, GroupKind, GroupVersionKind, Location, ObjectExt, Origin, OriginKind, RenderedObject,
};

use crate::{
    Context, RenderError, Rendered,
    manifest::{is_empty_list, is_list},
};

/// Lists in lists are expanded to this depth.
const MAX_LIST_DEPTH: usize = 8;

/// Replaces every list by its items.
pub(crate) fn expand_lists(objects: &mut Vec<RenderedObject>) -> Result<(), RenderError> {
    for _ in 0..MAX_LIST_DEPTH {
        objects.retain(|object| !is_empty_list(&object.value));
        if !objects.iter().any(|object| is_list(&object.value)) {
            return Ok(());
        }
        *objects = std::mem::take(objects).into_iter().flat_map(items).collect();
    }
    Err(RenderError::new(format!("lists are nested deeper than {MAX_LIST_DEPTH}")))
}

fn items(mut object: RenderedObject) -> Vec<RenderedObject> {
    if !is_list(&object.value) {
        return vec![object];
    }
    let Some(Value::Array(items)) = object.value.get_mut("items").map(Value::take) else {
        return vec![object];
    };
    let location = object.location;
    items
        .into_iter()
        .enumerate()
        .map(|(index, value)| {
            let root = FieldPath::default().key("items").index(index);
            let origins = object.origins.find(&root).cloned().unwrap_or_default();
            RenderedObject { value, location: location.clone(), origins }
        })
        .collect()
}

/// Sets namespaces and marks.
pub(crate) fn finish(
    rendered: &mut Rendered,
    app: &Application,
    context: &Context<'_>,
) -> Result<(), RenderError> {
    let instance = app.instance_name(context.engine_namespace);
    let destination = &app.spec.destination.namespace;
    let own_kinds = scopes_of_definitions(&rendered.objects);
    let marks = context.tracking.fields();
    for object in &mut rendered.objects {
        let gvk = object.value.gvk();
        if gvk.kind.is_empty() || object.value.at(&["metadata"]).is_none_or(|m| !m.is_object()) {
            return Err(RenderError::new(format!(
                "{}: an item of a list has no kind or no metadata",
                object.location
            )));
        }
        let namespaced = own_kinds
            .get(&gvk.group_kind())
            .copied()
            .or_else(|| (context.is_namespaced)(&gvk))
            .unwrap_or(true);
        place(object, namespaced, destination);
        // With its mark a definition would be pruned when it leaves Git, and all its objects with it.
        if !is_definition(&gvk) {
            context.tracking.mark(&mut object.value, &instance, destination);
            for field in &marks {
                object.origins.set(field, vec![by_engine("the mark of whose it is")]);
            }
        }
    }
    Ok(())
}

fn by_engine(what: &str) -> Origin {
    Origin { kind: OriginKind::Engine, location: Location::new("", 0, 0), detail: what.into() }
}

fn is_definition(gvk: &GroupVersionKind) -> bool {
    gvk.group == "apiextensions.k8s.io" && gvk.kind == "CustomResourceDefinition"
}

/// A namespaced object without a namespace goes to the destination's; a cluster-scoped one has none.
fn place(object: &mut RenderedObject, namespaced: bool, destination: &str) {
    let wanted = match (namespaced, object.value.namespace().is_empty()) {
        (true, true) if !destination.is_empty() => Some(destination),
        (false, false) => None,
        _ => return,
    };
    let Some(Value::Object(metadata)) = object.value.get_mut("metadata") else { return };
    match wanted {
        None => {
            metadata.remove("namespace");
        }
        Some(namespace) => {
            metadata.insert("namespace".into(), namespace.into());
            let origin = Origin {
                kind: OriginKind::Application,
                location: Location::new("", 0, 0),
                detail: "spec.destination.namespace".into(),
            };
            object.origins.key("metadata").key("namespace").set_own(vec![origin]);
        }
    }
}

/// Whether the kinds that the objects themselves define live in namespaces: the cluster cannot know
/// before they are applied.
fn scopes_of_definitions(objects: &[RenderedObject]) -> HashMap<GroupKind, bool> {
    objects
        .iter()
        .filter(|object| is_definition(&object.value.gvk()))
        .filter_map(|object| {
            let spec = object.value.get("spec")?;
            let kind = spec.str_at(&["names", "kind"])?;
            Some((GroupKind::new(spec.str_at(&["group"])?, kind), spec.str_at(&["scope"])? == "Namespaced"))
        })
        .collect()
}
