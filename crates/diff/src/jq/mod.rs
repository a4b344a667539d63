//! The paths that a jq path expression names in a value. What a program may spend is limited, see [`meter`].
//!
//! Argo CD writes an expression between `del(` and `)` and runs that. An expression that closes the
//! parenthesis itself, `.none) | .data.key |= (fromjson | del(.secret) | tojson`, so is a program, and people
//! use it to ignore parts of texts: it is one here, too.

mod meter;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock},
};

use jaq_core::{
    Compiler, Ctx, Filter, Vars,
    compile::Undefined,
    load::{
        Arena, File, Lexer, Loader, Parser,
        parse::{Def, Term},
    },
};
use jaq_json::{Val, read};
use parking_lot::Mutex;
use serde_json::Value;
use tiphys_diag::{Panicked, catch_panic};
use tiphys_value::FieldPath;

use meter::{Meter, Metered, Run};

/// Longest program.
const MAX_PROGRAM: usize = 4096;
/// Most paths taken from one expression.
const MAX_PATHS: usize = 100_000;
/// Most values taken from a program that makes one.
const MAX_REWRITTEN: usize = 16;
/// Most programs kept at hand.
const MAX_KEPT: usize = 512;
/// Stack of whatever reads or runs a program: nesting of the longest program and of the deepest value fit in.
const STACK: usize = 64 << 20;
/// The name of the function that a path expression is made.
const EXPRESSION: &str = "__expression";
/// What errors call a program.
const WHAT: &str = "the jq expression";
/// What is said where the parser does not say more.
const NO_JQ: &str = "it is not jq";
/// What jaq means otherwise than jq and Argo CD's gojq, which writes the keys of an object in their order.
const JQ_DEFS: &str = r#"def repeat(f): def rec: ., (f | rec); rec;
def __ordered: if type == "object" then to_entries | sort_by(.key) | map(.value |= __ordered) | from_entries
  elif type == "array" then map(__ordered) else . end;
def __tojson: tojson;
def tojson: __ordered | __tojson;"#;
/// Functions that Argo CD's jq does not have or that are about the process: what they would tell or end is
/// not a tenant's.
const ABSENT: [&str; 9] =
    ["debug", "debug_empty", "env", "halt", "halt_error", "input", "inputs", "stderr", "stderr_empty"];

/// A path expression that can be run.
#[derive(Clone)]
pub(crate) struct Program {
    text: Arc<str>,
    filter: Arc<Filter<Metered>>,
    /// It makes a value of a value, and names no paths.
    rewrites: bool,
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Program {}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// Why a run was ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ended {
    /// The program would have taken too much time, memory or stack.
    #[error("it was ended, because it takes too much time or memory")]
    Limit,
    /// The library failed.
    #[error(transparent)]
    Library(#[from] Panicked),
}

impl Program {
    /// Reads a path expression, unless that was done before.
    ///
    /// # Errors
    /// It is too long, does not parse, or uses what is not defined.
    pub(crate) fn cached(expression: &str) -> Result<Self, String> {
        static KEPT: LazyLock<Mutex<HashMap<Arc<str>, Program>>> = LazyLock::new(Mutex::default);
        let kept = || KEPT.lock();
        if let Some(program) = kept().get(expression) {
            return Ok(program.clone());
        }
        let compiled = catch_panic(WHAT, || stacker::maybe_grow(STACK, STACK, || compile(expression)));
        let (filter, rewrites) = compiled.map_err(|panicked| panicked.to_string())??;
        let program = Self { text: expression.into(), filter: Arc::new(filter), rewrites };
        let mut kept = kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(program.text.clone(), program.clone());
        Ok(program)
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The paths that the expression names in a value. A value that it does not fit has none.
    ///
    /// # Errors
    /// The run was ended.
    pub(crate) fn paths(&self, value: &Value) -> Result<Vec<FieldPath>, Ended> {
        if self.rewrites {
            return Ok(Vec::new());
        }
        let outputs = self.run(value, MAX_PATHS)?;
        Ok(outputs.unwrap_or_default().iter().filter_map(read_path).collect())
    }

    /// What the program makes of a value. `None` if it only names paths, does not fit the value, or makes
    /// several of it.
    ///
    /// # Errors
    /// The run was ended.
    pub(crate) fn rewrite(&self, value: &Value) -> Result<Option<Value>, Ended> {
        if !self.rewrites {
            return Ok(None);
        }
        let outputs = self.run(value, MAX_REWRITTEN)?;
        let [output] = outputs.as_deref().unwrap_or_default() else { return Ok(None) };
        Ok(serde_json::from_str(&output.to_string()).ok().filter(Value::is_object))
    }

    /// What the program yields for a value; `None` if it fails.
    fn run(&self, value: &Value, most: usize) -> Result<Option<Vec<Val>>, Ended> {
        catch_panic(WHAT, || stacker::maybe_grow(STACK, STACK, || self.run_unguarded(value, most)))?
    }

    fn run_unguarded(&self, value: &Value, most: usize) -> Result<Option<Vec<Val>>, Ended> {
        let Ok(input) = read::parse_single(value.to_string().as_bytes()) else { return Ok(None) };
        let meter = Meter::default();
        let run = Run { lut: &self.filter.lut, meter: &meter };
        let context = Ctx::<Metered>::new(run, Vars::new([]));
        let mut found = Vec::new();
        for output in self.filter.id.run((context, input)) {
            match output {
                Ok(_) if found.len() >= most => return Err(Ended::Limit),
                Ok(output) => found.push(output),
                Err(exception) => return exception.get_err().map(|_| None).map_err(|_| Ended::Limit),
            }
        }
        Ok(Some(found))
    }
}

/// Reads a program.
fn parse(expression: &str) -> Result<Term<&str>, String> {
    if expression.len() > MAX_PROGRAM {
        return Err(format!("longer than {MAX_PROGRAM} bytes"));
    }
    let missing = |what: &str, at: &str| match at {
        "" => format!("{what} expected at the end"),
        at => format!("{what} expected at {at:?}"),
    };
    let tokens = Lexer::new(expression).lex().map_err(|errors| match errors.first() {
        Some((expected, at)) => missing(expected.as_str(), at),
        None => NO_JQ.to_owned(),
    })?;
    Parser::new(&tokens).parse(|parser| parser.term()).map_err(|errors| match errors.first() {
        Some((expected, token)) => missing(expected.as_str(), token.map_or("", |token| token.0)),
        None => NO_JQ.to_owned(),
    })
}

/// Makes the paths of an expression a program that can be run; or what stands between Argo CD's parentheses,
/// and whether it is that.
fn compile(expression: &str) -> Result<(Filter<Metered>, bool), String> {
    let error = match parse(expression) {
        Ok(term) => return Ok((link(meter::path_of(term))?, false)),
        Err(error) => error,
    };
    if !expression.contains(')') || expression.len() > MAX_PROGRAM - "del()".len() {
        return Err(error);
    }
    let whole = format!("del({expression})");
    let term = parse(&whole).map_err(|_| error)?;
    Ok((link(meter::whole(term))?, true))
}

/// Makes a term a program that can be run.
fn link<'s>(body: Term<&'s str>) -> Result<Filter<Metered>, String> {
    let path = Def { name: EXPRESSION, args: Vec::new(), body };
    let of_jq = jaq_core::load::parse(JQ_DEFS, |parser| parser.defs()).unwrap_or_default();
    let library = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(of_jq);
    let library = library.filter(|def| !ABSENT.contains(&def.name)).map(meter::metered_def);
    let library = meter::defs().into_iter().chain(library);
    let defs = library.map(|def: Def<&'static str>| -> Def<&'s str> { def }).chain([path]);
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let funs = funs.filter(|fun| !ABSENT.contains(&fun.0)).chain(meter::funs());
    let arena = Arena::default();
    let main = File { code: EXPRESSION, path: () };
    let modules = Loader::new(defs).load(&arena, main).map_err(|_| NO_JQ.to_owned())?;
    Compiler::default().with_funs(funs).compile(modules).map_err(|errors| {
        match errors.iter().flat_map(|(_, undefined)| undefined).next() {
            Some((name, Undefined::Filter(arity))) => format!("function not defined: {name}/{arity}"),
            Some((name, what)) => format!("{} not defined: {name}", what.as_str()),
            None => "it cannot be compiled".to_owned(),
        }
    })
}

fn read_path(path: &Val) -> Option<FieldPath> {
    let Val::Arr(steps) = path else { return None };
    steps.iter().try_fold(FieldPath::default(), |path, step| match step {
        Val::TStr(key) => Some(path.key(str::from_utf8(key).ok()?)),
        Val::Num(jaq_json::Num::Int(index)) => Some(path.index(usize::try_from(*index).ok()?)),
        _ => None,
    })
}
