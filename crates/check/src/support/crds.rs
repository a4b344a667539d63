//! The definitions of custom resources that a repository holds, and Argo CD's own.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use tiphys_graph::{Object, Survey, World};
use tiphys_schema::{StructuralSchema, crd_version_schema};
use tiphys_value::{GroupKind, GroupVersionKind, ObjectExt, Value};

static ARGO_CD: LazyLock<Vec<Value>> = LazyLock::new(tiphys_model::crd::definitions);

/// Definitions by the kind that they define.
pub struct Definitions<'a> {
    by_kind: HashMap<GroupKind, Vec<Known<'a>>>,
    schemas: Mutex<HashMap<SchemaKey, Option<Arc<StructuralSchema>>>>,
}

/// A definition by its place in memory, and a version of it.
type SchemaKey = (usize, String);

#[derive(Clone)]
struct Known<'a> {
    definition: &'a Value,
    world: Option<World>,
}

impl<'a> Definitions<'a> {
    /// Those of a survey.
    pub fn of(survey: &'a Survey) -> Self {
        let mut by_kind: HashMap<GroupKind, Vec<Known<'a>>> = HashMap::new();
        for object in survey.objects.iter().filter(|object| is_definition(object)) {
            let known = Known { definition: object.value(), world: Some(object.world()) };
            by_kind.entry(defined(object.value())).or_default().push(known);
        }
        for definition in ARGO_CD.iter() {
            let known = by_kind.entry(defined(definition)).or_default();
            if known.is_empty() {
                known.push(Known { definition, world: None });
            }
        }
        Self { by_kind, schemas: Mutex::default() }
    }

    /// The schemas that may be meant for an object: those of its own cluster, else all that are known.
    pub fn schemas(&self, object: &Object, gvk: &GroupVersionKind) -> Vec<Arc<StructuralSchema>> {
        let Some(known) = self.by_kind.get(&gvk.group_kind()) else { return Vec::new() };
        let world = object.world();
        let own: Vec<&Known> = known.iter().filter(|it| it.world.as_ref() == Some(&world)).collect();
        let chosen = if own.is_empty() { known.iter().collect() } else { own };
        chosen.into_iter().filter_map(|it| self.schema(it.definition, &gvk.version)).collect()
    }

    fn schema(&self, definition: &'a Value, version: &str) -> Option<Arc<StructuralSchema>> {
        if definition["spec"]["preserveUnknownFields"] == true {
            return None;
        }
        let key = (std::ptr::from_ref(definition).addr(), version.to_owned());
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        schemas.entry(key).or_insert_with(|| crd_version_schema(definition, version).map(Arc::new)).clone()
    }
}

fn is_definition(object: &Object) -> bool {
    object.key.kind == "CustomResourceDefinition" && object.key.group == "apiextensions.k8s.io"
}

fn defined(definition: &Value) -> GroupKind {
    let text = |keys: &[&str]| definition.str_at(keys).unwrap_or_default();
    GroupKind::new(text(&["spec", "group"]), text(&["spec", "names", "kind"]))
}
