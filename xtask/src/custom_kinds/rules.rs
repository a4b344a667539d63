//! What fields of an object ask of each other: one of several has to be there, a type that goes with a field.
//!
//! Definitions say it as alternatives of required fields or as CEL. Of CEL, whatever comes down to "is there"
//! and "has one of these values" is understood; the rest says nothing here.

use std::collections::BTreeSet;

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, LiteralValue},
    parser::Parser,
};
use serde_json::Value;

/// The longest expression that is looked at.
const MAX_LENGTH: usize = 4096;
/// How many clauses a rule may come down to, and how many conditions each may have.
const MAX_CLAUSES: usize = 24;
const MAX_LITERALS: usize = 10;

/// What has to hold of the fields of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// Exactly one of these is there.
    One(BTreeSet<String>),
    /// At most one of these is there.
    Most(BTreeSet<String>),
    /// At least one of these is there.
    Some(BTreeSet<String>),
    /// The fields of exactly one set (`oneOf`) or of at least one (`anyOf`) are there.
    Alternatives { is_one: bool, sets: Vec<BTreeSet<String>> },
    /// At least one of these conditions holds.
    Clause(BTreeSet<Condition>),
}

/// A condition on one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Condition {
    /// Names with dots between.
    pub path: String,
    /// One of these values; `None` if it only has to be there.
    pub values: Option<BTreeSet<String>>,
    /// Whether it is to hold or not to hold.
    pub holds: bool,
}

impl Rule {
    /// What both of two versions ask, or the later of them where it only knows more alternatives.
    pub(super) fn common(a: &BTreeSet<Self>, b: &BTreeSet<Self>) -> BTreeSet<Self> {
        let mut common = BTreeSet::new();
        for (own, other) in a.iter().flat_map(|own| b.iter().map(move |other| (own, other))) {
            match (own, other) {
                (own, other) if own == other => drop(common.insert(own.clone())),
                (Self::One(x), Self::One(y)) if x.is_subset(y) => drop(common.insert(other.clone())),
                (Self::One(x), Self::One(y)) if y.is_subset(x) => drop(common.insert(own.clone())),
                (Self::Some(x), Self::Some(y)) if x.is_subset(y) => drop(common.insert(other.clone())),
                (Self::Some(x), Self::Some(y)) if y.is_subset(x) => drop(common.insert(own.clone())),
                (Self::Most(x), Self::Most(y)) if x.is_subset(y) => drop(common.insert(own.clone())),
                (Self::Most(x), Self::Most(y)) if y.is_subset(x) => drop(common.insert(other.clone())),
                _ => {}
            }
        }
        common
    }

    /// The fields that it is about.
    pub(super) fn fields(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::One(names) | Self::Most(names) | Self::Some(names) => {
                Box::new(names.iter().map(String::as_str))
            }
            Self::Alternatives { sets, .. } => Box::new(sets.iter().flatten().map(String::as_str)),
            Self::Clause(conditions) => Box::new(conditions.iter().map(|it| it.path.as_str())),
        }
    }

    /// Whether an object without any field may be refused by it.
    pub(super) fn asks_for_a_field(&self) -> bool {
        match self {
            Self::One(_) | Self::Some(_) => true,
            Self::Most(_) => false,
            Self::Alternatives { sets, .. } => !sets.iter().any(BTreeSet::is_empty),
            Self::Clause(conditions) => conditions.iter().any(|it| it.holds),
        }
    }

    /// As a line of the table.
    pub(super) fn to_line(&self) -> String {
        let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
        let line = |word: &str, names: Vec<String>| format!("{word} {}", names.join(" "));
        match self {
            Self::One(fields) => line("one", names(fields)),
            Self::Most(fields) => line("most", names(fields)),
            Self::Some(fields) => line("some", names(fields)),
            Self::Alternatives { is_one, sets } => {
                let set = |set: &BTreeSet<String>| match set.is_empty() {
                    true => "-".to_owned(),
                    false => names(set).join(","),
                };
                line(if *is_one { "oneOf" } else { "anyOf" }, sets.iter().map(set).collect())
            }
            Self::Clause(conditions) => {
                let (mut then, mut when): (Vec<Condition>, Vec<Condition>) =
                    conditions.iter().cloned().partition(|it| it.holds);
                if then.is_empty() {
                    then.extend(when.pop());
                }
                let when = when.into_iter().map(|it| Condition { holds: true, ..it }.to_text());
                let words: Vec<String> =
                    when.chain(["->".to_owned()]).chain(then.iter().map(Condition::to_text)).collect();
                line("if", words)
            }
        }
    }
}

impl Condition {
    fn to_text(&self) -> String {
        let Some(values) = &self.values else {
            return format!("{}{}", if self.holds { "" } else { "!" }, self.path);
        };
        let values = values.iter().cloned().collect::<Vec<_>>().join("|");
        format!("{}{}={values}", self.path, if self.holds { "" } else { "!" })
    }
}

/// The rules of a schema, each with the steps to the object that it is about.
pub(super) fn rules_of(schema: &Value) -> Vec<(Vec<String>, Rule)> {
    let list = |key: &str| schema[key].as_array().into_iter().flatten();
    let mut found = Vec::new();
    for part in std::iter::once(schema).chain(list("allOf")) {
        for (key, is_one) in [("oneOf", true), ("anyOf", false)] {
            found.extend(alternatives(part, key, is_one).map(|rule| (Vec::new(), rule)));
        }
    }
    for rule in list("x-kubernetes-validations") {
        found.extend(rule["rule"].as_str().map(of_cel).unwrap_or_default());
    }
    found
}

/// Alternatives that are nothing but required fields, or that these are not there.
fn alternatives(schema: &Value, key: &str, is_one: bool) -> Option<Rule> {
    let parts = schema[key].as_array()?;
    let set = |part: &Value| {
        // `properties: {a: {}}` beside `required: [a]` says nothing more.
        let is_bare = |(key, inner): &(&String, &Value)| {
            let mut fields = inner.as_object().into_iter().flat_map(|fields| fields.values());
            *key == "properties" && fields.all(|field| field.as_object().is_some_and(|it| it.is_empty()))
        };
        let part = part.as_object()?.iter().filter(|entry| !is_bare(entry));
        match part.collect::<Vec<_>>().as_slice() {
            [(key, names)] if *key == "required" => {
                let names = names.as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
                names.collect::<Option<BTreeSet<String>>>()
            }
            // None of the others.
            [(key, inner)] if *key == "not" && inner["anyOf"].is_array() => Some(BTreeSet::new()),
            _ => None,
        }
    };
    let sets = parts.iter().map(set).collect::<Option<Vec<_>>>()?;
    (!sets.is_empty()).then_some(Rule::Alternatives { is_one, sets })
}

/// What an expression asks, as far as it is understood.
fn of_cel(source: &str) -> Vec<(Vec<String>, Rule)> {
    if source.len() > MAX_LENGTH || source.contains("oldSelf") {
        return Vec::new();
    }
    if let Some(rule) = counted(source) {
        return vec![(Vec::new(), rule)];
    }
    let Ok(parsed) = Parser::default().enable_optional_syntax(true).parse(source) else { return Vec::new() };
    let mut found = Vec::new();
    conjuncts(&parsed, "self", &[], &mut found);
    found
}

/// `[has(self.a), has(self.b)].filter(x, x == true).size() == 1`
fn counted(source: &str) -> Option<Rule> {
    let (list, count) = source.trim().strip_prefix('[')?.split_once("].filter(")?;
    let count: String = count.split_whitespace().collect();
    let (_, count) = count.split_once(").size()")?;
    let name = |part: &str| {
        let name = part.trim().strip_prefix("has(self.")?.strip_suffix(')')?;
        (!name.contains(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))).then(|| name.to_owned())
    };
    let names = list.split(',').map(name).collect::<Option<BTreeSet<String>>>()?;
    match count {
        "==1" => Some(Rule::One(names)),
        "<=1" => Some(Rule::Most(names)),
        ">=1" => Some(Rule::Some(names)),
        _ => None,
    }
}

/// The parts of an expression that all have to hold, each about one object.
fn conjuncts(expr: &IdedExpr, variable: &str, steps: &[String], found: &mut Vec<(Vec<String>, Rule)>) {
    match &expr.expr {
        Expr::Call(CallExpr { func_name, args, target: None }) if func_name == "_&&_" => {
            args.iter().for_each(|part| conjuncts(part, variable, steps, found));
        }
        Expr::Comprehension(all) => {
            let is_true = |expr: &IdedExpr| matches!(&expr.expr, Expr::Literal(LiteralValue::Boolean(value)) if *value.inner());
            let Expr::Call(step) = &all.loop_step.expr else { return };
            let ("_&&_", [_, each]) = (step.func_name.as_str(), step.args.as_slice()) else { return };
            let Some(path) = path_of(&all.iter_range, variable).filter(|_| is_true(&all.accu_init)) else {
                return;
            };
            let inner = path.split('.').filter(|part| !part.is_empty()).map(str::to_owned);
            let steps: Vec<String> = steps.iter().cloned().chain(inner).chain(["[]".to_owned()]).collect();
            conjuncts(each, &all.iter_var, &steps, found);
        }
        _ => {
            let Some(clauses) = formula(expr, variable, true).and_then(|formula| formula.clauses()) else {
                return;
            };
            found.extend(rules_of_clauses(clauses).into_iter().map(|rule| (steps.to_vec(), rule)));
        }
    }
}

/// Clauses as the shortest rules that say the same.
fn rules_of_clauses(clauses: BTreeSet<BTreeSet<Condition>>) -> Vec<Rule> {
    let of = |clause: &BTreeSet<Condition>, holds: bool| {
        let fits = clause.iter().all(|it| it.values.is_none() && it.holds == holds);
        fits.then(|| clause.iter().map(|it| it.path.clone()).collect::<BTreeSet<String>>())
    };
    let present: Vec<BTreeSet<String>> = clauses.iter().filter_map(|clause| of(clause, true)).collect();
    let absent: Vec<BTreeSet<String>> = clauses.iter().filter_map(|clause| of(clause, false)).collect();
    let mut rules = Vec::new();
    for clause in clauses {
        rules.push(match (of(&clause, true), of(&clause, false)) {
            (Some(names), _) if names.len() == 2 && absent.contains(&names) => Rule::One(names),
            (Some(names), _) => Rule::Some(names),
            (_, Some(names)) if names.len() == 2 && present.contains(&names) => continue,
            (_, Some(names)) if names.len() == 2 => Rule::Most(names),
            _ => Rule::Clause(clause),
        });
    }
    rules
}

/// A Boolean expression over conditions, negations pushed down to these.
enum Formula {
    Is(Condition),
    Constant(bool),
    And(Vec<Formula>),
    Or(Vec<Formula>),
}

impl Formula {
    /// Clauses that all hold exactly if the formula does.
    fn clauses(&self) -> Option<BTreeSet<BTreeSet<Condition>>> {
        let mut clauses = match self {
            Self::Is(condition) => BTreeSet::from([BTreeSet::from([condition.clone()])]),
            Self::Constant(true) => BTreeSet::new(),
            Self::Constant(false) => BTreeSet::from([BTreeSet::new()]),
            Self::And(parts) => {
                let parts = parts.iter().map(Self::clauses).collect::<Option<Vec<_>>>()?;
                parts.into_iter().flatten().collect()
            }
            Self::Or(parts) => {
                let mut product = BTreeSet::from([BTreeSet::new()]);
                for part in parts {
                    let part = part.clauses()?;
                    product = product
                        .iter()
                        .flat_map(|left| part.iter().map(|right| left.union(right).cloned().collect()))
                        .collect();
                    if product.len() > MAX_CLAUSES * 4 {
                        return None;
                    }
                }
                product
            }
        };
        clauses.retain(|clause: &BTreeSet<Condition>| {
            let denied = |it: &Condition| Condition { holds: !it.holds, ..it.clone() };
            !clause.iter().any(|it| clause.contains(&denied(it)))
        });
        // What a shorter clause says already.
        let all = clauses.clone();
        clauses.retain(|clause| !all.iter().any(|other| other != clause && other.is_subset(clause)));
        let fits = clauses.len() <= MAX_CLAUSES
            && clauses.iter().all(|clause| !clause.is_empty() && clause.len() <= MAX_LITERALS);
        fits.then_some(clauses)
    }
}

/// An expression (or, if `holds` is not set, its negation) as a formula over the fields of a variable.
fn formula(expr: &IdedExpr, variable: &str, holds: bool) -> Option<Formula> {
    let is = |path: String, values: Option<BTreeSet<String>>, holds: bool| {
        (!path.is_empty()).then_some(Formula::Is(Condition { path, values, holds }))
    };
    match &expr.expr {
        Expr::Literal(LiteralValue::Boolean(value)) => Some(Formula::Constant(*value.inner() == holds)),
        Expr::Select(select) if select.test => {
            is(below(&path_of(&select.operand, variable)?, &select.field), None, holds)
        }
        Expr::Select(_) => is(path_of(expr, variable)?, Some(BTreeSet::from(["true".to_owned()])), holds),
        Expr::Call(call) => {
            let parts = |holds: bool| {
                call.args.iter().map(|part| formula(part, variable, holds)).collect::<Option<Vec<_>>>()
            };
            match (call.func_name.as_str(), call.args.as_slice()) {
                ("_&&_", _) if holds => Some(Formula::And(parts(true)?)),
                ("_&&_", _) => Some(Formula::Or(parts(false)?)),
                ("_||_", _) if holds => Some(Formula::Or(parts(true)?)),
                ("_||_", _) => Some(Formula::And(parts(false)?)),
                ("!_", [inner]) => formula(inner, variable, !holds),
                ("_?_:_", [condition, then, or]) => {
                    let both = |part: &IdedExpr, on: bool| {
                        let parts = [formula(condition, variable, on)?, formula(part, variable, holds)?];
                        Some(Formula::Or(parts.into()))
                    };
                    Some(Formula::And(vec![both(then, false)?, both(or, true)?]))
                }
                ("@in", [field, list]) => {
                    let Expr::List(list) = &list.expr else { return None };
                    let values = list.elements.iter().map(literal).collect::<Option<BTreeSet<String>>>()?;
                    is(path_of(field, variable)?, Some(values), holds)
                }
                (operator, [left, right]) => {
                    compared(operator, left, right, variable).and_then(|(path, values, is_it)| {
                        is(path, Some(BTreeSet::from([values])), is_it == holds)
                    })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// `self.a == 'b'`, `size(self.a) > 0`: the field, the value (empty for a size of 0), and whether it is it.
fn compared(
    operator: &str,
    left: &IdedExpr,
    right: &IdedExpr,
    variable: &str,
) -> Option<(String, String, bool)> {
    if let Some(path) = sized(left, variable) {
        return match (operator, literal(right)?.as_str()) {
            ("_==_" | "_<=_", "0") | ("_<_", "1") => Some((path, String::new(), true)),
            ("_!=_" | "_>_", "0") | ("_>=_", "1") => Some((path, String::new(), false)),
            _ => None,
        };
    }
    let is_it = match operator {
        "_==_" => true,
        "_!=_" => false,
        _ => return None,
    };
    let (field, value) = match literal(right) {
        Some(value) => (left, value),
        None => (right, literal(left)?),
    };
    Some((path_of(field, variable)?, value, is_it))
}

/// The field whose size is asked for.
fn sized(expr: &IdedExpr, variable: &str) -> Option<String> {
    let Expr::Call(call) = &expr.expr else { return None };
    match (call.func_name.as_str(), &call.target, call.args.as_slice()) {
        ("size", None, [field]) => path_of(field, variable),
        ("size", Some(field), []) => path_of(field, variable),
        _ => None,
    }
}

/// The path below a variable; empty for the variable itself.
fn path_of(expr: &IdedExpr, variable: &str) -> Option<String> {
    match &expr.expr {
        Expr::Ident(name) => (name == variable).then(String::new),
        Expr::Select(select) if !select.test => {
            Some(below(&path_of(&select.operand, variable)?, &select.field))
        }
        _ => None,
    }
}

/// The path of a field of what is at a path.
fn below(above: &str, field: &str) -> String {
    if above.is_empty() { field.to_owned() } else { format!("{above}.{field}") }
}

/// A value that can be written in the table.
fn literal(expr: &IdedExpr) -> Option<String> {
    let Expr::Literal(value) = &expr.expr else { return None };
    let text = match value {
        LiteralValue::String(text) => text.inner().to_owned(),
        LiteralValue::Int(number) => number.inner().to_string(),
        LiteralValue::Boolean(value) => value.inner().to_string(),
        _ => return None,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:*/+-".contains(c);
    text.chars().all(is_plain).then_some(text)
}
