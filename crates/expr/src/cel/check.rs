//! What can be said of a rule before there is data: fields that the schema does not have.

use kube_cel::cel::{IdedExpr, common::ast::Expr};
use serde_json::Value;

use super::{
    CompileError, Expression,
    convert::escape,
    expression::{children, fault_at},
};

/// The name of a variable and the schema of its value, where that is known.
type Scope<'a> = Vec<(String, Option<&'a Value>)>;

/// Finds a selected field that the schema of `self` and `oldSelf` does not have.
pub(super) fn fields(expression: &Expression, schema: &Value, is_root: bool) -> Result<(), CompileError> {
    let mut scope: Scope<'_> = vec![("self".into(), Some(schema))];
    // With optionalOldSelf the old value is optional, which has fields of its own.
    scope.push(("oldSelf".into(), None));
    let checker = Checker { source: expression.source(), root: is_root.then_some(schema) };
    checker.visit(expression.root(), &mut scope)
}

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

struct Checker<'a> {
    source: &'a str,
    /// The schema whose objects also have a name and a type.
    root: Option<&'a Value>,
}

impl<'a> Checker<'a> {
    fn visit(&self, node: &IdedExpr, scope: &mut Scope<'a>) -> Result<(), CompileError> {
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
            if self.lacks(schema, &select.field) {
                let message = format!("undefined field '{}'", select.field);
                return Err(fault_at(self.source, &point, &message));
            }
        }
        children(node).into_iter().try_for_each(|child| self.visit(child, scope))
    }

    /// The schema of what an expression yields, if that follows from the schema of a variable.
    fn schema_of(&self, node: &IdedExpr, scope: &Scope<'a>) -> Option<&'a Value> {
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

    fn lacks(&self, schema: &Value, field: &str) -> bool {
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
