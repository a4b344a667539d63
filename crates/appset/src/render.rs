//! The two template languages: plain `{{ name }}` replacement, and Go templates with Sprig.

use std::sync::Arc;

use serde_json::{Map, Value};
use tiphys_gotemplate::{CallError, Env, Function, Functions, MissingKey, TemplateSet, Type};
use tiphys_value::ObjectExt;

use crate::{Params, params};

/// Deeper templates are refused.
const MAX_DEPTH: usize = 100;

/// Renders texts of one ApplicationSet.
pub(crate) struct Renderer {
    go: Option<(Arc<Functions>, MissingKey)>,
}

impl Renderer {
    /// The language that a set asks for.
    pub fn of(set: &Value) -> Self {
        if set.at(&["spec", "goTemplate"]) != Some(&Value::Bool(true)) {
            return Self { go: None };
        }
        let options = set.at(&["spec", "goTemplateOptions"]).and_then(Value::as_array);
        let missing = options.into_iter().flatten().filter_map(Value::as_str).fold(
            MissingKey::NoValue,
            |missing, option| match option {
                "missingkey=error" => MissingKey::Error,
                "missingkey=zero" => MissingKey::Zero,
                "missingkey=default" | "missingkey=invalid" => MissingKey::NoValue,
                _ => missing,
            },
        );
        Self { go: Some((Arc::new(functions()), missing)) }
    }

    /// Whether parameters are trees.
    pub fn is_go(&self) -> bool {
        self.go.is_some()
    }

    /// Renders a text.
    ///
    /// # Errors
    /// The template does not parse or execute.
    pub fn text(&self, text: &str, params: &Params) -> Result<String, String> {
        if !text.contains("{{") {
            return Ok(text.to_owned());
        }
        let Some((functions, missing)) = &self.go else { return Ok(replace(text, params)) };
        let mut set = TemplateSet::new(Arc::clone(functions)).with_missing_key(*missing);
        set.parse("template", text).map_err(|error| format!("failed to parse template {text}: {error}"))?;
        let data = to_go(&Value::Object(params.clone()));
        Arc::new(set)
            .execute("template", data, &Env::system(), None)
            .map_err(|error| format!("failed to execute go template {text}: {error}"))
    }

    /// Renders every text of a value, keys included.
    ///
    /// # Errors
    /// As [`Self::text`], or the value is nested too deeply.
    pub fn value(&self, value: &Value, params: &Params, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("the template is nested deeper than {MAX_DEPTH}"));
        }
        match value {
            Value::String(text) => self.text(text, params).map(Value::from),
            Value::Array(list) => {
                let items: Result<Vec<_>, _> =
                    list.iter().map(|item| self.value(item, params, depth + 1)).collect();
                items.map(Value::from)
            }
            Value::Object(map) => {
                let mut out = Map::new();
                for (key, child) in map {
                    out.insert(self.text(key, params)?, self.value(child, params, depth + 1)?);
                }
                Ok(Value::Object(out))
            }
            other => Ok(other.clone()),
        }
    }
}

/// Replaces `{{ name }}`; what is unknown stays as it is.
fn replace(text: &str, params: &Params) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, after)) = inside.split_once("}}") else {
            out.push_str("{{");
            rest = inside;
            continue;
        };
        match params.get(name.trim()) {
            Some(value) => out.push_str(&params::text_of(value)),
            None => {
                out.push_str("{{");
                out.push_str(name);
                out.push_str("}}");
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn to_go(value: &Value) -> tiphys_gotemplate::Value {
    tiphys_gotemplate::json::from_str(&value.to_string()).unwrap_or_default()
}

fn from_go(value: &tiphys_gotemplate::Value) -> Result<Value, CallError> {
    let text = tiphys_gotemplate::json::to_string(value, Default::default()).map_err(CallError::new)?;
    serde_json::from_str(&text).map_err(|error| CallError::new(error.to_string()))
}

/// Sprig without what reads the machine, and Argo CD's additions.
fn functions() -> Functions {
    let mut functions = Functions::sprig();
    for name in ["env", "expandenv", "getHostByName"] {
        functions.remove(name);
    }
    functions.insert(Function::new("normalize", &[Type::String], |_, args| {
        Ok(params::normalize(args[0].as_str().unwrap_or_default()).into())
    }));
    functions.insert(Function::variadic("slugify", &[Type::Any], |_, args| {
        let text = args.last().and_then(|value| value.as_str()).unwrap_or_default();
        Ok(slugify(text).into())
    }));
    functions.insert(Function::new("toYaml", &[Type::Any], |_, args| {
        let text = tiphys_yaml::to_yaml(&from_go(&args[0])?);
        Ok(text.trim_end_matches('\n').into())
    }));
    for name in ["fromYaml", "fromYamlArray"] {
        functions.insert(Function::new(name, &[Type::String], |_, args| {
            let value = tiphys_yaml::from_yaml(args[0].as_str().unwrap_or_default())
                .map_err(|error| CallError::new(error.to_string()))?;
            Ok(to_go(&value))
        }));
    }
    functions
}

/// A text as part of an address: lower case, runs of other characters as one dash, at most 50 characters.
fn slugify(text: &str) -> String {
    let mut out = String::new();
    for c in text.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.truncate(50);
    out.trim_matches('-').to_owned()
}
