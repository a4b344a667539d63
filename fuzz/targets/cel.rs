//! A CEL expression compiles or does not; its run ends within the limits, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tiphys_expr::cel::{Environment, Expression, plain, to_json};

fuzz_target!(|input: (&str, &str)| {
    let (source, object) = input;
    let Ok(expression) = Expression::compile(source, &["object"]) else { return };
    let object = serde_json::from_str(object).unwrap_or_default();
    let environment = Environment::new([("object".to_owned(), plain(&object))]);
    if let Ok(value) = expression.evaluate(&environment) {
        let _ = to_json(&value);
    }
});
