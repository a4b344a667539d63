//! What can be said of the literals of a rule before it is evaluated (CEL's validators of literals).

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, LiteralValue},
};

use super::{
    CompileError, Environment, Expression, Value,
    expression::{children, shown_at},
};

/// Refuses arguments that no evaluation could use, and parts that are lists or maps of mixed literals.
pub(super) fn check(source: &str, node: &IdedExpr) -> Result<(), CompileError> {
    if let Expr::Call(call) = &node.expr {
        argument(source, call)?;
        // What is formatted may be of all kinds.
        if call.func_name == "format" {
            return Ok(());
        }
    }
    children(node).into_iter().try_for_each(|part| mixture(source, part))
}

fn mixture(source: &str, node: &IdedExpr) -> Result<(), CompileError> {
    match &node.expr {
        Expr::List(list) => alike(source, list.elements.iter()),
        Expr::Map(map) => alike(
            source,
            map.entries.iter().filter_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => Some(&entry.value),
                EntryExpr::StructField(_) => None,
            }),
        ),
        _ => Ok(()),
    }
}

fn argument(source: &str, call: &CallExpr) -> Result<(), CompileError> {
    let probe = match call.func_name.as_str() {
        "duration" if call.target.is_none() => "duration(self)",
        "timestamp" if call.target.is_none() => "timestamp(self)",
        "matches" => "''.matches(self)",
        _ => return Ok(()),
    };
    let Some(IdedExpr { expr: Expr::Literal(LiteralValue::String(text)), .. }) = call.args.last() else {
        return Ok(());
    };
    let text = text.to_string();
    let value = Value::String(std::sync::Arc::new(text.clone()));
    let environment = Environment::new([("self".to_owned(), value)]);
    if Expression::compile(probe, &["self"])?.evaluate(&environment).is_ok() {
        return Ok(());
    }
    let message = format!("invalid {} argument", call.func_name);
    Err(CompileError(shown_at(source, place(source, &text), &message)))
}

/// What CEL calls the type of a scalar literal, and its text.
fn scalar(node: &IdedExpr) -> Option<(&'static str, String)> {
    let Expr::Literal(literal) = &node.expr else { return None };
    Some(match literal {
        LiteralValue::Boolean(value) => ("bool", value.to_string()),
        LiteralValue::Int(value) => ("int", value.to_string()),
        LiteralValue::UInt(value) => ("uint", value.to_string()),
        LiteralValue::Double(value) => ("double", value.to_string()),
        LiteralValue::String(value) => ("string", value.to_string()),
        _ => return None,
    })
}

fn alike<'a>(source: &str, nodes: impl Iterator<Item = &'a IdedExpr>) -> Result<(), CompileError> {
    let mut expected = None;
    for node in nodes {
        let Some((kind, text)) = scalar(node) else { return Ok(()) };
        let first = *expected.get_or_insert(kind);
        if kind != first {
            let message = format!("expected type '{first}' but found '{kind}'");
            return Err(CompileError(shown_at(source, place(source, &text), &message)));
        }
    }
    Ok(())
}

/// Where a literal stands in the text: in quotes, or as it is.
fn place(source: &str, text: &str) -> usize {
    let quoted = ["'", "\""].iter().find_map(|quote| source.find(&format!("{quote}{text}{quote}")));
    quoted.or_else(|| source.find(text)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::cel::Rules;
    use serde_json::json;
    use tiphys_schema::Path;

    #[test]
    fn literals_that_mean_nothing_are_refused_with_the_rule() {
        let told = |rule: &str| {
            let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
            let errors = Rules::check(&schema, &Path::root(), false);
            errors.iter().map(ToString::to_string).collect::<String>()
        };
        assert!(told("self.matches('[')").contains("1:14: invalid matches argument"));
        assert!(told("duration('x') == duration('1h')").contains("1:10: invalid duration argument"));
        assert!(
            told("timestamp('x') < timestamp('2020-01-01T00:00:00Z')")
                .contains("1:11: invalid timestamp argument")
        );
        assert!(told("[1, 'a'].size() == 2").contains("1:5: expected type 'int' but found 'string'"));
        assert!(
            told("{'a': 1, 'b': 'x'}.size() == 2").contains("1:15: expected type 'int' but found 'string'")
        );
        assert_eq!(told("'%s-%d'.format(['a', 1]) == self"), "");
        assert_eq!(told("self.matches('^a') && duration('1h') > duration('1m') && self in ['a', 'b']"), "");
    }
}
