//! A template parses or fails, and ends within its limits; nothing panics.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tiphys_gotemplate::{Env, Functions, Limits, Map, TemplateSet, Value};

fuzz_target!(|text: &str| {
    let mut set = TemplateSet::new(Arc::new(Functions::sprig()));
    if set.parse("fuzz", text).is_err() {
        return;
    }
    let values = Map::new();
    values.insert("name", "x");
    values.insert("count", Value::Float64(3.0));
    values.insert("list", Value::strings(["a", "b"]));
    let mut env = Env::system();
    env.limits = Limits { depth: 100, output: 1 << 20, steps: 100_000, ..Limits::default() };
    let _ = Arc::new(set).execute("fuzz", Value::Map(values), &env, None);
});
