//! Comparing what is wanted with what is there. The live object is compared with what server-side apply of
//! the target would make of it: only fields that the target sets, or that an earlier apply of ours set and
//! the target no longer does, can differ; lists and maps that are applied as a whole differ in anything but
//! defaults. Pure: no IO, no clock.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod apply_body;
mod custom_field_types;
mod display;
mod duplicate_keys;
mod fields;
mod ignore;
mod jq;
mod mask;
mod normalize;
mod overlay;
mod ownership;
mod paths;
mod server_assigned;
mod server_side_diff;

pub use apply_body::applied_form;
pub use custom_field_types::{is_known_type, known_types};
pub use display::{readable, unified, unified_texts};
pub use duplicate_keys::{has_repeats, has_rivals, items_once, last_only};
pub use fields::Fields;
pub use ignore::{IgnoreError, IgnoreRules};
pub use mask::mask_secret;
pub use normalize::encoded_secret;
pub use ownership::owns;
pub use paths::difference;
use serde_json::Value;
pub use server_side_diff::compare_predicted;
use tiphys_model::settings::KnownTypeField;
use tiphys_value::{FieldPath, ObjectExt};

/// How objects are compared.
#[derive(Clone, Copy, Default)]
pub struct DiffOptions<'a> {
    /// The kind's fields, if known; without them lists are compared as a whole.
    pub fields: Option<Fields<'a>>,
    /// Differences that do not count.
    pub ignore: Option<&'a IgnoreRules>,
    /// The status is compared too.
    pub compare_status: bool,
    /// Rules of aggregated ClusterRoles do not count.
    pub ignore_aggregated_roles: bool,
    /// Fields of a custom resource whose types are known, see [`known_types`].
    pub known: &'a [KnownTypeField],
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The live object, without what never counts.
    pub live: Value,
    /// What it would become.
    pub predicted: Value,
    /// Where they differ; empty if they agree.
    pub paths: Vec<FieldPath>,
}

impl Difference {
    /// Whether the objects differ.
    pub fn is_modified(&self) -> bool {
        !self.paths.is_empty()
    }
}

/// Compares a target with its live object.
pub fn compare(target: &Value, live: &Value, options: &DiffOptions<'_>) -> Difference {
    let managers = ownership::Managers::read(live);
    // What is compared is what would be sent.
    let target = applied_form(target, options.fields);
    let mut wanted = normalize::target(&target, options);
    let mut live = normalize::live(live, options);
    let filled = |object: &Value| options.fields.map(|fields| fields.with_defaults(object));
    // Before anything is ignored: what is taken out of both sides must not come back as a default.
    let mut stored = filled(&wanted);
    if let (Some(stored), Some(fields)) = (&stored, options.fields) {
        overlay::fill_zeros(&mut wanted, stored, fields);
    }
    if let Some(ignore) = options.ignore {
        if let Some(stored) = &mut stored {
            ignore.apply(stored, &mut live.clone(), &managers);
        }
        ignore.apply(&mut wanted, &mut live, &managers);
    }
    for side in std::iter::once(&mut wanted).chain(&mut stored) {
        custom_field_types::apply(side, &live, options.known);
    }
    let mut predicted = overlay::overlay(&wanted, stored.as_ref().unwrap_or(&wanted), &live, options.fields);
    if ownership::remove_abandoned(&managers, &wanted, &mut predicted) {
        normalize::after_removal(&mut predicted, &live);
        if let Some(filled) = filled(&predicted) {
            normalize::restore_defaults(&mut predicted, &filled, &live);
        }
    }
    server_assigned::keep(&mut predicted, &live);
    let paths = difference(&live, &predicted);
    Difference { live, predicted, paths }
}

/// The target of a sync with `RespectIgnoreDifferences`: fields whose differences are ignored take the live
/// object's values, so that applying the target does not change them. A part of the live object that the
/// target says nothing about is left as it is: to apply one field of it would be to own it.
pub fn respect_ignored(target: &Value, live: &Value, options: &DiffOptions<'_>) -> Value {
    let Some(ignore) = options.ignore else { return target.clone() };
    ignore.with_ignored_fields(target, live, &|path| ignore::has_place(path, target))
}

/// An object that takes the place of a live one, with the values that the live one has in ignored fields.
pub fn keep_ignored(wanted: &Value, live: &Value, options: &DiffOptions<'_>) -> Value {
    let Some(ignore) = options.ignore else { return wanted.clone() };
    ignore.with_ignored_fields(wanted, live, &|_| true)
}

/// Whether an object has an entry in its `compare-options` annotation.
pub fn has_compare_option(object: &Value, option: &str) -> bool {
    let list = object.annotation(tiphys_model::names::COMPARE_OPTIONS).unwrap_or_default();
    list.split(',').any(|entry| entry.trim() == option)
}
