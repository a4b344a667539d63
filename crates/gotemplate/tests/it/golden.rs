//! Templates and what Go prints for them.

use std::path::Path;
use std::sync::Arc;
use tiphys_gotemplate::{Env, Functions, MissingKey, Numbers, TemplateSet, Value};

fn data() -> Value {
    let data = serde_json::json!({
        "s": "hello World", "e": "", "f": 1.5, "n": 3, "big": 1e6, "t": true, "fl": false, "nil": null,
        "l": ["b", "a", 3, null], "el": [], "m": {"a": 1, "b": {"c": "x"}, "z": null}, "em": {}, "u": "é😀x",
    });
    let data = Value::from_json(&data, Numbers::Float64);
    data.as_map().expect("a map").insert("i64", Value::Int64(7));
    data
}

fn run(text: &str, functions: &Arc<Functions>) -> String {
    let mut set = TemplateSet::new(functions.clone()).with_missing_key(MissingKey::Zero);
    if let Err(error) = set.parse("t", text) {
        return format!("error: {error}");
    }
    match Arc::new(set).execute("t", data(), &Env::system(), None) {
        Ok(output) => output,
        Err(error) => format!("error: {error}"),
    }
}

fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let text = std::fs::read_to_string(path).expect("a golden file");
    let functions = Arc::new(Functions::sprig());
    let mut parts = text.split("\n---\n").skip(1);
    let mut failures = Vec::new();
    let mut count = 0;
    while let (Some(template), Some(expected)) = (parts.next(), parts.next()) {
        count += 1;
        let found = run(template, &functions);
        if found != expected {
            failures.push(format!("{template}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(count > 40, "only {count} cases were read");
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn language() {
    check("language.txt");
}

#[test]
fn sprig() {
    check("sprig.txt");
}
