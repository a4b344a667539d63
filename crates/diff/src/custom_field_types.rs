//! Fields of custom resources that hold values of known types (Argo CD docs, "Diff Customization", "Known
//! Kubernetes types in CRDs"): quantities, durations, and parts that are built like those of Pods.

use serde_json::Value;
use tiphys_model::settings::{Customizations, KnownTypeField};
use tiphys_schema::{Catalog, Type, TypeRef};
use tiphys_value::GroupVersionKind;

use crate::overlay::keep_live_spelling;

/// Deeper paths lead nowhere.
const MAX_DEPTH: usize = 32;

/// What a name of a type means.
enum KnownType {
    Quantity,
    /// A map of quantities.
    Quantities,
    /// A length of time as Go writes it.
    Duration,
    Named(Type),
}

/// The fields of a kind whose types are known: those that the settings name, and those known by themselves.
pub fn known_types(gvk: &GroupVersionKind, settings: &Customizations) -> Vec<KnownTypeField> {
    let mut all = settings.known_type_fields(gvk).to_vec();
    if gvk.group == "argoproj.io" && gvk.kind == "Rollout" {
        all.push(KnownTypeField { field: "spec.template.spec".into(), type_name: "core/v1/PodSpec".into() });
    }
    all
}

/// Whether a name of a type, such as `core/Quantity` or `core/v1/PodSpec`, is understood.
pub fn is_known_type(name: &str) -> bool {
    read(name).is_some()
}

fn read(name: &str) -> Option<KnownType> {
    match name {
        "core/Quantity" => Some(KnownType::Quantity),
        "core/v1/ResourceList" => Some(KnownType::Quantities),
        "meta/v1/Duration" => Some(KnownType::Duration),
        _ => {
            let definition = name.strip_prefix("core/v1/")?;
            Catalog::latest().reference(&format!("io.k8s.api.core.v1.{definition}")).map(KnownType::Named)
        }
    }
}

/// Gives fields of the target that mean the same as the live ones the live spelling.
pub(crate) fn apply(target: &mut Value, live: &Value, fields: &[KnownTypeField]) {
    for field in fields {
        let Some(known) = read(&field.type_name) else { continue };
        let steps: Vec<&str> = field.field.split('.').filter(|step| !step.is_empty()).collect();
        walk(target, live, &steps, &known, 0);
    }
}

/// Follows a path through objects, and through all items of lists on the way.
fn walk(target: &mut Value, live: &Value, steps: &[&str], known: &KnownType, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    if let (Value::Array(wanted), Value::Array(have)) = (&mut *target, live) {
        wanted.iter_mut().zip(have).for_each(|(wanted, have)| walk(wanted, have, steps, known, depth + 1));
        return;
    }
    match steps.split_first() {
        None => settle(target, live, known),
        Some((step, rest)) => {
            if let (Some(wanted), Some(have)) = (target.get_mut(*step), live.get(*step)) {
                walk(wanted, have, rest, known, depth + 1);
            }
        }
    }
}

fn settle(target: &mut Value, live: &Value, known: &KnownType) {
    let catalog = Catalog::latest();
    match known {
        KnownType::Quantity => keep_live_spelling(target, live, TypeRef::new(catalog, &Type::Quantity)),
        KnownType::Quantities => {
            for (name, value) in target.as_object_mut().into_iter().flatten() {
                if let Some(have) = live.get(name) {
                    settle(value, have, &KnownType::Quantity);
                }
            }
        }
        KnownType::Duration => {
            let length = |value: &Value| tiphys_model::duration::parse_lenient(value.as_str()?);
            if length(target).is_some() && length(target) == length(live) {
                target.clone_from(live);
            }
        }
        KnownType::Named(ty) => keep_live_spelling(target, live, TypeRef::new(catalog, ty)),
    }
}
