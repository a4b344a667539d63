//! A user's Lua, run as Argo CD runs it (Argo CD docs, "Resource Health"; the dialect of gopher-lua: Lua 5.1
//! with `goto`): the object is the global `obj`; a script of health returns a table with `status` and
//! `message`. A script sees no files, no processes, no other script, and ends: it is bounded in instructions,
//! time and memory, and every run starts from nothing.

use std::{
    cell::Cell,
    collections::BTreeMap,
    rc::Rc,
    time::{Duration, Instant},
};

use mlua::{HookTriggers, Lua, LuaOptions, StdLib, VmState};
use serde_json::Value;
use tiphys_diag::catch_panic;
use tiphys_model::{Clock, HealthCode, HealthStatus};

/// How many instructions a script may execute.
const MAX_INSTRUCTIONS: u64 = 20_000_000;
/// How long a script may run: Argo CD's limit.
const MAX_TIME: Duration = Duration::from_secs(1);
/// How much memory a script may hold, in bytes.
const MAX_MEMORY: usize = 64 << 20;
/// After how many instructions the limits are looked at.
const EVERY: u32 = 1_000;
/// How deep an object may be nested.
const MAX_DEPTH: usize = 200;
/// What errors call a script whose library fails.
const WHAT: &str = "the Lua script";
/// What Argo CD answers to a status that is none.
const INVALID: &str = "Lua returned an invalid health status";

/// Takes away what reaches out of the script, and makes a limit that was passed final: `pcall` must not
/// swallow it. Runs before the script with the real functions as arguments.
const PRELUDE: &str = r#"
local passed, now, open = ...
local error, pcall, xpcall, time, date = error, pcall, xpcall, os.time, os.date
for _, name in ipairs{"dofile", "loadfile", "load", "loadstring", "collectgarbage", "newproxy", "coroutine",
    "module", "package", "getfenv", "setfenv", "jit", "gcinfo"} do
  _G[name] = nil
end
print = function() end
os = {
  time = function(t) if t == nil then return now() end return time(t) end,
  date = function(f, t) return date(f, t or now()) end,
}
local known = { os = os, table = table, string = string, math = math }
require = function(name)
  if known[name] then return known[name] end
  error("module " .. tostring(name) .. " not found")
end
local function through(...)
  if passed() then error("limit", 0) end
  return ...
end
_G.pcall = function(...) return through(pcall(...)) end
_G.xpcall = function(...) return through(xpcall(...)) end
"#;

/// A script that does not run, with why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LuaError(String);

impl LuaError {
    /// An error with what went wrong.
    pub(crate) fn new(message: &str) -> Self {
        Self(message.to_owned())
    }
}

/// Checks that a script is one.
///
/// # Errors
/// With the syntax error and its line.
pub fn check_script(script: &str) -> Result<(), LuaError> {
    let load = || {
        let lua = Lua::new_with(StdLib::NONE, LuaOptions::default()).map_err(|error| first_line(&error))?;
        lua.load(script)
            .set_name("=health.lua")
            .into_function()
            .map(|_| ())
            .map_err(|error| first_line(&error))
    };
    catch_panic(WHAT, load).unwrap_or_else(|panicked| Err(LuaError(panicked.to_string())))
}

/// Runs a script over an object. `None` if it returns nothing: the kind then has no health.
///
/// # Errors
/// It does not parse, fails, passes a limit, or returns something else than a table.
pub(crate) fn run(
    script: &str,
    object: &Value,
    open_libs: bool,
    clock: &Clock,
) -> Result<Option<HealthStatus>, LuaError> {
    let script = Script { text: script, name: "health.lua", open_libs };
    evaluate(&script, object, &BTreeMap::new(), clock, returned).and_then(parse_result)
}

/// A script with what it may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script<'a> {
    /// Its text.
    pub text: &'a str,
    /// What errors call it.
    pub name: &'static str,
    /// It may use all libraries that there are here.
    pub open_libs: bool,
}

/// Runs a script over an object, with the parameters of an action as the global `actionParams`, and hands
/// what it returns to `read`.
///
/// # Errors
/// It does not parse, fails, passes a limit, or `read` fails.
pub(crate) fn evaluate<T>(
    script: &Script<'_>,
    object: &Value,
    params: &BTreeMap<String, String>,
    clock: &Clock,
    read: impl FnOnce(&mlua::Value) -> mlua::Result<T>,
) -> Result<T, LuaError> {
    let limits = Rc::new(Limits::default());
    let run =
        || evaluate_within(script, object, params, clock, &limits).and_then(|(_lua, value)| read(&value));
    let result = catch_panic(WHAT, run).map_err(|panicked| LuaError(panicked.to_string()))?;
    match limits.passed.get() {
        Some(limit) => Err(LuaError(limit.into())),
        None => result.map_err(|error| first_line(&error)),
    }
}

/// What a script returned.
enum Returned {
    /// Nothing, or a table without anything named in it.
    Nothing,
    /// A table.
    Table { status: Option<mlua::Result<String>>, message: Option<mlua::Result<String>> },
    /// Something else, of this type.
    Other(&'static str),
}

/// What a script used up.
#[derive(Default)]
struct Limits {
    instructions: Cell<u64>,
    passed: Cell<Option<&'static str>>,
}

impl Limits {
    fn exceeded(&self, started: Instant) -> Option<&'static str> {
        self.instructions.set(self.instructions.get() + u64::from(EVERY));
        if self.instructions.get() > MAX_INSTRUCTIONS {
            self.passed.set(Some("the script ran for more than 20 million instructions"));
        } else if started.elapsed() > MAX_TIME {
            self.passed.set(Some("the script ran for more than 1s"));
        }
        self.passed.get()
    }
}

/// What the script returned, with the state that it lives in.
#[allow(clippy::disallowed_methods, reason = "a deadline stops, and changes no result")]
fn evaluate_within(
    script: &Script<'_>,
    object: &Value,
    params: &BTreeMap<String, String>,
    clock: &Clock,
    limits: &Rc<Limits>,
) -> mlua::Result<(Lua, mlua::Value)> {
    let libraries = StdLib::TABLE | StdLib::OS;
    let libraries = if script.open_libs { libraries | StdLib::STRING | StdLib::MATH } else { libraries };
    let lua = Lua::new_with(libraries, LuaOptions::default())?;
    lua.set_memory_limit(MAX_MEMORY)?;
    let seen = limits.clone();
    let passed = lua.create_function(move |_, ()| Ok(seen.passed.get().is_some()))?;
    let clock = clock.clone();
    let now = lua.create_function(move |_, ()| Ok(clock.now().as_second()))?;
    lua.load(PRELUDE).call::<()>((passed, now, script.open_libs))?;
    lua.globals()
        .set("actionParams", lua.create_table_from(params.iter().map(|(k, v)| (k.as_str(), v.as_str())))?)?;
    lua.globals().set("obj", value(&lua, object, 0)?)?;
    let (seen, started) = (limits.clone(), Instant::now());
    lua.set_hook(HookTriggers::new().every_nth_instruction(EVERY), move |_, _| {
        match seen.exceeded(started) {
            Some(limit) => Err(mlua::Error::runtime(limit)),
            None => Ok(VmState::Continue),
        }
    })?;
    let value = lua.load(script.text).set_name(format!("={}", script.name)).call::<mlua::Value>(())?;
    Ok((lua, value))
}

fn returned(value: &mlua::Value) -> mlua::Result<Returned> {
    let table = match value {
        mlua::Value::Nil => return Ok(Returned::Nothing),
        mlua::Value::Table(table) => table,
        other => return Ok(Returned::Other(other.type_name())),
    };
    let (mut status, mut message, mut is_named) = (None, None, false);
    for pair in table.pairs::<mlua::Value, mlua::Value>() {
        let (mlua::Value::String(key), value) = pair? else { continue };
        is_named = true;
        // Field names are read as Go reads JSON: in any case.
        let field = match key.to_string_lossy().to_ascii_lowercase().as_str() {
            "status" => &mut status,
            "message" => &mut message,
            _ => continue,
        };
        *field = Some(text(&value));
    }
    Ok(if is_named { Returned::Table { status, message } } else { Returned::Nothing })
}

fn text(value: &mlua::Value) -> mlua::Result<String> {
    match value {
        mlua::Value::String(text) => Ok(text.to_string_lossy().to_string()),
        other => Err(mlua::Error::runtime(format!("expected a string, not {}", other.type_name()))),
    }
}

fn parse_result(returned: Returned) -> Result<Option<HealthStatus>, LuaError> {
    let field = |field: Option<mlua::Result<String>>, name: &str| {
        let text = field.transpose();
        text.map(Option::unwrap_or_default)
            .map_err(|error| LuaError(format!("{name}: {}", first_line(&error))))
    };
    let (status, message) = match returned {
        Returned::Nothing => return Ok(None),
        Returned::Other(kind) => {
            return Err(LuaError(format!("expect table output from Lua script, not {kind}")));
        }
        Returned::Table { status, message } => (field(status, "status")?, field(message, "message")?),
    };
    Ok(Some(match HealthCode::parse(&status) {
        Some(code) => HealthStatus::new(code, message),
        None => HealthStatus::new(HealthCode::Unknown, INVALID),
    }))
}

/// An object as Lua has it: `null` is nothing, so that a key that holds it is not there.
fn value(lua: &Lua, object: &Value, depth: usize) -> mlua::Result<mlua::Value> {
    if depth > MAX_DEPTH {
        return Err(mlua::Error::runtime(format!("the object is nested deeper than {MAX_DEPTH}")));
    }
    Ok(match object {
        Value::Null => mlua::Value::Nil,
        Value::Bool(flag) => mlua::Value::Boolean(*flag),
        Value::Number(number) => mlua::Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => mlua::Value::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.iter().enumerate() {
                table.raw_set(index + 1, value(lua, item, depth + 1)?)?;
            }
            mlua::Value::Table(table)
        }
        Value::Object(map) => {
            let table = lua.create_table_with_capacity(0, map.len())?;
            for (key, item) in map {
                table.raw_set(key.as_str(), value(lua, item, depth + 1)?)?;
            }
            mlua::Value::Table(table)
        }
    })
}

/// What a script returned as an object of the API: a table with texts as keys is a map, one with the numbers
/// from 1 on a list, and so is an empty one.
///
/// # Errors
/// A table has keys of both sorts or a gap, a value is none of JSON, or it is nested too deep.
pub(crate) fn json(value: &mlua::Value) -> mlua::Result<Value> {
    json_at(value, 0)
}

fn json_at(value: &mlua::Value, depth: usize) -> mlua::Result<Value> {
    if depth > MAX_DEPTH {
        return Err(mlua::Error::runtime(format!("the result is nested deeper than {MAX_DEPTH}")));
    }
    Ok(match value {
        mlua::Value::Nil => Value::Null,
        mlua::Value::Boolean(flag) => Value::Bool(*flag),
        mlua::Value::Integer(number) => (*number).into(),
        mlua::Value::Number(number) => whole(*number)
            .or_else(|| serde_json::Number::from_f64(*number).map(Value::Number))
            .ok_or_else(|| mlua::Error::runtime(format!("the result has the number {number}")))?,
        mlua::Value::String(text) => Value::String(text.to_string_lossy().to_string()),
        mlua::Value::Table(table) => json_of_table(table, depth)?,
        other => return Err(mlua::Error::runtime(format!("the result has a {}", other.type_name()))),
    })
}

/// A number without a fraction as one that is written without.
fn whole(number: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and within the range")]
    (number.fract() == 0.0 && number.abs() < EXACT).then(|| (number as i64).into())
}

fn json_of_table(table: &mlua::Table, depth: usize) -> mlua::Result<Value> {
    let (mut map, mut list) = (serde_json::Map::new(), BTreeMap::new());
    for pair in table.pairs::<mlua::Value, mlua::Value>() {
        let (key, value) = pair?;
        let value = json_at(&value, depth + 1)?;
        match key {
            mlua::Value::String(key) => {
                map.insert(key.to_string_lossy().to_string(), value);
            }
            mlua::Value::Integer(index) => {
                list.insert(index, value);
            }
            other => return Err(mlua::Error::runtime(format!("a key is a {}", other.type_name()))),
        }
    }
    let is_gapless = list.keys().zip(1..).all(|(index, wanted)| *index == wanted);
    match (map.is_empty(), list.is_empty()) {
        (false, false) => Err(mlua::Error::runtime("a table has both texts and numbers as keys")),
        (false, true) => Ok(Value::Object(map)),
        (true, _) if is_gapless => Ok(Value::Array(list.into_values().collect())),
        (true, _) => Err(mlua::Error::runtime("a list has gaps")),
    }
}

/// The first line of an error: what follows is a stack of ours.
fn first_line(error: &mlua::Error) -> LuaError {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line =
        ["runtime error: ", "syntax error: "].iter().find_map(|head| line.strip_prefix(head)).unwrap_or(line);
    LuaError(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn noon() -> Clock {
        Clock::new(|| "2026-01-01T12:00:00Z".parse().expect("valid"))
    }

    fn run_script(script: &str) -> Result<Option<HealthStatus>, String> {
        let object = json!({"metadata": {"name": "a", "labels": {}, "gone": null},
            "spec": {"replicas": 3}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        run(script, &object, false, &noon()).map_err(|error| error.to_string())
    }

    fn status(script: &str) -> HealthCode {
        run_script(script).unwrap().unwrap().status
    }

    #[test]
    fn the_object_is_a_table_and_the_result_too() {
        let script = r#"
            local hs = {}
            for i, condition in ipairs(obj.status.conditions) do
              if condition.type ~= "Ready" then goto continue end
              if condition.status == "True" then hs.status = "Healthy" end
              ::continue::
            end
            hs.message = obj.metadata.name .. " " .. obj.spec.replicas .. " " .. tostring(obj.metadata.gone)
            return hs"#;
        assert_eq!(run_script(script), Ok(Some(HealthStatus::new(HealthCode::Healthy, "a 3 nil"))));
    }

    #[test]
    fn results_that_are_none() {
        assert_eq!(run_script("return nil"), Ok(None));
        assert_eq!(run_script("return {}"), Ok(None));
        assert_eq!(run_script("local x = 1"), Ok(None));
        assert_eq!(status("return {status = 'Fine'}"), HealthCode::Unknown);
        assert_eq!(
            run_script("return 'Healthy'"),
            Err("expect table output from Lua script, not string".into())
        );
        assert!(run_script("return {status = 'Healthy', message = 5}").unwrap_err().contains("message"));
    }

    #[test]
    fn faults_name_their_line() {
        assert_eq!(
            run_script(
                "
return obj.status.none.x"
            )
            .unwrap_err()
            .split(": ")
            .next(),
            Some("health.lua:2")
        );
        assert!(check_script("return {").unwrap_err().to_string().starts_with("health.lua:1:"));
        assert_eq!(check_script("goto done ::done:: return {}"), Ok(()));
    }

    #[test]
    fn nothing_outside_can_be_reached() {
        for name in [
            "io",
            "load",
            "loadstring",
            "dofile",
            "loadfile",
            "debug",
            "package",
            "os.execute",
            "os.getenv",
            "os.exit",
            "os.remove",
            "ffi",
            "jit",
            "string",
            "math",
            "coroutine",
            "collectgarbage",
        ] {
            let script = format!("return {{status = ({name}) == nil and 'Healthy' or 'Degraded'}}");
            assert_eq!(status(&script), HealthCode::Healthy, "{name}");
        }
        assert!(run_script("return require('io')").unwrap_err().contains("module io not found"));
        assert_eq!(
            status("return {status = require('os').time() == 1767268800 and 'Healthy' or 'Degraded'}"),
            HealthCode::Healthy
        );
    }

    #[test]
    fn open_libraries_bring_texts_and_numbers() {
        let script =
            "return {status = string.upper(obj.metadata.name) == 'A' and math.floor(1.5) == 1 and 'Healthy'}";
        assert!(run_script(script).is_err());
        let opened = run(script, &json!({"metadata": {"name": "a"}}), true, &noon());
        assert_eq!(opened.unwrap().unwrap().status, HealthCode::Healthy);
    }

    #[test]
    fn every_script_ends() {
        for script in [
            "while true do end",
            "while true do pcall(function() while true do end end) end",
            "local function f() return f() end return f()",
            "while true do xpcall(error, function() while true do end end) end",
        ] {
            let error = run_script(script).unwrap_err();
            assert!(error.starts_with("the script ran for more than"), "{script}: {error}");
        }
        let grows = "local t = {} while true do t[#t + 1] = {} end";
        let error = run_script(grows).unwrap_err();
        assert!(error.contains("memory") || error.contains("more than"), "{error}");
        assert!(
            run_script("local function f() return 1 + f() end return f()").is_err(),
            "the stack is bounded"
        );
    }

    #[test]
    fn deep_objects_are_refused() {
        let deep = (0..MAX_DEPTH + 2).fold(json!({}), |inner, _| json!({"a": inner}));
        assert!(run("return {}", &deep, false, &noon()).unwrap_err().to_string().contains("nested deeper"));
    }
}
