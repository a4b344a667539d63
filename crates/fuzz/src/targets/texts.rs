//! Readers of single texts.

use std::hint::black_box;

use serde_json::Value;
use tiphys_cause as cause;
use tiphys_gocompat::glob::{Glob, doublestar, path_match, pathspec};
use tiphys_merge::{json_patch, merge_patch, strategic_merge, three_way_merge_patch};
use tiphys_yaml::{
    EmitOptions, Profile, emit_documents, from_yaml, from_yaml_entries, from_yaml_for_fields,
    parse_documents, to_yaml,
};

use crate::input::{parts, text};

/// YAML is read or refused, both readers agree on its fields, and what was read can be written and read
/// again.
///
/// # Panics
/// The readers disagree.
pub fn yaml(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    for profile in [Profile::Go2, Profile::Go3] {
        if let Ok(documents) = parse_documents(text, profile) {
            emit_documents(&documents, EmitOptions::KYAML);
        }
    }
    let Ok(value) = from_yaml(text) else {
        assert!(from_yaml_entries(text, |_| true).is_err(), "one reader refuses what the other takes");
        return;
    };
    // Of fields floats stay floats.
    assert_eq!(from_yaml_entries(text, |_| true), from_yaml_for_fields(text));
    from_yaml(&to_yaml(&value)).ok();
}

/// Any pattern is read or refused, and matching any path with it ends. The input: pattern, path.
///
/// # Panics
/// A separator lets more match.
pub fn glob(bytes: &[u8]) {
    const LONGEST_PATH: usize = 4096;
    let Some([pattern, text]) = text(bytes).map(parts) else { return };
    if text.len() > LONGEST_PATH {
        return;
    }
    let _ = (path_match(pattern, text), doublestar(pattern, text), pathspec(pattern, text));
    if let Ok(glob) = Glob::compile(pattern) {
        let within = glob.is_match(text, Some('/'));
        assert!(!within || glob.is_match(text, None), "a separator lets nothing more match");
    }
}

/// Patches are applied or refused, whatever is in them. The input: object, patch, both in JSON.
pub fn patch(bytes: &[u8]) {
    let Some([object, patch]) = text(bytes).map(parts) else { return };
    let (Ok(object), Ok(mut patch)) =
        (serde_json::from_str::<Value>(object), serde_json::from_str::<Value>(patch))
    else {
        return;
    };
    let _ = json_patch(&object, &patch);
    let merged = merge_patch(&object, &patch);
    three_way_merge_patch(&object, &patch, &merged);
    let _ = strategic_merge(&object, &mut patch, None);
}

/// What other programs say, in logs, events and conditions, is read.
pub fn message(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    black_box(cause::complaints(text));
    black_box(cause::refused_values(text));
    black_box(cause::failed_calls(text));
    black_box(cause::addresses(text));
    black_box(cause::forbidden(text));
    black_box(cause::placement(text));
    black_box(cause::refusal(text));
    black_box(cause::pull_fault(text));
    black_box(cause::image_parts(text));
    black_box(cause::eviction_refusal(text));
}
