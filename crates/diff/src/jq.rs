//! The paths that a jq path expression names in a value. Programs that could run without end are refused.

use jaq_core::{
    Compiler, Ctx, Vars, data,
    load::{Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::{Val, read};
use serde_json::Value;
use tiphys_value::FieldPath;

/// Words of programs that could run without end, read input or end the process.
const REFUSED: [&str; 17] = [
    "def",
    "while",
    "until",
    "repeat",
    "recurse",
    "range",
    "limit",
    "infinite",
    "input",
    "inputs",
    "halt",
    "halt_error",
    "reduce",
    "foreach",
    "env",
    "import",
    "include",
];
/// Longest program.
const MAX_PROGRAM: usize = 4096;
/// Most paths taken from one expression.
const MAX_PATHS: usize = 100_000;

/// Checks a path expression.
///
/// # Errors
/// It is too long, uses a refused word, or does not parse.
pub(crate) fn check(expression: &str) -> Result<(), String> {
    if expression.len() > MAX_PROGRAM {
        return Err(format!("longer than {MAX_PROGRAM} bytes"));
    }
    let code = without_texts(expression);
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
    if let Some(word) = words.into_iter().find(|word| REFUSED.contains(word)) {
        return Err(format!("{word:?} is not allowed in a path expression"));
    }
    paths(expression, &Value::Null).map(|_| ())
}

/// An expression without what its strings say literally: keys may be named like functions. What is interpolated stays.
fn without_texts(expression: &str) -> String {
    let mut code = String::with_capacity(expression.len());
    // Parentheses open in each interpolation that encloses the place.
    let mut interpolations: Vec<usize> = Vec::new();
    let mut in_text = false;
    let mut chars = expression.chars();
    while let Some(c) = chars.next() {
        match (in_text, c) {
            // The next character belongs to the escape, whatever it is.
            (true, '\\') if chars.next() == Some('(') => {
                interpolations.push(0);
                in_text = false;
                code.push(' ');
            }
            (true, '"') => in_text = false,
            (true, _) => {}
            (false, '"') => {
                in_text = true;
                code.push('"');
            }
            (false, ')') if interpolations.last() == Some(&0) => {
                interpolations.pop();
                in_text = true;
                code.push(' ');
            }
            (false, _) => {
                if let Some(open) = interpolations.last_mut() {
                    *open = if c == '(' { *open + 1 } else { *open - usize::from(c == ')') };
                }
                code.push(c);
            }
        }
    }
    code
}

/// The paths that an expression names in a value. A value that the expression does not fit has none.
///
/// # Errors
/// The expression does not parse.
pub(crate) fn paths(expression: &str, value: &Value) -> Result<Vec<FieldPath>, String> {
    let code = format!("path({expression})");
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(defs)
        .load(&arena, File { code: code.as_str(), path: () })
        .map_err(|_| "the expression does not parse".to_owned())?;
    let filter = Compiler::default()
        .with_funs(funs)
        .compile(modules)
        .map_err(|_| "the expression calls an unknown function".to_owned())?;
    let input: Val = read::parse_single(value.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut found = Vec::new();
    for output in filter.id.run((context, input)).map(unwrap_valr).take(MAX_PATHS) {
        // As in Argo CD, an expression that does not fit the object names nothing in it.
        let Ok(output) = output else { break };
        let path = serde_json::from_str::<Value>(&output.to_string()).ok();
        found.extend(path.as_ref().and_then(read_path));
    }
    Ok(found)
}

fn read_path(path: &Value) -> Option<FieldPath> {
    path.as_array()?.iter().try_fold(FieldPath::default(), |path, step| match step {
        Value::String(key) => Some(path.key(key)),
        Value::Number(number) => Some(path.index(usize::try_from(number.as_u64()?).ok()?)),
        _ => None,
    })
}
