//! One compiled expression.

use std::{collections::BTreeSet, sync::Arc};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, IdedExpr, Value,
        common::ast::{
            CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapEntryExpr, MapExpr,
        },
        parser::Parser,
    },
};

/// Longest expression that is read, in bytes.
const MAX_LENGTH: usize = 64 * 1024;
/// Most steps of nested loops that an evaluation may take. The API server counts costs more finely; its
/// limit per expression is of this order.
const MAX_STEPS: u64 = 10_000_000;
/// The pseudo-variable that `cel.bind` loops over: nothing.
const UNUSED: &str = "#unused";

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
    source: Arc<str>,
    variables: Arc<BTreeSet<String>>,
    /// How deep loops are nested.
    loops: u32,
}

/// The variables that expressions see.
pub struct Environment<'a> {
    context: Context<'a>,
    /// Items of the largest list or map in them.
    largest: u64,
}

thread_local! {
    /// The functions of CEL and of Kubernetes' libraries; they take longer to register than most rules to run.
    static FUNCTIONS: &'static Context<'static> = {
        let mut context = Context::default().with_all();
        super::authorizer::register(&mut context);
        Box::leak(Box::new(context))
    };
}

impl Environment<'_> {
    /// An environment with all functions and these variables.
    pub fn new(variables: impl IntoIterator<Item = (String, Value)>) -> Environment<'static> {
        let parent = FUNCTIONS.with(|functions| *functions);
        let mut context = parent.new_inner_scope();
        let mut largest = 1;
        for (name, value) in variables {
            largest = largest.max(largest_part(&value, 0));
            // A CEL value becomes a CEL value without fail.
            let _ = context.add_variable(name, value);
        }
        Environment { context, largest }
    }
}

impl Expression {
    /// Compiles an expression that may use these variables.
    ///
    /// # Errors
    /// Syntax errors, and names that are no variable.
    pub fn compile(source: &str, declared: &[&str]) -> Result<Self, CompileError> {
        if source.len() > MAX_LENGTH {
            return Err(CompileError(format!(
                "ERROR: <input>:1:1: the expression is longer than {MAX_LENGTH} bytes"
            )));
        }
        let parsed = Parser::default().enable_optional_syntax(true).parse(source);
        let mut root = parsed.map_err(|errors| CompileError(shown(&errors.to_string())))?;
        expand_bindings(&mut root);
        let mut facts = Facts { declared, bound: Vec::new(), unknown: None, used: BTreeSet::new(), loops: 0 };
        facts.visit(&root, 0)?;
        if let Some(name) = facts.unknown {
            let message = format!("undeclared reference to '{name}' (in container '')");
            return Err(fault_at(source, &name, &message));
        }
        let (variables, loops) = (Arc::new(facts.used), facts.loops);
        Ok(Self { root: Arc::new(root), source: source.into(), variables, loops })
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the expression uses a variable.
    pub fn mentions(&self, variable: &str) -> bool {
        self.variables.contains(variable)
    }

    /// What CEL calls the type of the result, where the outermost operation tells it.
    pub fn kind(&self) -> Option<&'static str> {
        match &self.root.expr {
            Expr::Select(select) => Some(if select.test { "bool" } else { "dyn" }),
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

    pub(super) fn root(&self) -> &IdedExpr {
        &self.root
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// Missing keys, operands that do not fit, loops that take too long.
    pub fn evaluate(&self, environment: &Environment<'_>) -> Result<Value, EvaluationError> {
        if environment.largest.saturating_pow(self.loops) > MAX_STEPS {
            return Err(EvaluationError::Cost);
        }
        Value::resolve(&self.root, &environment.context).map_err(explained)
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
fn shown(text: &str) -> String {
    text.replace("\n| ", "\n | ")
}

/// A fault at the first place where a name stands in the text.
pub(super) fn fault_at(source: &str, name: &str, message: &str) -> CompileError {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let place = source.match_indices(name).find(|(at, _)| {
        (name.starts_with('.') || !is_word(source[..*at].chars().next_back()))
            && !is_word(source[at + name.len()..].chars().next())
    });
    let offset = place.map_or(0, |(at, _)| at);
    let line = source[..offset].matches('\n').count();
    let text = source.lines().nth(line).unwrap_or_default();
    let column = offset - source[..offset].rfind('\n').map_or(0, |at| at + 1);
    let dots = ".".repeat(column);
    CompileError(format!("ERROR: <input>:{}:{}: {message}\n | {text}\n | {dots}^", line + 1, column + 1))
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

/// Items of the largest list or map in a value. Values are as deep as JSON bodies at most.
fn largest_part(value: &Value, depth: usize) -> u64 {
    let inner = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(|value| largest_part(value, depth + 1)).max().unwrap_or(0)
    };
    match value {
        _ if depth > 200 => 0,
        Value::List(items) => (items.len() as u64).max(inner(&mut items.iter())),
        Value::Map(map) => (map.map.len() as u64).max(inner(&mut map.map.values())),
        _ => 0,
    }
}

/// Replaces what mutating policies make, such as `Object.spec{replicas: 1}` and `JSONPatch{op: "add"}`, by maps.
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

/// Replaces `cel.bind(name, value, body)` by the loop over nothing that the macro stands for.
fn expand_bindings(node: &mut IdedExpr) {
    expand_objects(node);
    let is_bind = matches!(&node.expr, Expr::Call(call) if call.func_name == "bind" && call.args.len() == 3
        && call.target.as_ref().is_some_and(|t| t.expr == Expr::Ident("cel".into())));
    if is_bind && let Expr::Call(call) = &mut node.expr {
        let (body, value) = (call.args.pop().unwrap_or_default(), call.args.pop().unwrap_or_default());
        if let Some(Expr::Ident(name)) = call.args.pop().map(|name| name.expr) {
            let plain = |expr| IdedExpr { id: node.id, expr };
            node.expr = Expr::Comprehension(Box::new(ComprehensionExpr {
                iter_range: plain(Expr::List(ListExpr::new(Vec::new()))),
                iter_var: UNUSED.into(),
                iter_var2: None,
                accu_var: name.clone(),
                accu_init: value,
                loop_cond: plain(Expr::Literal(LiteralValue::Boolean(false.into()))),
                loop_step: plain(Expr::Ident(name)),
                result: body,
            }));
        }
    }
    // The name with the point is one variable of Kubernetes' environment.
    let of_request = matches!(&node.expr, Expr::Select(select) if select.field == "requestResource"
        && select.operand.expr == Expr::Ident("authorizer".into()));
    if of_request {
        node.expr = Expr::Ident("authorizer.requestResource".into());
    }
    children_mut(node).into_iter().for_each(expand_bindings);
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
const GLOBALS: [&str; 22] = [
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
    "math",
    "sets",
    "strings",
    "lists",
    "base64",
    "optional",
    "cel",
    "format",
    "jsonpatch",
    "google",
    "net",
    "kubernetes",
];

/// What a look through an expression finds.
struct Facts<'a> {
    declared: &'a [&'a str],
    bound: Vec<&'a str>,
    unknown: Option<String>,
    used: BTreeSet<String>,
    loops: u32,
}

impl Facts<'_> {
    fn visit(&mut self, node: &IdedExpr, loops: u32) -> Result<(), CompileError> {
        let mut inner = Facts {
            declared: self.declared,
            bound: self.bound.clone(),
            unknown: self.unknown.take(),
            used: std::mem::take(&mut self.used),
            loops: self.loops.max(loops),
        };
        let result = inner.walk(node, loops);
        self.unknown = inner.unknown;
        self.used = inner.used;
        self.loops = inner.loops;
        result
    }

    fn walk<'n>(&mut self, node: &'n IdedExpr, loops: u32) -> Result<(), CompileError> {
        match &node.expr {
            Expr::Struct(_) | Expr::Unspecified => {
                return Err(CompileError(
                    "ERROR: <input>:1:1: message construction is not supported here".into(),
                ));
            }
            Expr::Ident(name) => {
                if self.declared.contains(&name.as_str()) {
                    self.used.insert(name.clone());
                } else if !self.bound.contains(&name.as_str()) && !GLOBALS.contains(&name.as_str()) {
                    self.unknown.get_or_insert_with(|| name.clone());
                }
            }
            Expr::Comprehension(c) => {
                let deeper = loops + u32::from(c.iter_var != UNUSED);
                self.visit(&c.iter_range, loops)?;
                self.visit(&c.accu_init, loops)?;
                let names: Vec<&'n str> = [Some(&c.iter_var), c.iter_var2.as_ref(), Some(&c.accu_var)]
                    .into_iter()
                    .flatten()
                    .map(String::as_str)
                    .collect();
                let mut bound = self.bound.clone();
                bound.extend(names);
                let mut inner = Facts {
                    declared: self.declared,
                    bound,
                    unknown: self.unknown.take(),
                    used: std::mem::take(&mut self.used),
                    loops: self.loops,
                };
                let result = [&c.loop_cond, &c.loop_step, &c.result]
                    .into_iter()
                    .try_for_each(|part| inner.visit(part, deeper));
                self.unknown = inner.unknown;
                self.used = inner.used;
                self.loops = inner.loops;
                return result;
            }
            _ => {}
        }
        children(node).into_iter().try_for_each(|child| self.visit(child, loops))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "cel.bind(s, size(self), s == 2 && s < 3)",
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
    fn faults_are_named() {
        let error = Expression::compile("self.x == othr", &["self"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "compilation failed: ERROR: <input>:1:11: undeclared reference to 'othr' (in container '')\n | self.x == othr\n | ..........^"
        );
        assert!(Expression::compile("self.", &["self"]).is_err());
        assert!(Expression::compile("Foo{a: 1}", &["self"]).is_err());
        assert_eq!(holds("self[5] == 1"), Err(EvaluationError::Other("index out of bounds: 5".into())));
        assert_eq!(holds("self[0] > 'a'"), Err(EvaluationError::NoSuchOverload));
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
