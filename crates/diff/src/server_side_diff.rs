//! Comparing with what the API server itself would make of a target: the answer of a server-side apply that
//! was a dry run (Argo CD docs, "Diff Strategies", "Server-Side Diff").

use serde_json::Value;
use tiphys_model::names;
use tiphys_value::{FieldPath, ObjectExt};

use crate::{DiffOptions, Difference, difference, normalize, ownership};

/// Compares a live object with what a dry run made of it for a target. What others than the apply itself
/// changed, such as mutating webhooks, counts only if `mutations` do. The dry run does not know that fields
/// of managers before us become ours: those that the target does not set are taken out here.
pub fn compare_predicted(
    target: &Value,
    live: &Value,
    predicted: &Value,
    mutations: bool,
    options: &DiffOptions<'_>,
) -> Difference {
    let managers = ownership::Managers::read(live);
    let mut sets: Vec<Option<&Value>> = vec![applied(live), applied(predicted)];
    sets.extend(managers.to_be_moved().map(Some));
    let mut before = normalize::live(live, options);
    let mut after = normalize::live(predicted, options);
    let wanted = normalize::target(target, options);
    if ownership::remove_moved(&managers, &wanted, &mut after) {
        normalize::after_removal(&mut after, &before);
        if let Some(fields) = options.fields {
            let filled = fields.with_defaults(&after);
            normalize::restore_defaults(&mut after, &filled, &before);
        }
    }
    if let Some(ignore) = options.ignore {
        ignore.apply(&mut after, &mut before, &managers);
    }
    let is_ours = |path: &FieldPath| sets.iter().any(|fields| ownership::owns(*fields, &path.0));
    let paths = difference(&before, &after).into_iter().filter(|path| mutations || is_ours(path)).collect();
    Difference { live: before, predicted: after, paths }
}

/// The fields that the last apply of ours set.
fn applied(object: &Value) -> Option<&Value> {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array)?;
    let own = entries.iter().find(|entry| {
        entry.str_at(&["manager"]) == Some(names::FIELD_MANAGER)
            && entry.str_at(&["operation"]) == Some("Apply")
            && entry.get("subresource").is_none()
    });
    own?.get("fieldsV1")
}
