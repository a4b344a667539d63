//! The functions that Helm adds to Sprig's.

use std::sync::{Arc, OnceLock};

use tiphys_gocompat::strconv::quote;
use tiphys_gotemplate::{
    CallError, CallResult, Context, Function, Functions, Limit, List, ListType, Map, MapType, Numbers,
    TemplateSet, Type, Value, json,
};
use tiphys_value::{Budget, JsonError, Value as Json, json_kind, json_within};
use tiphys_yaml::ErrorKind;

use crate::chart::decoded;

use super::{
    NO_VALUE,
    errors::{WARN_END, WARN_START},
    state::{ROOT, RenderState},
    to_yaml_pretty::to_yaml_pretty,
    toml, yaml_origins,
};

/// Go's, Sprig's and Helm's functions.
pub(crate) fn table() -> Arc<Functions> {
    static TABLE: OnceLock<Arc<Functions>> = OnceLock::new();
    TABLE.get_or_init(|| Arc::new(make_table())).clone()
}

fn make_table() -> Functions {
    let mut table = Functions::sprig();
    table.remove("env");
    table.remove("expandenv");
    add_templates(&mut table);
    add_yaml(&mut table);
    add_json(&mut table);
    add_toml(&mut table);
    table.walking(&["mustToJson", "mustToToml", "mustToYaml", "toJson", "toToml", "toYaml", "toYamlPretty"]);
    table
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn warn(message: &str) -> CallError {
    CallError::new(format!("{WARN_START}{message}{WARN_END}"))
}

fn add_templates(table: &mut Functions) {
    table.insert(Function::new("include", &[Type::String, Type::Any], include));
    table.insert(Function::new("tpl", &[Type::String, Type::Any], tpl));
    table.insert(Function::new("required", &[Type::String, Type::Any], |_, args| {
        let is_missing = args[1].is_nil() || args[1].as_str() == Some("");
        if is_missing { Err(warn(text(&args[0]))) } else { Ok(std::mem::take(&mut args[1])) }
    }));
    table.insert(Function::new("fail", &[Type::String], |_, args| Err(warn(text(&args[0])))));
    table.insert(Function::new("getHostByName", &[Type::String], |_, _| Ok(Value::string(""))));
    table.insert(Function::new("lookup", &[Type::String, Type::String, Type::String, Type::String], lookup));
}

fn state<'e>(ctx: &Context<'e>) -> Result<&'e RenderState, CallError> {
    ctx.user::<RenderState>().ok_or_else(|| CallError::new("not called by Helm"))
}

/// What a template is executed with: Go's executor takes nil for no value, whose fields are none either.
fn data(arg: &mut Value) -> Value {
    if arg.is_nil() { Value::NoValue } else { std::mem::take(arg) }
}

fn include(ctx: &mut Context<'_>, args: &mut [Value]) -> CallResult {
    let state = state(ctx)?;
    let Value::String(name) = std::mem::take(&mut args[0]) else { return Ok(Value::string("")) };
    state.enter(&name)?;
    let output = ctx.execute(&name, data(&mut args[1]));
    state.leave(&name);
    Ok(Value::from(output?))
}

fn tpl(ctx: &mut Context<'_>, args: &mut [Value]) -> CallResult {
    let Value::String(source) = std::mem::take(&mut args[0]) else { return Ok(Value::string("")) };
    if !source.contains("{{") {
        return Ok(Value::String(without_no_value(source)));
    }
    let state = state(ctx)?;
    let base = ctx.templates().clone();
    let layer = match state.parsed_tpl(&source, &base) {
        Some(layer) => layer,
        None => {
            let mut layer = TemplateSet::layer(base.clone());
            layer
                .parse(ROOT, &source)
                .map_err(|error| format!("cannot parse template {}: {error}", quote(&source)))?;
            let layer = Arc::new(layer);
            state.keep_tpl(source.clone(), &base, layer.clone());
            layer
        }
    };
    // A text of nothing but definitions does not replace the text of a `tpl` around it.
    let same = match (layer.get(ROOT), base.get(ROOT)) {
        (Some(own), Some(outer)) => Arc::ptr_eq(own, outer),
        (None, _) => true,
        _ => false,
    };
    if same {
        return Ok(Value::string(""));
    }
    let output = ctx.execute_text(layer, ROOT, &source, data(&mut args[1])).map_err(|error| CallError {
        message: format!("error during tpl function execution for {}: {}", quote(&source), error.message),
        limit: error.limit,
    })?;
    Ok(Value::String(without_no_value(output)))
}

fn without_no_value(text: smol_str::SmolStr) -> smol_str::SmolStr {
    if text.contains(NO_VALUE) { text.replace(NO_VALUE, "").into() } else { text }
}

fn lookup(ctx: &mut Context<'_>, args: &mut [Value]) -> CallResult {
    let Some(cluster) = &state(ctx)?.lookup else { return Ok(Value::Map(Map::new())) };
    let found = cluster.lookup(text(&args[0]), text(&args[1]), text(&args[2]), text(&args[3]))?;
    Ok(match found {
        Some(object) => Value::from_json(&object, Numbers::AsStored),
        None => Value::Map(Map::new()),
    })
}

fn to_yaml(value: &Value) -> Result<String, String> {
    let mut yaml = tiphys_yaml::try_to_yaml(&value.to_json()?).map_err(|error| error.to_string())?;
    if yaml.ends_with('\n') {
        yaml.pop();
    }
    Ok(yaml)
}

fn add_yaml(table: &mut Functions) {
    table.insert(Function::new("toYaml", &[Type::Any], |ctx, args| {
        let yaml = to_yaml(&args[0]).unwrap_or_default();
        yaml_origins::record_origins(ctx, &yaml, &args[0], 0);
        Ok(Value::from(yaml))
    }));
    table.insert(Function::new("mustToYaml", &[Type::Any], |ctx, args| {
        let yaml = to_yaml(&args[0])?;
        yaml_origins::record_origins(ctx, &yaml, &args[0], 0);
        Ok(Value::from(yaml))
    }));
    table.insert(Function::new("toYamlPretty", &[Type::Any], |ctx, args| {
        let yaml = to_yaml_pretty(&args[0]);
        yaml_origins::record_origins(ctx, &yaml, &args[0], 0);
        Ok(Value::from(yaml))
    }));
    table.insert(Function::new("fromYaml", &[Type::String], |ctx, args| {
        // Of an empty document Go leaves the map that it was given.
        let decoded = from_yaml(ctx, text(&args[0]))?;
        let map = if decoded == Ok(Json::Null) { Value::Map(Map::new()) } else { map_of(decoded) };
        yaml_origins::read(ctx, text(&args[0]), &map, 0);
        Ok(map)
    }));
    table.insert(Function::new("fromYamlArray", &[Type::String], |ctx, args| {
        let decoded = from_yaml(ctx, text(&args[0]))?;
        let list = if decoded == Ok(Json::Null) { Value::list(Vec::new()) } else { list_of(decoded) };
        yaml_origins::read(ctx, text(&args[0]), &list, 0);
        Ok(list)
    }));
}

/// What a function reads, or the fault that it hands to the template; a text that means too much ends the
/// template.
type Reading = Result<Result<Json, String>, CallError>;

fn from_yaml(ctx: &Context<'_>, source: &str) -> Reading {
    let source = match decoded(source) {
        Ok(source) => source,
        Err(error) => return Ok(Err(format!("error converting YAML to JSON: {error}"))),
    };
    let budget = Budget::of_document_within(ctx.memory_left());
    let read = tiphys_yaml::from_yaml_within(&source, &budget);
    if let Err(error) = &read
        && error.kind() == ErrorKind::Budget
    {
        return Err(over_memory(error));
    }
    if let Ok(value) = &read {
        ctx.claim_json(value)?;
    }
    Ok(read.map_err(|error| format!("error converting YAML to JSON: {error}")))
}

fn from_json(ctx: &Context<'_>, source: &str) -> Reading {
    let budget = Budget::of_document_within(ctx.memory_left());
    let read = json_within(source.as_bytes(), &budget);
    if let Err(JsonError::Budget(error)) = &read {
        return Err(over_memory(error));
    }
    if let Ok(value) = &read {
        ctx.claim_json(value)?;
    }
    Ok(read.map_err(|error| tiphys_gocompat::json::check(source).err().unwrap_or(error.to_string())))
}

fn over_memory(error: &dyn std::fmt::Display) -> CallError {
    CallError { message: error.to_string(), limit: Some(Limit::Memory) }
}

/// A decoded map; a map with the key `Error` if it is none.
fn map_of(decoded: Result<Json, String>) -> Value {
    let fault = match decoded {
        Ok(Json::Null) => return Value::Map(Map::nil(MapType::Any)),
        Ok(map @ Json::Object(_)) => return Value::from_json(&map, Numbers::Float64),
        Ok(other) => wrong_kind(&other, "map[string]interface {}"),
        Err(error) => error,
    };
    let map = Map::new();
    map.insert("Error", fault);
    Value::Map(map)
}

/// A decoded list; a list of one error if it is none.
fn list_of(decoded: Result<Json, String>) -> Value {
    let fault = match decoded {
        Ok(Json::Null) => return Value::List(List::nil(ListType::Any)),
        Ok(list @ Json::Array(_)) => return Value::from_json(&list, Numbers::Float64),
        Ok(other) => wrong_kind(&other, "[]interface {}"),
        Err(error) => error,
    };
    Value::list(vec![Value::from(fault)])
}

fn wrong_kind(value: &Json, wanted: &str) -> String {
    format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type {wanted}",
        json_kind(value)
    )
}

/// `encoding/json` alone puts nothing before its own text.
fn plain(value: Value) -> Value {
    const PREFIX: &str = "error unmarshaling JSON: while decoding JSON: ";
    let strip = |fault: Value| match fault.as_str().and_then(|text| text.strip_prefix(PREFIX)) {
        Some(rest) => Value::string(rest),
        None => fault,
    };
    match &value {
        Value::Map(map) if map.len() == 1 => {
            if let Some(fault) = map.get("Error") {
                map.insert("Error", strip(fault));
            }
            value
        }
        Value::List(list) if list.len() == 1 => Value::list(list.get(0).map(strip).into_iter().collect()),
        _ => value,
    }
}

fn add_json(table: &mut Functions) {
    let options = json::Options::default;
    table.insert(Function::new("toJson", &[Type::Any], move |ctx, args| {
        let json = json::to_string(&args[0], options()).unwrap_or_default();
        yaml_origins::record_origins(ctx, &json, &args[0], 0);
        Ok(Value::from(json))
    }));
    table.insert(Function::new("mustToJson", &[Type::Any], move |ctx, args| {
        let json = json::to_string(&args[0], options())?;
        yaml_origins::record_origins(ctx, &json, &args[0], 0);
        Ok(Value::from(json))
    }));
    table.insert(Function::new("fromJson", &[Type::String], |ctx, args| {
        let map = plain(map_of(from_json(ctx, text(&args[0]))?));
        yaml_origins::read(ctx, text(&args[0]), &map, 0);
        Ok(map)
    }));
    table.insert(Function::new("fromJsonArray", &[Type::String], |ctx, args| {
        let list = plain(list_of(from_json(ctx, text(&args[0]))?));
        yaml_origins::read(ctx, text(&args[0]), &list, 0);
        Ok(list)
    }));
}

/// The bytes that a value takes for each of its text, at most: a table of one entry.
const TOML: u64 = 40;

fn add_toml(table: &mut Functions) {
    table.insert(Function::new("toToml", &[Type::Any], |ctx, args| {
        Ok(Value::from(to_toml(ctx, &args[0])?.unwrap_or_else(|error| error)))
    }));
    table.insert(Function::new("mustToToml", &[Type::Any], |ctx, args| {
        Ok(Value::from(to_toml(ctx, &args[0])??))
    }));
    table.insert(Function::new("fromToml", &[Type::String], |ctx, args| {
        ctx.claim(text(&args[0]).len() as u64 * TOML)?;
        Ok(toml::decode(text(&args[0])).unwrap_or_else(|error| {
            let map = Map::new();
            map.insert("Error", error);
            Value::Map(map)
        }))
    }));
}

/// The text, or the encoder's error; nil makes Go's encoder panic.
fn to_toml(ctx: &Context<'_>, value: &Value) -> Result<Result<String, String>, CallError> {
    if value.is_nil() {
        return Err(CallError::new("reflect: call of reflect.Value.Type on zero Value"));
    }
    Ok(toml::encode(value, state(ctx)?.compat))
}
