//! DaemonSets.

use tiphys_value::{ObjectExt, Value};

use crate::meta;

/// Where a field of an older version of `DaemonSet` lives on: how often its template has changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Counts the changes of a DaemonSet's template; `current` is the stored one.
pub(super) fn count_template(object: &mut Value, current: Option<&Value>) {
    let before = current.map_or(0, |current| {
        current.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse::<i64>().ok()).unwrap_or(1)
    });
    let is_same = current.is_some_and(|current| current["spec"]["template"] == object["spec"]["template"]);
    let number = if is_same { before } else { before + 1 };
    meta::annotations_mut(object).insert(TEMPLATE_GENERATION.into(), number.to_string().into());
}

/// Whoever replaces a DaemonSet without that annotation is taken to have set it to nothing. Says whether the
/// object has it only for that reason.
pub(super) fn assume_template_generation(object: &mut Value) -> bool {
    let is_missing = object.annotation(TEMPLATE_GENERATION).is_none();
    if is_missing {
        meta::annotations_mut(object).insert(TEMPLATE_GENERATION.into(), "0".into());
    }
    is_missing
}

/// Takes away what was assumed.
pub(super) fn forget_template_generation(object: &mut Value) {
    meta::annotations_mut(object).remove(TEMPLATE_GENERATION);
}
