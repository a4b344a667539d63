//! One compiled expression.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    functions,
    macros::{self, UNUSED},
    names,
};
use tiphys_diag::catch_panic;

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, IdedExpr, Value,
        common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, MapEntryExpr, MapExpr},
        parser::Parser,
    },
};

/// Longest expression that is read, in bytes.
const MAX_LENGTH: usize = 64 * 1024;
/// How many signs of operators an expression may have. Each may be a level of its tree.
const MAX_SIGNS: usize = 4096;
/// How deep brackets may stand in each other: as many as the API server's parser takes. Of more, and of those
/// that are never closed, the parser here takes minutes.
const MAX_NESTING: usize = 250;
/// How deep the tree of an expression may be.
const MAX_TREE_DEPTH: usize = 500;
/// Trees of at most this depth are evaluated on the stack at hand.
const SHALLOW: usize = 50;
/// The stack on which an expression is read, and on which a deep one is evaluated, in bytes. The parser takes
/// some kilobytes a level.
const STACK: usize = 128 << 20;

/// Why an expression cannot be compiled, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("compilation failed: {0}")]
pub struct CompileError(pub(super) String);

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The operands' types do not fit.
    #[error("no such overload")]
    NoSuchOverload,
    /// Loops over the given data would take too long.
    #[error("operation cancelled: actual cost limit exceeded")]
    Cost,
    /// A function or macro that Kubernetes has and this program does not.
    #[error("the CEL function or macro '{0}' is not supported here")]
    Unsupported(String),
    /// Anything else, such as a missing key.
    #[error("{0}")]
    Other(String),
}

/// A compiled expression; cheap to clone.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Arc<IdedExpr>,
    /// The same, whose operands pay for their size: what is evaluated.
    weighed: Arc<IdedExpr>,
    source: Arc<str>,
    variables: Arc<BTreeSet<String>>,
    /// What an evaluation costs at least; loops add to it.
    cost: u64,
    /// How many levels the tree has.
    depth: usize,
}

/// The variables that expressions see.
pub struct Environment<'a> {
    context: Context<'a>,
}

thread_local! {
    /// The functions of CEL and of Kubernetes' libraries; they take longer to register than most rules to
    /// run.
    static FUNCTIONS: &'static Context<'static> = {
        let mut context = Context::default().with_all();
        super::authorizer::register(&mut context);
        functions::register(&mut context);
        Box::leak(Box::new(context))
    };
}

impl Environment<'_> {
    /// An environment with all functions and these variables.
    pub fn new(variables: impl IntoIterator<Item = (String, Value)>) -> Environment<'static> {
        let parent = FUNCTIONS.with(|functions| *functions);
        let mut context = parent.new_inner_scope();
        for (name, value) in variables {
            // A CEL value becomes a CEL value without fail.
            let _ = context.add_variable(name, value);
        }
        Environment { context }
    }
}

impl Expression {
    /// Compiles an expression that may use these variables.
    ///
    /// # Errors
    /// Syntax errors, and names that are no variable.
    pub fn compile(source: &str, declared: &[&str]) -> Result<Self, CompileError> {
        let refuse = |why: String| Err(CompileError(format!("ERROR: <input>:1:1: {why}")));
        if source.len() > MAX_LENGTH {
            return refuse(format!("the expression is longer than {MAX_LENGTH} bytes"));
        }
        let signs = source.bytes().filter(|byte| b"+-*/%&|?:.,<>=![({".contains(byte)).count();
        if signs > MAX_SIGNS {
            return refuse(format!("the expression has {signs} operators; at most {MAX_SIGNS} are read"));
        }
        if nesting(source) > MAX_NESTING {
            return refuse(format!("expression recursion limit exceeded: {MAX_NESTING}"));
        }
        match signs > SHALLOW {
            true => stacker::grow(STACK, || Self::compile_here(source, declared)),
            false => Self::compile_here(source, declared),
        }
    }

    fn compile_here(source: &str, declared: &[&str]) -> Result<Self, CompileError> {
        // The library shows a fault below its line, and no line may be longer than it can indent.
        let parsed = catch_panic("the CEL expression", || {
            let parsed = Parser::default().enable_optional_syntax(true).parse(source);
            parsed.map_err(|errors| with_server_indent(&errors.to_string()))
        })
        .map_err(|panicked| CompileError(format!("ERROR: <input>:1:1: {panicked}")))?;
        let mut root = parsed.map_err(CompileError)?;
        let depth = depth(&root);
        if depth > MAX_TREE_DEPTH {
            return Err(CompileError(format!(
                "ERROR: <input>:1:1: the expression is {depth} levels deep; at most {MAX_TREE_DEPTH} are read"
            )));
        }
        expand(&mut root);
        let mut facts = Facts { declared, bound: Vec::new(), unknown: Vec::new(), used: BTreeSet::new() };
        facts.visit(&root)?;
        if !facts.unknown.is_empty() {
            return Err(undeclared(source, &facts.unknown));
        }
        let cost = meter(&mut root);
        let mut weighed = root.clone();
        weigh_operands(&mut weighed);
        Ok(Self {
            root: Arc::new(root),
            weighed: Arc::new(weighed),
            source: source.into(),
            variables: Arc::new(facts.used),
            cost,
            depth,
        })
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the expression uses a variable.
    pub fn mentions(&self, variable: &str) -> bool {
        self.variables.contains(variable)
    }

    /// The fault of looking for a member of a variable that it has not, such as a variable of a policy that
    /// is not declared; the first one, shown in the text.
    pub fn undefined_member(&self, variable: &str, known: &[&str]) -> Option<String> {
        let mut missing = Vec::new();
        members(&self.root, variable, &mut missing);
        let unknown = missing.into_iter().find(|name| !known.contains(&name.as_str()))?;
        let at = self.source.find(&format!("{variable}.{unknown}")).map_or(0, |at| at + variable.len());
        Some(shown_at(&self.source, at, &format!("undefined field '{unknown}'")))
    }

    /// What CEL calls the type of the result, where the outermost operation tells it.
    pub fn kind(&self) -> Option<&'static str> {
        match &self.root.expr {
            Expr::Select(select) => Some(if select.test { "bool" } else { "dyn" }),
            written => kind_as_written(written),
        }
    }

    pub(super) fn root(&self) -> &IdedExpr {
        &self.root
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// Missing keys, operands that do not fit, loops that take too long.
    pub fn evaluate(&self, environment: &Environment<'_>) -> Result<Value, EvaluationError> {
        functions::begin(self.cost);
        let resolve = || match self.depth > SHALLOW {
            true => stacker::grow(STACK, || Value::resolve(&self.weighed, &environment.context)),
            false => Value::resolve(&self.weighed, &environment.context),
        };
        let result = catch_panic("the CEL expression", resolve)
            .map_err(|panicked| EvaluationError::Other(panicked.to_string()))?;
        match functions::spent() > functions::PER_CALL {
            true => Err(EvaluationError::Cost),
            false => result.map_err(explained),
        }
    }

    /// What the last evaluation of any expression in this thread cost, in units of the API server's kind:
    /// about one for every name, field and call, again for every step of a loop.
    pub(super) fn last_cost() -> u64 {
        functions::spent()
    }

    /// Evaluates an expression whose result is a truth value.
    ///
    /// # Errors
    /// As [`Self::evaluate`], and results of another type.
    pub fn holds(&self, environment: &Environment<'_>) -> Result<bool, EvaluationError> {
        match self.evaluate(environment)? {
            Value::Bool(holds) => Ok(holds),
            _ => Err(EvaluationError::Other("cel expression evaluation result type should be bool".into())),
        }
    }
}

/// The parser shows the line without the space that the API server's has before it.
fn with_server_indent(text: &str) -> String {
    text.replace("\n| ", "\n | ")
}

/// A fault at the first place where a name stands in the text.
pub(super) fn fault_at(source: &str, name: &str, message: &str) -> CompileError {
    let mut places = source.match_indices(name).map(|(at, _)| at);
    let place = places.find(|at| is_whole(source, *at, name));
    CompileError(shown_at(source, place.unwrap_or(0), message))
}

/// A message with the place in the text that it is about, given in bytes.
pub(super) fn shown_at(source: &str, offset: usize, message: &str) -> String {
    let line = source[..offset].matches('\n').count();
    let text = source.lines().nth(line).unwrap_or_default();
    let column = offset - source[..offset].rfind('\n').map_or(0, |at| at + 1);
    let dots = ".".repeat(column);
    format!("ERROR: <input>:{}:{}: {message}\n | {text}\n | {dots}^", line + 1, column + 1)
}

/// What CEL calls the type of a literal, a list or a map.
pub(super) fn kind_as_written(expression: &Expr) -> Option<&'static str> {
    match expression {
        Expr::Literal(LiteralValue::Boolean(_)) => Some("bool"),
        Expr::Literal(LiteralValue::String(_)) => Some("string"),
        Expr::Literal(LiteralValue::Int(_)) => Some("int"),
        Expr::Literal(LiteralValue::UInt(_)) => Some("uint"),
        Expr::Literal(LiteralValue::Double(_)) => Some("double"),
        Expr::List(_) => Some("list(dyn)"),
        Expr::Map(_) => Some("map(dyn, dyn)"),
        _ => None,
    }
}

fn explained(error: ExecutionError) -> EvaluationError {
    match error {
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. } => EvaluationError::NoSuchOverload,
        ExecutionError::UndeclaredReference(name) => EvaluationError::Unsupported(name.to_string()),
        ExecutionError::NoSuchKey(name) => EvaluationError::Other(format!("no such key: {name}")),
        ExecutionError::DivisionByZero(_) => EvaluationError::Other("division by zero".into()),
        ExecutionError::RemainderByZero(_) => EvaluationError::Other("modulus by zero".into()),
        ExecutionError::Overflow(..) => EvaluationError::Other("integer overflow".into()),
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => {
            EvaluationError::Other(format!("index out of bounds: {index}"))
        }
        ExecutionError::FunctionError { message, .. } => EvaluationError::Other(message),
        other => EvaluationError::Other(other.to_string()),
    }
}

/// Replaces what mutating policies make, such as `Object.spec{replicas: 1}` and `JSONPatch{op: "add"}`, by
/// maps.
fn expand_objects(node: &mut IdedExpr) {
    let is_known = |name: &str| name == "Object" || name == "JSONPatch" || name.starts_with("Object.");
    if let Expr::Struct(made) = &mut node.expr
        && is_known(&made.type_name)
    {
        let mut entries = std::mem::take(&mut made.entries);
        for entry in &mut entries {
            if let EntryExpr::StructField(field) = &mut entry.expr {
                let key = Expr::Literal(LiteralValue::String(std::mem::take(&mut field.field).into()));
                entry.expr = EntryExpr::MapEntry(MapEntryExpr {
                    key: IdedExpr { id: entry.id, expr: key },
                    value: std::mem::take(&mut field.value),
                    optional: field.optional,
                });
            }
        }
        node.expr = Expr::Map(MapExpr { entries });
    }
}

/// Has fields of optionals, and optional fields, looked up as entries of a map: `x.?a.b` as `x[?"a"][?"b"]`. The
/// library's own selection of an optional field fails where the field is missing, and makes an optional of an
/// optional of it.
fn expand_optional_selection(node: &mut IdedExpr) {
    let id = node.id;
    match &mut node.expr {
        Expr::Call(call) if call.func_name == OPTIONAL_FIELD => call.func_name = OPTIONAL_ENTRY.to_owned(),
        Expr::Select(select) if is_optional(&select.operand) => {
            let field = Expr::Literal(LiteralValue::String(std::mem::take(&mut select.field).into()));
            let args = vec![std::mem::take(&mut *select.operand), IdedExpr { id, expr: field }];
            let entry = Expr::Call(CallExpr { func_name: OPTIONAL_ENTRY.to_owned(), target: None, args });
            node.expr = match select.test {
                false => entry,
                true => Expr::Call(CallExpr {
                    func_name: "hasValue".to_owned(),
                    target: Some(Box::new(IdedExpr { id, expr: entry })),
                    args: Vec::new(),
                }),
            };
        }
        _ => {}
    }
}

const OPTIONAL_FIELD: &str = "_?._";
const OPTIONAL_ENTRY: &str = "_[?_]";

/// Whether a look-up gives an optional: it is one itself, or looks into one.
fn is_optional(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Call(call) if call.func_name == OPTIONAL_ENTRY => true,
        Expr::Call(call) if call.func_name == "_[_]" => call.args.first().is_some_and(is_optional),
        _ => false,
    }
}

/// Replaces macros and names of Kubernetes' environment by what they stand for, the inner ones first.
fn expand(node: &mut IdedExpr) {
    expand_objects(node);
    children_mut(node).into_iter().for_each(expand);
    macros::expand(node);
    expand_optional_selection(node);
    // The name with the point is one variable of Kubernetes' environment.
    let of_request = matches!(&node.expr, Expr::Select(select) if select.field == "requestResource"
        && select.operand.expr == Expr::Ident("authorizer".into()));
    if of_request {
        node.expr = Expr::Ident("authorizer.requestResource".into());
    }
}

/// Has every step of a loop pay for itself; returns what the rest costs.
fn meter(node: &mut IdedExpr) -> u64 {
    let own = match &node.expr {
        Expr::Literal(_) | Expr::Unspecified => 0,
        Expr::List(_) => 10,
        Expr::Map(_) | Expr::Struct(_) => 30,
        Expr::Call(call) if call.func_name == "_?_:_" => 0,
        Expr::Ident(_) | Expr::Select(_) | Expr::Call(_) | Expr::Comprehension(_) => 1,
    };
    let Expr::Comprehension(c) = &mut node.expr else {
        return children_mut(node).into_iter().map(meter).fold(own, u64::saturating_add);
    };
    let outside = meter(&mut c.iter_range).saturating_add(meter(&mut c.accu_init));
    let inside = meter(&mut c.loop_cond).saturating_add(meter(&mut c.loop_step)).saturating_add(1);
    let after = meter(&mut c.result);
    if c.iter_var != UNUSED {
        let id = c.loop_step.id;
        let cost = i64::try_from(inside).unwrap_or(i64::MAX);
        let cost = IdedExpr { id, expr: Expr::Literal(LiteralValue::Int(cost.into())) };
        let args = vec![cost, std::mem::take(&mut c.loop_step)];
        let paid = CallExpr { func_name: "@cost".into(), target: None, args };
        c.loop_step = IdedExpr { id, expr: Expr::Call(paid) };
    }
    outside.saturating_add(after).saturating_add(own)
}

/// Calls that neither copy nor go through what they are given.
const SELECTING: [&str; 8] = ["_?_:_", "_&&_", "_||_", "!_", "_[_]", "_[?_]", "_?._", "@optional"];

/// What macros keep values by.
const KEEPING: [&str; 4] = ["@insert", "@insertAll", "@entries", "@sortByKeys"];
/// Literals of so many bytes cost nothing.
const SHORT: usize = 64;

/// Whether a name is that of a type or library in every expression.
fn is_library(name: &str) -> bool {
    GLOBALS.contains(&name) || name == "jsonpatch"
}

/// Has what calls, lists and maps are made of pay for its size before they are evaluated.
fn weigh_operands(node: &mut IdedExpr) {
    children_mut(node).into_iter().for_each(weigh_operands);
    let pays = match &node.expr {
        Expr::List(_) | Expr::Map(_) => true,
        Expr::Call(call) if call.func_name.starts_with('@') => KEEPING.contains(&&*call.func_name),
        Expr::Call(call) => !SELECTING.contains(&&*call.func_name),
        _ => false,
    };
    if !pays {
        return;
    }
    if let Expr::Call(CallExpr { func_name, target: Some(target), .. }) = &mut node.expr
        && func_name == "format"
    {
        wrap(target, "@format");
    }
    for operand in children_mut(node) {
        let is_large = match &operand.expr {
            // What a loop has gathered pays at every step, see `@cost`; nobody can write its name. A library
            // is no value.
            Expr::Ident(name) => !name.starts_with('@') && !is_library(name),
            Expr::Literal(LiteralValue::String(text)) => text.inner().len() > SHORT,
            Expr::Literal(LiteralValue::Bytes(bytes)) => bytes.inner().len() > SHORT,
            Expr::Literal(_) | Expr::List(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => false,
            Expr::Call(call) => call.func_name != "@weighed",
            Expr::Select(_) | Expr::Comprehension(_) => true,
        };
        if is_large {
            wrap(operand, "@weighed");
        }
    }
}

fn wrap(node: &mut IdedExpr, function: &str) {
    let id = node.id;
    let args = vec![std::mem::take(node)];
    let call = CallExpr { func_name: function.into(), target: None, args };
    *node = IdedExpr { id, expr: Expr::Call(call) };
}

fn children_mut(node: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut node.expr {
        Expr::Call(CallExpr { target, args, .. }) => {
            target.iter_mut().map(|target| &mut **target).chain(args).collect()
        }
        Expr::Comprehension(c) => {
            vec![&mut c.iter_range, &mut c.accu_init, &mut c.loop_cond, &mut c.loop_step, &mut c.result]
        }
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => map
            .entries
            .iter_mut()
            .flat_map(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
                EntryExpr::StructField(field) => vec![&mut field.value],
            })
            .collect(),
        Expr::Select(select) => vec![&mut *select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => Vec::new(),
    }
}

/// How deep brackets stand in each other, outside of texts.
fn nesting(source: &str) -> usize {
    let (mut open, mut deepest, mut quote, mut is_escaped) = (0usize, 0, None, false);
    for byte in source.bytes() {
        match (quote, byte) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(end), _) if byte == end => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => {
                open += 1;
                deepest = deepest.max(open);
            }
            (None, b')' | b']' | b'}') => open = open.saturating_sub(1),
            (None, _) => {}
        }
    }
    deepest
}

/// How many levels a tree has.
fn depth(root: &IdedExpr) -> usize {
    let mut deepest = 0;
    let mut left = vec![(root, 1)];
    while let Some((node, level)) = left.pop() {
        deepest = deepest.max(level);
        left.extend(children(node).into_iter().map(|child| (child, level + 1)));
    }
    deepest
}

/// The parts of a node.
pub(super) fn children(node: &IdedExpr) -> Vec<&IdedExpr> {
    match &node.expr {
        Expr::Call(CallExpr { target, args, .. }) => {
            target.iter().map(|target| &**target).chain(args).collect()
        }
        Expr::Comprehension(c) => vec![&c.iter_range, &c.accu_init, &c.loop_cond, &c.loop_step, &c.result],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map
            .entries
            .iter()
            .flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            })
            .collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => Vec::new(),
    }
}

/// Names of types and libraries, which stand in expressions as variables do.
const GLOBALS: [&str; 16] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "sets",
    "strings",
    "lists",
    "optional",
    "format",
    "ip",
];

/// What a look through an expression finds.
struct Facts<'a> {
    declared: &'a [&'a str],
    /// Names that loops have given, the innermost last.
    bound: Vec<String>,
    /// Names of nothing, and whether they are called.
    unknown: Vec<(String, bool)>,
    used: BTreeSet<String>,
}

impl Facts<'_> {
    /// Whether the variables are those of policies.
    fn is_policy(&self) -> bool {
        self.declared.contains(&"object")
    }

    fn visit(&mut self, node: &IdedExpr) -> Result<(), CompileError> {
        match &node.expr {
            Expr::Struct(_) | Expr::Unspecified => {
                return Err(CompileError(
                    "ERROR: <input>:1:1: message construction is not supported here".into(),
                ));
            }
            Expr::Ident(name) => self.look_up(name),
            Expr::Call(call) if !names::is_function(&call.func_name, self.is_policy()) => {
                self.unknown.push((call.func_name.clone(), true));
            }
            Expr::Comprehension(c) => {
                self.visit(&c.iter_range)?;
                self.visit(&c.accu_init)?;
                let depth = self.bound.len();
                self.bound.extend([c.iter_var.clone(), c.accu_var.clone()]);
                let parts = [&c.loop_cond, &c.loop_step, &c.result];
                let result = parts.into_iter().try_for_each(|part| self.visit(part));
                self.bound.truncate(depth);
                return result;
            }
            _ => {}
        }
        children(node).into_iter().try_for_each(|child| self.visit(child))
    }

    fn look_up(&mut self, name: &str) {
        let is_library = GLOBALS.contains(&name) || (name == "jsonpatch" && self.is_policy());
        if self.declared.contains(&name) {
            self.used.insert(name.to_owned());
        } else if !is_library && !name.starts_with('@') && !self.bound.iter().any(|bound| bound == name) {
            self.unknown.push((name.to_owned(), false));
        }
    }
}

/// The members of a variable that an expression looks for.
fn members(node: &IdedExpr, variable: &str, found: &mut Vec<String>) {
    if let Expr::Select(select) = &node.expr
        && matches!(&select.operand.expr, Expr::Ident(name) if name == variable)
    {
        found.push(select.field.clone());
    }
    children(node).into_iter().for_each(|child| members(child, variable, found));
}

/// The faults of names that nothing has, in the order of their places.
fn undeclared(source: &str, unknown: &[(String, bool)]) -> CompileError {
    let mut faults: Vec<(usize, String)> = Vec::new();
    for (name, is_called) in unknown {
        let seen = |at: usize| faults.iter().any(|(known, _)| *known == at);
        let places =
            source.match_indices(name.as_str()).map(|(at, _)| at).filter(|at| is_whole(source, *at, name));
        let places = places.filter_map(|at| match (is_called, source[at + name.len()..].starts_with('(')) {
            (true, true) => Some(at + name.len()),
            (false, false) if !source[..at].ends_with('.') => Some(at),
            _ => None,
        });
        let place = places.into_iter().find(|at| !seen(*at)).unwrap_or(0);
        faults.push((place, format!("undeclared reference to '{name}' (in container '')")));
    }
    faults.sort();
    faults.dedup();
    let shown: Vec<String> = faults.iter().map(|(at, message)| shown_at(source, *at, message)).collect();
    CompileError(shown.join("\n"))
}

/// Whether what stands at a place is the whole name.
fn is_whole(source: &str, at: usize, name: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    (name.starts_with('.') || !is_word(source[..at].chars().next_back()))
        && !is_word(source[at + name.len()..].chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_far_out_in_a_line_is_an_error() {
        let source = format!("'{}'+", "a".repeat(MAX_LENGTH - 3));
        let error = Expression::compile(&source, &[]).unwrap_err().to_string();
        assert!(error.contains("ERROR: <input>:1:"), "{error}");
    }

    #[test]
    fn long_and_deep_expressions_are_read_or_refused() {
        let chain = |count: usize| vec!["1"; count].join("+") + " > 0";
        assert_eq!(holds(&chain(400)), Ok(true));
        let wide = format!("[{}].size() > 0", vec!["1"; 2000].join(","));
        assert_eq!(holds(&wide), Ok(true));
        for deep in [
            chain(600),
            chain(30_000),
            "self".to_owned() + &".a".repeat(30_000),
            "(".repeat(30_000) + "1" + &")".repeat(30_000),
            "!".repeat(60_000) + "true",
            "self[0] ? 1 : ".repeat(4_000) + "1",
            "[".repeat(30_000) + &"]".repeat(30_000),
            "size(".repeat(10_000) + "[]" + &")".repeat(10_000),
        ] {
            assert!(Expression::compile(&deep, &["self"]).is_err(), "{}", &deep[..20]);
        }
    }

    #[test]
    fn brackets_stand_in_each_other_as_deep_as_the_api_server_reads() {
        // What is never closed took half a minute.
        for deep in ["[".repeat(2048), "(".repeat(251) + "1", "{1: ".repeat(300), "'a'.f(".repeat(300)] {
            let error = Expression::compile(&deep, &[]).unwrap_err().to_string();
            assert!(error.ends_with("expression recursion limit exceeded: 250"), "{error}");
        }
        let text = format!("'{}' != \"it's [{}\"", "[".repeat(300), "(".repeat(300));
        assert_eq!(holds(&text), Ok(true));
        assert_eq!(holds(&("(".repeat(80) + "true" + &")".repeat(80))), Ok(true));
    }

    #[test]
    fn objects_are_made_as_maps() {
        let made = Expression::compile("Object{spec: Object.spec{replicas: 1 + 1}}.spec.replicas == 2", &[])
            .unwrap();
        assert_eq!(made.holds(&Environment::new([])), Ok(true));
    }

    fn holds(source: &str) -> Result<bool, EvaluationError> {
        let environment =
            Environment::new([("self".into(), super::super::plain(&serde_json::json!([3, 1])))]);
        Expression::compile(source, &["self"]).unwrap().holds(&environment)
    }

    #[test]
    fn libraries_and_macros() {
        for source in [
            "self.all(x, x > 0) && self.exists(x, x == 3)",
            "self.sortBy(x, -x) == [3, 1] && self.sortBy(x, x) == [1, 3]",
            "self.all(i, x, x >= i) && self.exists(i, x, i == 1 && x == 1) && self.existsOne(i, x, x == 3)",
            "self.transformList(i, x, i + x) == [3, 2] && self.transformList(i, x, i > 0, x) == [1]",
            "{'a': 1, 'b': 2}.transformMap(k, v, v * 2) == {'a': 2, 'b': 4}",
            "{'a': 1, 'b': 2}.transformMap(k, v, k != 'a', v) == {'b': 2}",
            "self.transformMapEntry(i, x, {x: i}) == {3: 0, 1: 1}",
            "[[1, 2], [3]].all(i, l, l.all(j, x, x == i * 2 + j + 1))",
            "self.first().value() == 3 && !([].last().hasValue())",
            "self.?x.optMap(v, v + 1).orValue(7) == 7 || true",
            "optional.of(2).optMap(v, v * 2).value() == 4",
            "optional.of(2).optFlatMap(v, optional.none()).hasValue() == false",
            "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]",
            "type(self[0]) == int && type('a') != int && dyn(self[0]) != 'a'",
            "'\u{e9}'.size() == 1 && ip.isCanonical('10.0.0.1')",
            "format.named('uuid').value().validate('x').hasValue() && !format.named('nope').hasValue()",
            "quantity('1Gi').isGreaterThan(quantity('1M'))",
            "'a-b'.split('-')[1] == 'b'",
            "self.?x.orValue(1) == 1 || true",
            "isURL('https://example.com') && ip('10.0.0.1').family() == 4",
        ] {
            assert_eq!(holds(source), Ok(true), "{source}");
        }
        assert_eq!(holds("self.map(x, self.map(y, x * y)).size() == 2"), Ok(true));
    }

    #[test]
    fn optional_fields_that_are_missing_are_none() {
        for source in [
            "{'a': {'b': 1}}.?a.?b.value() == 1 && {'a': {'b': 1}}.?a.b.value() == 1",
            "{'a': {}}.?a.?b.orValue(2) == 2 && {'a': {}}.?b.?c.?d.orValue(2) == 2 && {'a': {}}.?b.c.orValue(2) == 2",
            "!{'a': {}}.?a.?b.hasValue() && !{'a': {}}.?b.?c.hasValue() && {'a': {}}.?a.hasValue()",
            "!has({'a': {}}.?b.c) && !has({'a': {}}.?a.c) && has({'a': {'c': 1}}.?a.c)",
            "[{'a': 1}, {'b': 1}].all(x, x.?a.orValue(1) > 0) && {'a': 1}.?l.orValue([]).all(x, false)",
            "{'a': [1]}.?a[?3].orValue(0) == 0 && {'a': [1]}.?a[0].orValue(0) == 1 && {'a': 1}[?'b'].orValue(3) == 3",
            "[1] + {'a': 1}.?b.orValue([2]) == [1, 2] && {'a': 1}.?b.or(optional.of(4)).value() == 4",
        ] {
            assert_eq!(holds(source), Ok(true), "{source}");
        }
    }

    #[test]
    fn faults_are_named() {
        let error = Expression::compile("self.x == othr", &["self"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "compilation failed: ERROR: <input>:1:11: undeclared reference to 'othr' (in container '')\n | self.x == othr\n | ..........^"
        );
        let told = |source: &str| Expression::compile(source, &["self"]).unwrap_err().to_string();
        assert_eq!(
            told("nope(1)"),
            "compilation failed: ERROR: <input>:1:5: undeclared reference to 'nope' (in container '')\n | nope(1)\n | ....^"
        );
        assert_eq!(told("math.greatest(1, 2) == 2").matches("ERROR").count(), 2);
        assert!(told("cel.bind(x, 1, x == 1)").contains("undeclared reference to 'bind'"));
        assert!(Expression::compile("jsonpatch.escapeKey('a/b') == 'a~1b'", &["object"]).is_ok());
        assert!(Expression::compile("self.", &["self"]).is_err());
        assert!(Expression::compile("Foo{a: 1}", &["self"]).is_err());
        assert_eq!(holds("self[5] == 1"), Err(EvaluationError::Other("index out of bounds: 5".into())));
        assert_eq!(holds("self[0] > 'a'"), Err(EvaluationError::NoSuchOverload));
    }

    #[test]
    fn what_grows_has_a_limit() {
        let text = "a".repeat(90_000);
        let data = serde_json::json!({"s": text, "l": vec![1; 100]});
        let environment = Environment::new([("self".into(), super::super::plain(&data))]);
        let told = |source: &str| Expression::compile(source, &["self"]).unwrap().holds(&environment);
        let long = "b".repeat(60_000);
        let nested =
            (0..30).fold("optional.of(self.s)".to_owned(), |inner, _| format!("{inner}.optMap(v, v + v)"));
        for source in [
            format!("self.s.replace('', '{long}').size() > 0"),
            format!("self.s.replace('a', '{long}').size() > 0"),
            format!("{nested}.value().size() > 0"),
            "self.l.map(x, self.s).join(self.s).size() > 0".to_owned(),
            "self.l.map(x, self.l.map(y, self.s)).size() > 0".to_owned(),
            format!("lists.range(10000).map(x, '{long}').size() > 0"),
            "lists.range(10000).transformMap(k, v, self.s).size() > 0".to_owned(),
            "self.s.split('').map(x, self.s.split('')).size() > 0".to_owned(),
            "[self.s, self.s].map(x, [x, x, x, x]).map(x, [x, x, x, x]).map(x, [x, x, x, x]).map(x, [x, x, x, x]).size() > 0".to_owned(),
        ] {
            let shown: String = source.chars().take(80).collect();
            assert_eq!(told(&source), Err(EvaluationError::Cost), "{shown}");
        }
        for source in [
            "self.s.replace('a', 'bc').size() == 180000 && self.s.replace('a', 'b', 1).startsWith('ba')",
            "'ab'.replace('', '-') == '-a-b-' && 'ab'.replace('', '-', 2) == '-a-b'",
            "self.l.map(x, string(x)).join(',').split(',').size() == 100",
            "['a', 'b'].join() == 'ab' && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a'.split('b', 0) == []",
            "lists.range(2000).map(x, x * 2).size() == 2000",
            "'%.2f %s %d'.format([1.5, 'x', 3]) == '1.50 x 3' && '%.3e'.format([1.5]).size() > 0",
        ] {
            assert_eq!(told(source), Ok(true), "{source}");
        }
    }

    #[test]
    fn a_precision_that_the_library_would_not_survive_is_refused() {
        for source in ["'%.999999999f'.format([1.5]) == ''", "'%.70000e'.format([1.5]) == ''"] {
            let Err(EvaluationError::Other(told)) = holds(source) else { panic!("{source}") };
            assert!(told.contains("precision") && told.contains("1000"), "{told}");
        }
        assert_eq!(holds("'%.3f%%'.format([1.5]) == '1.500%'"), Ok(true));
    }

    #[test]
    fn loops_over_loops_have_a_limit() {
        let many: Vec<u32> = (0..1000).collect();
        let environment = Environment::new([("self".into(), super::super::plain(&serde_json::json!(many)))]);
        let nested = "self.all(a, self.all(b, self.all(c, self.all(d, true))))";
        let expression = Expression::compile(nested, &["self"]).unwrap();
        assert_eq!(expression.holds(&environment), Err(EvaluationError::Cost));
    }
}
