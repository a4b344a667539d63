//! What can be said of a rule before there is data: fields that the schema does not have.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr},
};
use serde_json::Value;

use super::{
    CompileError, Expression,
    convert::escape,
    expression::{children, fault_at, kind_as_written, shown_at},
    literals,
    macros::UNUSED,
};

/// The name of a variable and the schema of its value, where that is known.
type VariableScope<'a> = Vec<(String, Option<&'a Value>)>;

/// Finds a selected field that the schema of `self` and `oldSelf` does not have.
pub(super) fn fields(expression: &Expression, schema: &Value, is_root: bool) -> Result<(), CompileError> {
    let mut scope: VariableScope<'_> = vec![("self".into(), Some(schema))];
    // With optionalOldSelf the old value is optional, which has fields of its own.
    scope.push(("oldSelf".into(), None));
    let checker = Checker { source: expression.source(), root: is_root.then_some(schema) };
    checker.visit(expression.root(), &mut scope)
}

/// What CEL calls the type of the result, where that can be told.
pub(super) fn kind(expression: &Expression, schema: &Value, is_root: bool) -> Option<&'static str> {
    let scope: VariableScope<'_> = vec![("self".into(), Some(schema)), ("oldSelf".into(), None)];
    let checker = Checker { source: expression.source(), root: is_root.then_some(schema) };
    checker.kind(expression.root(), &scope, 0)
}

/// How deep types are looked for.
const MAX_DEPTH: usize = 100;

/// What CEL calls the type of a schema that has no fields.
fn scalar(schema: &Value) -> Option<&'static str> {
    if schema["x-kubernetes-int-or-string"] == true {
        return None;
    }
    match (schema["type"].as_str()?, schema["format"].as_str()) {
        ("string", None) => Some("string"),
        ("integer", _) => Some("int"),
        ("number", _) => Some("double"),
        ("boolean", _) => Some("bool"),
        _ => None,
    }
}

/// The first place of an operator that is no part of a text.
fn outside_quotes(source: &str, operator: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in source.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if source[at..].starts_with(operator) => return Some(at),
            None => {}
        }
    }
    None
}

struct Checker<'a> {
    source: &'a str,
    /// The schema whose objects also have a name and a type.
    root: Option<&'a Value>,
}

impl<'a> Checker<'a> {
    fn visit(&self, node: &IdedExpr, scope: &mut VariableScope<'a>) -> Result<(), CompileError> {
        if let Expr::Comprehension(c) = &node.expr {
            self.visit(&c.iter_range, scope)?;
            self.visit(&c.accu_init, scope)?;
            let item = self.schema_of(&c.iter_range, scope).map(|schema| &schema["items"]);
            let depth = scope.len();
            scope.push((c.iter_var.clone(), item.filter(|item| item.is_object())));
            scope.push((c.accu_var.clone(), None));
            let parts = [&c.loop_cond, &c.loop_step, &c.result];
            let result = parts.into_iter().try_for_each(|part| self.visit(part, scope));
            scope.truncate(depth);
            return result;
        }
        if let Expr::Select(select) = &node.expr
            && let Some(schema) = self.schema_of(&select.operand, scope)
        {
            // The fault is shown at the point before the field.
            let point = format!(".{}", select.field);
            if let Some(kind) = scalar(schema) {
                let message = format!("type '{kind}' does not support field selection");
                return Err(fault_at(self.source, &point, &message));
            }
            if self.lacks_field(schema, &select.field) {
                let message = format!("undefined field '{}'", select.field);
                return Err(fault_at(self.source, &point, &message));
            }
        }
        children(node).into_iter().try_for_each(|child| self.visit(child, scope))?;
        literals::check(self.source, node)?;
        match &node.expr {
            Expr::Call(call) => self.overload(call, scope),
            _ => Ok(()),
        }
    }

    /// Refuses operators on types that they are not for.
    fn overload(&self, call: &CallExpr, scope: &VariableScope<'a>) -> Result<(), CompileError> {
        let kinds: Option<Vec<&str>> = call.args.iter().map(|arg| self.kind(arg, scope, 0)).collect();
        if matches!(call.func_name.as_str(), "_&&_" | "_||_") {
            return call.args.iter().try_for_each(|arg| self.is_bool(arg, scope));
        }
        let Some(kinds) = kinds.filter(|kinds| !kinds.iter().any(|kind| kind.contains('('))) else {
            return Ok(());
        };
        let is_number = |kind: &str| matches!(kind, "int" | "uint" | "double");
        let fits = match (call.func_name.as_str(), kinds.as_slice()) {
            ("_==_" | "_!=_", [a, b]) => a == b,
            ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b]) => a == b || (is_number(a) && is_number(b)),
            ("_+_", [a, b]) => a == b && *a != "bool",
            ("_-_" | "_*_" | "_/_", [a, b]) => a == b && is_number(a),
            ("_%_", [a, b]) => a == b && matches!(*a, "int" | "uint"),
            ("!_", [a]) => *a == "bool",
            _ => true,
        };
        if fits {
            return Ok(());
        }
        let operator = call.func_name.trim_matches('_');
        let place = outside_quotes(self.source, operator).unwrap_or(0);
        let applied = kinds.join(", ");
        let message = format!("found no matching overload for '{}' applied to '({applied})'", call.func_name);
        Err(CompileError(shown_at(self.source, place, &message)))
    }

    fn is_bool(&self, node: &IdedExpr, scope: &VariableScope<'a>) -> Result<(), CompileError> {
        let Some(kind) = self.kind(node, scope, 0).filter(|kind| *kind != "bool") else { return Ok(()) };
        let name = match &node.expr {
            Expr::Select(select) => format!(".{}", select.field),
            Expr::Ident(name) => name.clone(),
            _ => return Ok(()),
        };
        let place = self.source.rfind(&name).unwrap_or(0);
        let message = format!("expected type 'bool' but found '{kind}'");
        Err(CompileError(shown_at(self.source, place, &message)))
    }

    /// What CEL calls the type of a node, where that can be told.
    fn kind(&self, node: &IdedExpr, scope: &VariableScope<'a>, depth: usize) -> Option<&'static str> {
        if depth > MAX_DEPTH {
            return None;
        }
        match &node.expr {
            Expr::Select(select) if select.test => Some("bool"),
            Expr::Select(_) | Expr::Ident(_) => scalar(self.schema_of(node, scope)?),
            Expr::Comprehension(c) if c.iter_var != UNUSED => {
                self.kind(&c.accu_init, scope, depth + 1).filter(|kind| *kind == "bool" || kind.contains('('))
            }
            Expr::Call(call) => self.kind_of_call(call, node, scope, depth),
            written => kind_as_written(written),
        }
    }

    fn kind_of_call(
        &self,
        call: &CallExpr,
        node: &IdedExpr,
        scope: &VariableScope<'a>,
        depth: usize,
    ) -> Option<&'static str> {
        let of = |at: usize| self.kind(call.args.get(at)?, scope, depth + 1);
        match call.func_name.as_str() {
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "_&&_" | "_||_" | "!_" | "@in" => {
                Some("bool")
            }
            "contains" | "startsWith" | "endsWith" | "matches" | "hasValue" | "isSorted" => Some("bool"),
            "_+_" | "_-_" | "_*_" | "_/_" | "_%_" => of(0).filter(|kind| of(1) == Some(kind)),
            "-_" => of(0),
            "_?_:_" => of(1).filter(|kind| of(2) == Some(kind)),
            "@cost" => of(1),
            "size" => Some("int"),
            "string" | "lowerAscii" | "upperAscii" | "trim" | "replace" | "substring" | "join" => {
                Some("string")
            }
            "_[_]" => scalar(self.schema_of(node, scope)?),
            _ => None,
        }
    }

    /// The schema of what an expression yields, if that follows from the schema of a variable.
    fn schema_of(&self, node: &IdedExpr, scope: &VariableScope<'a>) -> Option<&'a Value> {
        match &node.expr {
            Expr::Ident(name) => scope.iter().rev().find(|(known, _)| known == name)?.1,
            Expr::Select(select) => {
                let schema = self.schema_of(&select.operand, scope)?;
                let properties = schema["properties"].as_object()?;
                let found = properties.iter().find(|(name, _)| escape(name) == select.field)?.1;
                // The root's metadata is not what its schema says.
                (select.field != "metadata").then_some(found)
            }
            Expr::Call(call) if call.func_name == "_[_]" => {
                let schema = self.schema_of(call.args.first()?, scope)?;
                Some(&schema["items"]).filter(|items| items.is_object())
            }
            _ => None,
        }
    }

    fn lacks_field(&self, schema: &Value, field: &str) -> bool {
        let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true
            || schema["additionalProperties"].is_object()
            || schema["additionalProperties"] == true
            || schema["x-kubernetes-embedded-resource"] == true
            || schema["type"] != "object";
        let is_own = self.root.is_some_and(|root| std::ptr::eq(root, schema))
            && matches!(field, "apiVersion" | "kind" | "metadata");
        let has =
            schema["properties"].as_object().is_some_and(|p| p.keys().any(|name| escape(name) == field));
        !is_open && !is_own && !has
    }
}
