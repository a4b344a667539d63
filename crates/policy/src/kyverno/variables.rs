//! Expressions in policies: `{{ request.object.metadata.name }}`, JMESPath with functions of Kyverno's own
//! (Kyverno documentation, "Variables" and "JMESPath").

use std::{cell::OnceCell, sync::LazyLock};

use jmespath::{
    Context, Rcvar, Runtime, Variable,
    functions::{
        ArgumentType, ContainsFn, CustomFunction, EndsWithFn, Function, KeysFn, LengthFn, MaxFn, MinFn,
        NotNullFn, Signature, StartsWithFn, ToNumberFn, ToStringFn, TypeFn, ValuesFn,
    },
};
use tiphys_diag::catch_panic;
use tiphys_gocompat::regex::Regex;
use tiphys_value::{Map, Value};

use crate::wildcard;

/// An expression is a line or two. The limits keep the reader's recursion small, and what lists of
/// expressions can multiply.
const MAX_LENGTH: usize = 1024;
const MAX_COMMAS: usize = 6;
const MAX_BRACKETS: usize = 24;

/// How many expressions one text may have, filled-in ones included.
const MAX_EXPRESSIONS: usize = 32;

/// The largest object that expressions are asked about, as text.
const MAX_OBJECT: usize = 256 * 1024;

/// What expressions see.
#[derive(Debug)]
pub(super) struct Scope {
    variables: Map<String, Value>,
    /// The variables as expressions read them. Most rules have no expression, and never ask for it.
    read: OnceCell<Option<Rcvar>>,
}

impl Scope {
    pub(super) fn new(request: Value) -> Self {
        Self { variables: Map::from_iter([("request".to_owned(), request)]), read: OnceCell::new() }
    }

    /// The scope with one more variable.
    pub(super) fn with(&self, name: &str, value: Value) -> Self {
        let mut variables = self.variables.clone();
        variables.insert(name.to_owned(), value);
        Self { variables, read: OnceCell::new() }
    }

    /// The variables as expressions read them; `None` if they are too large.
    fn read(&self) -> Option<Rcvar> {
        let read = || {
            let text = serde_json::to_string(&self.variables).ok()?;
            let is_small = text.len() <= MAX_OBJECT;
            is_small.then(|| Variable::from_json(&text).ok()).flatten().map(Rcvar::new)
        };
        self.read.get_or_init(read).clone()
    }

    /// What an expression gives; `None` if it cannot be evaluated here, or finds nothing.
    pub(super) fn query(&self, expression: &str) -> Option<Value> {
        let is_small = expression.len() <= MAX_LENGTH
            && expression.matches(',').count() <= MAX_COMMAS
            && expression.matches(['[', '(', '{', '!', '&']).count() <= MAX_BRACKETS;
        let read = is_small.then(|| self.read()).flatten()?;
        let search = || RUNTIME.compile(expression).ok()?.search(read).ok();
        let found = catch_panic("the JMESPath expression", search).ok().flatten()?;
        if found.is_null() { None } else { serde_json::to_value(found).ok() }
    }

    /// A value with all expressions in its texts filled in; `None` if one is not known here.
    pub(super) fn fill_in(&self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) => self.fill_in_text(text),
            Value::Array(items) => items.iter().map(|item| self.fill_in(item)).collect(),
            Value::Object(map) => {
                let filled = map.iter().map(|(key, value)| {
                    let key = self.fill_in_text(key)?.as_str()?.to_owned();
                    Some((key, self.fill_in(value)?))
                });
                Some(Value::Object(filled.collect::<Option<_>>()?))
            }
            other => Some(other.clone()),
        }
    }

    /// The innermost expression is filled in first. A text that is one expression becomes its value.
    fn fill_in_text(&self, text: &str) -> Option<Value> {
        let mut text = text.to_owned();
        for _ in 0..MAX_EXPRESSIONS {
            let Some((start, end)) = innermost(&text) else { return Some(text.replace("\\{{", "{{").into()) };
            let found = self.query(text[start + 2..end].trim())?;
            if start == 0 && end + 2 == text.len() {
                return Some(found);
            }
            let shown = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            if shown.len() > MAX_OBJECT {
                return None;
            }
            text.replace_range(start..end + 2, &shown);
        }
        None
    }
}

/// Where an expression with none in it stands: before its opening and its closing braces.
fn innermost(text: &str) -> Option<(usize, usize)> {
    let mut searched = 0;
    loop {
        let end = searched + text[searched..].find("}}")?;
        match text[..end].rfind("{{") {
            Some(start) if !text[..start].ends_with('\\') => return Some((start, end)),
            _ => searched = end + 2,
        }
    }
}

/// Functions whose results are no larger than what they are given.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Runtime::new();
    let known: Vec<(&str, Box<dyn Function>)> = vec![
        ("contains", Box::new(ContainsFn::new())),
        ("ends_with", Box::new(EndsWithFn::new())),
        ("keys", Box::new(KeysFn::new())),
        ("length", Box::new(LengthFn::new())),
        ("max", Box::new(MaxFn::new())),
        ("min", Box::new(MinFn::new())),
        ("not_null", Box::new(NotNullFn::new())),
        ("starts_with", Box::new(StartsWithFn::new())),
        ("to_number", Box::new(ToNumberFn::new())),
        ("to_string", Box::new(ToStringFn::new())),
        ("type", Box::new(TypeFn::new())),
        ("values", Box::new(ValuesFn::new())),
        ("to_lower", of_text(|text| text.to_lowercase())),
        ("to_upper", of_text(|text| text.to_uppercase())),
        ("split", splitting()),
        ("regex_match", by_pattern(|pattern, text| Regex::compile(pattern).ok().map(|it| it.is_match(text)))),
        ("pattern_match", by_pattern(|pattern, text| Some(wildcard::matches(pattern, text)))),
    ];
    for (name, function) in known {
        runtime.register_function(name, function);
    }
    runtime
});

/// A function of one text.
fn of_text(run: fn(&str) -> String) -> Box<dyn Function> {
    let signature = Signature::new(vec![ArgumentType::String], None);
    let run = move |arguments: &[Rcvar], _: &mut Context<'_>| {
        let text = arguments[0].as_string().map(String::as_str).unwrap_or_default();
        Ok(Rcvar::new(Variable::String(run(text))))
    };
    Box::new(CustomFunction::new(signature, Box::new(run)))
}

/// A function that compares a text or a number with a pattern.
fn by_pattern(fits: fn(&str, &str) -> Option<bool>) -> Box<dyn Function> {
    let signature = Signature::new(vec![ArgumentType::String, ArgumentType::Any], None);
    let run = move |arguments: &[Rcvar], _: &mut Context<'_>| {
        let pattern = arguments[0].as_string().map(String::as_str).unwrap_or_default();
        let text = arguments[1].as_string().cloned().unwrap_or_else(|| arguments[1].to_string());
        Ok(Rcvar::new(fits(pattern, &text).map_or(Variable::Null, Variable::Bool)))
    };
    Box::new(CustomFunction::new(signature, Box::new(run)))
}

/// `split(text, separator)`.
fn splitting() -> Box<dyn Function> {
    let signature = Signature::new(vec![ArgumentType::String, ArgumentType::String], None);
    let run = |arguments: &[Rcvar], _: &mut Context<'_>| {
        let text = |at: usize| arguments[at].as_string().map(String::as_str).unwrap_or_default();
        let parts = text(0).split(text(1)).map(|part| Rcvar::new(Variable::String(part.to_owned())));
        Ok(Rcvar::new(Variable::Array(parts.collect())))
    };
    Box::new(CustomFunction::new(signature, Box::new(run)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_are_filled_in_from_inside() {
        let scope = Scope::new(json!({
            "object": {"metadata": {"name": "web", "labels": {"a/b": "c"}}, "spec": {"replicas": 3}},
            "key": "name",
        }));
        for (text, expected) in [
            ("plain", Some(json!("plain"))),
            ("{{ request.object.spec.replicas }}", Some(json!(3))),
            (
                "{{ request.object.metadata.labels.\"a/b\" }}-{{request.object.metadata.name}}",
                Some(json!("c-web")),
            ),
            ("{{ request.object.metadata.{{request.key}} }}", Some(json!("web"))),
            ("{{ request.object.spec.paused || `false` }}", Some(json!(false))),
            ("{{ request.object.spec.containers[].image || `[]` }}", Some(json!([]))),
            ("{{ to_upper(request.object.metadata.name) }}", Some(json!("WEB"))),
            ("\\{{ kept }}", Some(json!("{{ kept }}"))),
            ("{{ request.userInfo.username }}", None),
            ("{{ images.containers }}", None),
            ("{{ broken( }}", None),
        ] {
            assert_eq!(scope.fill_in(&json!(text)), expected, "{text}");
        }
    }

    #[test]
    fn long_expressions_are_not_evaluated() {
        let scope = Scope::new(json!({"object": {}}));
        assert_eq!(scope.query(&"[@,@]|".repeat(100)), None);
        assert_eq!(scope.query(&"!".repeat(1000)), None);
        assert_eq!(scope.fill_in(&json!("{{ request.object }}".repeat(100))), None);
    }
}
