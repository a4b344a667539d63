//! Patches are applied or refused, whatever is in them; nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tiphys_merge::{json_patch, merge_patch, strategic_merge, three_way_merge_patch};

fuzz_target!(|input: (&str, &str)| {
    let (object, patch) = input;
    let (Ok(object), Ok(mut patch)) =
        (serde_json::from_str::<Value>(object), serde_json::from_str::<Value>(patch))
    else {
        return;
    };
    let _ = json_patch(&object, &patch);
    let merged = merge_patch(&object, &patch);
    three_way_merge_patch(&object, &patch, &merged);
    let _ = strategic_merge(&object, &mut patch, None);
});
