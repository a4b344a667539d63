//! Actions that `argocd-cm` defines in Lua.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tiphys_model::{
    Clock,
    settings::{ActionDefinition, KindActions},
};
use tiphys_value::ObjectExt;

use super::{Action, ActionError, Outcome, Param};
use crate::lua::{self, LuaError, Script};

/// What `discovery.lua` says that an object offers.
pub(super) fn discover(own: &KindActions, object: &Value, clock: &Clock) -> Result<Vec<Action>, ActionError> {
    let script = Script { text: &own.discovery_lua, name: "discovery.lua", open_libs: false };
    let found = lua::evaluate(&script, object, &BTreeMap::new(), clock, table);
    let found = found.map_err(|error| failed(object, "discovery.lua", error))?;
    match found {
        Value::Object(map) => Ok(map.into_iter().map(|(name, shown)| of_table(name, &shown)).collect()),
        Value::Array(list) if list.is_empty() => Ok(Vec::new()),
        _ => Err(failed(object, "discovery.lua", LuaError::new("the actions it returns have no names"))),
    }
}

fn of_table(key: String, shown: &Value) -> Action {
    let text = |value: &Value, field: &str| value.str_at(&[field]).map(str::to_owned);
    let params = shown.at(&["params"]).and_then(Value::as_array).into_iter().flatten();
    Action {
        name: text(shown, "name").filter(|name| !name.is_empty()).unwrap_or(key),
        display_name: text(shown, "displayName").unwrap_or_default(),
        disabled: shown.at(&["disabled"]).and_then(Value::as_bool).unwrap_or(false),
        params: params
            .filter_map(|param| Some(Param { name: text(param, "name")?, default: text(param, "default") }))
            .collect(),
    }
}

/// What the script of an action asks for.
pub(super) fn run(
    action: &ActionDefinition,
    object: &Value,
    params: &BTreeMap<String, String>,
    clock: &Clock,
) -> Result<Vec<Outcome>, ActionError> {
    let script = Script { text: &action.action_lua, name: "action.lua", open_libs: false };
    let failed = |error| failed(object, &action.name, error);
    let returned = lua::evaluate(&script, object, params, clock, table).map_err(failed)?;
    match returned {
        Value::Object(_) => Ok(vec![Outcome::Patch(with_maps_of(returned, object))]),
        Value::Array(list) => {
            let read = list.into_iter().map(|entry| outcome(entry, object));
            read.collect::<Result<_, String>>().map_err(|reason| failed(LuaError::new(&reason)))
        }
        _ => Ok(Vec::new()),
    }
}

fn outcome(mut entry: Value, live: &Value) -> Result<Outcome, String> {
    let resource = entry.get_mut("resource").map(Value::take).filter(Value::is_object);
    let resource = resource.ok_or("an entry of the list that it returns has no resource")?;
    match entry.str_at(&["operation"]) {
        Some("patch") => Ok(Outcome::Patch(with_maps_of(resource, live))),
        Some("create") => Ok(Outcome::Create(resource)),
        other => Err(format!("unsupported operation: {}", other.unwrap_or("none"))),
    }
}

/// Lua has one empty table: what was an empty map in the live object is one again.
fn with_maps_of(new: Value, live: &Value) -> Value {
    match (new, live) {
        (Value::Array(list), Value::Object(_)) if list.is_empty() => Value::Object(Map::new()),
        (Value::Object(map), Value::Object(old)) => Value::Object(
            map.into_iter()
                .map(|(key, value)| {
                    let value = with_maps_of(value, old.get(&key).unwrap_or(&Value::Null));
                    (key, value)
                })
                .collect(),
        ),
        (Value::Array(list), Value::Array(old)) => {
            let old = old.iter().chain(std::iter::repeat(&Value::Null));
            Value::Array(list.into_iter().zip(old).map(|(value, old)| with_maps_of(value, old)).collect())
        }
        (new, _) => new,
    }
}

fn table(value: &mlua::Value) -> mlua::Result<Value> {
    match value {
        mlua::Value::Table(_) => lua::json(value),
        other => Err(mlua::Error::runtime(format!(
            "expect table output from Lua script, not {}",
            other.type_name()
        ))),
    }
}

fn failed(object: &Value, script: &str, error: LuaError) -> ActionError {
    ActionError::Script { kind: object.kind().to_owned(), script: script.to_owned(), error }
}
