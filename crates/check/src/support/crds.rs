//! The definitions of custom resources that a repository holds, and Argo CD's own.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use tiphys_expr::cel::Rules;
use tiphys_graph::{Object, ObjectScope, Survey};
use tiphys_schema::{ErrorKind, ErrorList, FieldError, FieldRule, StructuralSchema, crd_version_schema};
use tiphys_value::{GroupKind, GroupVersionKind, ObjectExt, Value};

use super::known_kinds::{self, FieldRules};

static ARGO_CD: LazyLock<Vec<Value>> = LazyLock::new(tiphys_model::crd::definitions);

/// Definitions by the kind that they define.
pub(crate) struct Definitions<'a> {
    by_kind: HashMap<GroupKind, Vec<DefinitionCandidate<'a>>>,
    schemas: Mutex<HashMap<SchemaKey, Option<Arc<Custom>>>>,
    shipped: Mutex<HashMap<GroupVersionKind, Option<Arc<Custom>>>>,
}

/// What a definition asks of objects of one version.
pub(crate) struct Custom {
    /// The schema.
    pub schema: StructuralSchema,
    /// Its CEL rules.
    rules: Option<Rules>,
    /// What its fields ask of each other, where that is known of the operator.
    field_rules: FieldRules,
    /// Whether it comes from what is known of the operator, not from a definition of the repository.
    pub is_shipped: bool,
}

impl Custom {
    /// Faults of an object that was pruned and defaulted, in the API server's words. Of the rules only what
    /// they refuse counts: one that cannot be evaluated here says nothing.
    pub(crate) fn validate(&self, object: &Value) -> Vec<FieldError> {
        let errors = self.schema.validate(object, None);
        let broken = match &self.rules {
            Some(rules) if !tiphys_schema::prevents_rules(&errors) => rules.validate(object, None),
            _ => ErrorList::new(),
        };
        let is_remark = |error: &FieldError| error.rule == Some(FieldRule::UncheckedRules);
        let broken = broken.into_iter().filter(|error| !is_unevaluated(error));
        let own = match tiphys_schema::prevents_rules(&errors) {
            true => Vec::new(),
            false => self.field_rules.validate(object),
        };
        errors.into_iter().filter(|error| !is_remark(error)).chain(broken).chain(own).collect()
    }
}

/// Whether a rule could not be compiled or evaluated.
fn is_unevaluated(error: &FieldError) -> bool {
    error.kind == ErrorKind::Internal || error.rule == Some(FieldRule::Unevaluated)
}

/// A definition by its place in memory, and a version of it.
type SchemaKey = (usize, String);

#[derive(Clone)]
struct DefinitionCandidate<'a> {
    definition: &'a Value,
    world: Option<ObjectScope>,
    /// The file that it stands in; empty for what is built in.
    file: &'a str,
}

impl DefinitionCandidate<'_> {
    /// Whether it may be meant for an object that no Application reaches: not one for what else, such as
    /// another cluster, the repository holds in a folder of its own.
    fn is_near(&self, object: &Object) -> bool {
        let top = |path: &str| path.split('/').next().map(str::to_owned);
        object.environment.is_some()
            || self.world.is_none()
            || top(self.file) == top(&object.rendered.location.file)
    }
}

impl<'a> Definitions<'a> {
    /// Those of a survey.
    pub(crate) fn from_survey(survey: &'a Survey) -> Self {
        let mut by_kind: HashMap<GroupKind, Vec<DefinitionCandidate<'a>>> = HashMap::new();
        for object in survey.objects.iter().filter(|object| is_definition(object)) {
            let known = DefinitionCandidate {
                definition: object.value(),
                world: Some(object.world()),
                file: &object.rendered.location.file,
            };
            by_kind.entry(defined(object.value())).or_default().push(known);
        }
        for definition in ARGO_CD.iter() {
            let known = by_kind.entry(defined(definition)).or_default();
            if known.is_empty() {
                known.push(DefinitionCandidate { definition, world: None, file: "" });
            }
        }
        Self { by_kind, schemas: Mutex::default(), shipped: Mutex::default() }
    }

    /// The schemas that may be meant for an object: those of its own cluster, else all that are near, else
    /// what is known of the kind.
    pub(crate) fn schemas(&self, object: &Object, gvk: &GroupVersionKind) -> Vec<Arc<Custom>> {
        let Some(known) = self.by_kind.get(&gvk.group_kind()) else {
            return self.shipped(gvk).into_iter().collect();
        };
        let world = object.world();
        let own: Vec<&DefinitionCandidate> =
            known.iter().filter(|it| it.world.as_ref() == Some(&world)).collect();
        let near = || known.iter().filter(|it| it.is_near(object)).collect();
        let chosen = if own.is_empty() { near() } else { own };
        chosen.into_iter().filter_map(|it| self.schema(it.definition, &gvk.version)).collect()
    }

    /// The schemas of a kind, wherever they stand, else what is known of it.
    pub(crate) fn of_kind(&self, gvk: &GroupVersionKind) -> Vec<Arc<Custom>> {
        match self.by_kind.get(&gvk.group_kind()) {
            Some(known) => known.iter().filter_map(|it| self.schema(it.definition, &gvk.version)).collect(),
            None => self.shipped(gvk).into_iter().collect(),
        }
    }

    fn shipped(&self, gvk: &GroupVersionKind) -> Option<Arc<Custom>> {
        let mut known = self.shipped.lock();
        let read = || {
            let known_kinds::KnownKind { schema, rules } = known_kinds::find(gvk)?;
            Some(Arc::new(Custom { schema, rules: None, field_rules: rules, is_shipped: true }))
        };
        known.entry(gvk.clone()).or_insert_with(read).clone()
    }

    fn schema(&self, definition: &'a Value, version: &str) -> Option<Arc<Custom>> {
        if definition["spec"]["preserveUnknownFields"] == true {
            return None;
        }
        let key = (std::ptr::from_ref(definition).addr(), version.to_owned());
        let mut schemas = self.schemas.lock();
        schemas.entry(key).or_insert_with(|| custom(definition, version)).clone()
    }
}

fn custom(definition: &Value, version: &str) -> Option<Arc<Custom>> {
    let schema = crd_version_schema(definition, version)?;
    let rules = Rules::new(schema.as_value());
    Some(Arc::new(Custom { schema, rules, field_rules: FieldRules::default(), is_shipped: false }))
}

fn is_definition(object: &Object) -> bool {
    object.key.kind == "CustomResourceDefinition" && object.key.group == "apiextensions.k8s.io"
}

fn defined(definition: &Value) -> GroupKind {
    let text = |keys: &[&str]| definition.str_at(keys).unwrap_or_default();
    GroupKind::new(text(&["spec", "group"]), text(&["spec", "names", "kind"]))
}
