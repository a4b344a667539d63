//! The paths that a jq path expression names in a value. What a program may spend is limited, see [`meter`].

mod meter;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock, Mutex, PoisonError},
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
use serde_json::Value;
use tiphys_value::FieldPath;

use meter::{Meter, Metered, Run};

/// Longest program.
const MAX_PROGRAM: usize = 4096;
/// Most paths taken from one expression.
const MAX_PATHS: usize = 100_000;
/// Most programs kept at hand.
const MAX_KEPT: usize = 512;
/// Stack of whatever reads or runs a program: nesting of the longest program and of the deepest value fit in.
const STACK: usize = 64 << 20;
/// The name of the function that a path expression is made.
const EXPRESSION: &str = "__expression";
/// What is said where the parser does not say more.
const NO_JQ: &str = "it is not jq";
/// What jaq means otherwise than jq and Argo CD's gojq.
const JQ_DEFS: &str = "def repeat(f): def rec: ., (f | rec); rec;";
/// Functions that Argo CD's jq does not have or that are about the process: what they would tell or end is not a tenant's.
const ABSENT: [&str; 9] =
    ["debug", "debug_empty", "env", "halt", "halt_error", "input", "inputs", "stderr", "stderr_empty"];

/// A path expression that can be run.
#[derive(Clone)]
pub(crate) struct Program {
    text: Arc<str>,
    filter: Arc<Filter<Metered>>,
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

/// A run that was ended: the program would have taken too much time, memory or stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was ended, because it takes too much time or memory")]
pub(crate) struct Ended;

impl Program {
    /// Reads a path expression, unless that was done before.
    ///
    /// # Errors
    /// It is too long, does not parse, or uses what is not defined.
    pub(crate) fn of(expression: &str) -> Result<Self, String> {
        static KEPT: LazyLock<Mutex<HashMap<Arc<str>, Program>>> = LazyLock::new(Mutex::default);
        let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = kept().get(expression) {
            return Ok(program.clone());
        }
        let filter = stacker::maybe_grow(STACK, STACK, || compile(expression))?;
        let program = Self { text: expression.into(), filter: Arc::new(filter) };
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
        stacker::maybe_grow(STACK, STACK, || {
            let Ok(input) = read::parse_single(value.to_string().as_bytes()) else { return Ok(Vec::new()) };
            let meter = Meter::default();
            let run = Run { lut: &self.filter.lut, meter: &meter };
            let context = Ctx::<Metered>::new(run, Vars::new([]));
            let mut found = Vec::new();
            for output in self.filter.id.run((context, input)) {
                match output {
                    Ok(_) if found.len() >= MAX_PATHS => return Err(Ended),
                    Ok(output) => found.extend(read_path(&output)),
                    Err(exception) => return exception.get_err().map(|_| Vec::new()).map_err(|_| Ended),
                }
            }
            Ok(found)
        })
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

/// Makes the paths of an expression a program that can be run.
fn compile<'s>(expression: &'s str) -> Result<Filter<Metered>, String> {
    let path = Def { name: EXPRESSION, args: Vec::new(), body: meter::path_of(parse(expression)?) };
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
