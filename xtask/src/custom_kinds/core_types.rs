//! Which parts of custom kinds are types of Kubernetes itself, such as a pod's template. The table only names
//! them: their fields are in the table of built-in kinds.

use std::collections::HashMap;

use tiphys_schema::{Catalog, Definition, Field as CoreField, Quantity, Type};

use super::node::{Field, Node, Range, Shape};

/// Below this number of fields an object is as short as a name.
const MIN_FIELDS: usize = 3;
/// A type is recognised by this part of its fields: older definitions lack the newest ones.
const MIN_PART: f64 = 0.6;
const PREFIX: &str = "io.k8s.";
/// How deep types are compared.
const MAX_DEPTH: usize = 40;

/// The types of Kubernetes, by one of their fields.
pub(super) struct CoreTypes {
    catalog: &'static Catalog,
    by_field: HashMap<String, Vec<String>>,
}

impl CoreTypes {
    /// Those of the newest version that is known.
    pub(super) fn new() -> Self {
        let catalog = Catalog::latest();
        let mut by_field: HashMap<String, Vec<String>> = HashMap::new();
        for definition in catalog.definitions() {
            let is_part = [".core.v1.", ".meta.v1.", ".autoscaling.v2.", ".networking.v1.", ".batch.v1."]
                .iter()
                .any(|part| definition.name.contains(part));
            let is_object =
                definition.fields.contains_key("apiVersion") || definition.name.contains("Status");
            if !is_part || is_object || definition.fields.len() < MIN_FIELDS {
                continue;
            }
            for field in definition.fields.keys() {
                by_field.entry(field.clone()).or_default().push(definition.name.clone());
            }
        }
        Self { catalog, by_field }
    }

    /// How the table names the type of a node, if that is one of Kubernetes.
    pub(super) fn name_of(&self, node: &Node) -> Option<String> {
        let Shape::Object { fields, .. } = &node.shape else { return None };
        if fields.len() < MIN_FIELDS {
            return None;
        }
        let rarest = fields.keys().map(|name| self.by_field.get(name).map_or(&[][..], Vec::as_slice));
        let candidates = rarest.min_by_key(|names| names.len())?;
        let fitting = candidates.iter().filter(|name| {
            let Some(definition) = self.definition(name) else { return false };
            fields.len() as f64 >= MIN_PART * definition.fields.len() as f64
                && self.is_at_least_as_strict(node, definition, 0)
        });
        let best = fitting.min_by_key(|name| self.definition(name).map_or(0, |it| it.fields.len()))?;
        best.strip_prefix(PREFIX).map(str::to_owned)
    }

    fn definition(&self, name: &str) -> Option<&Definition> {
        match self.catalog.reference(name)? {
            Type::Ref(id) => Some(self.catalog.definition_by_id(id)),
            _ => None,
        }
    }

    /// Whether nothing but the type's own limits would be lost or added with its name in the node's place.
    fn is_at_least_as_strict(&self, node: &Node, definition: &Definition, depth: usize) -> bool {
        let Shape::Object { fields, keeps_others: false } = &node.shape else { return false };
        let is_known = |(name, field): (&String, &Field)| {
            definition.fields.get(name).is_some_and(|core| self.fits(&field.node, &core.ty, depth))
        };
        let is_asked = |(name, core): (&String, &CoreField)| {
            let is_optional = !core.required || core.default.is_some();
            is_optional
                || fields.get(name).is_some_and(|field| field.is_required || field.node.default.is_some())
        };
        depth < MAX_DEPTH
            && node.rules.is_empty()
            && node.range == Range::default()
            && fields.iter().all(is_known)
            && definition.fields.iter().all(is_asked)
    }

    fn fits(&self, node: &Node, ty: &Type, depth: usize) -> bool {
        let has_limits = node.range != Range::default()
            || node.values.is_some()
            || node.pattern.as_deref().is_some_and(|pattern| pattern != Quantity::PATTERN);
        if has_limits || depth > MAX_DEPTH {
            return false;
        }
        match (&node.shape, ty) {
            (Shape::Text, Type::Str | Type::Time | Type::MicroTime | Type::Bytes | Type::Quantity)
            | (Shape::Integer, Type::I32 | Type::I64)
            | (Shape::Number, Type::F64)
            | (Shape::Boolean, Type::Bool)
            | (Shape::IntegerOrText, Type::IntOrString | Type::Quantity)
            | (Shape::Any, Type::Any | Type::Open) => true,
            // Definitions name no field of the metadata in templates.
            (Shape::Any, Type::Ref(id)) => self.catalog.definition_by_id(*id).name.ends_with(".ObjectMeta"),
            (Shape::Map(inner), Type::Map(ty, _)) => self.fits(inner, ty, depth + 1),
            (Shape::List { item, .. }, Type::List(ty, _)) => self.fits(item, ty, depth + 1),
            (Shape::Object { .. }, Type::Ref(id)) => {
                self.is_at_least_as_strict(node, self.catalog.definition_by_id(*id), depth + 1)
            }
            _ => false,
        }
    }
}
