//! A jq path expression for what to ignore can be used or cannot; its run on any object ends, and nothing
//! panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tiphys_diff::{DiffOptions, IgnoreRules, compare};
use tiphys_model::IgnoreDifference;

fuzz_target!(|input: (&str, &str)| {
    let (expression, object) = input;
    let Ok(object) = serde_json::from_str::<serde_json::Value>(object) else { return };
    let rule = IgnoreDifference {
        group: "*".into(),
        kind: "*".into(),
        jq_path_expressions: vec![expression.into()],
        ..IgnoreDifference::default()
    };
    if let Ok(rules) = IgnoreRules::for_object(&object, &[rule]) {
        compare(&object, &object, &DiffOptions { ignore: Some(&rules), ..DiffOptions::default() });
    }
});
