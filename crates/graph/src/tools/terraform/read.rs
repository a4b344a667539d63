//! From the parser's tree to ours.

use std::sync::Arc;

use hcl_edit::{
    Span as _,
    expr::{self, ObjectKey, TraversalOperator},
    structure::{self, Body, Structure},
    template::Element,
    visit::{self, Visit},
};
use tiphys_diag::Span;

use super::{Attribute, Block, Expression, Reference, Unreadable, Value};
use crate::tools::Lines;

/// The blocks of a file; the attributes outside of blocks, as in `.tfvars`, are in a block without kind.
pub fn blocks(path: &Arc<str>, text: &Arc<str>) -> Result<Vec<Block>, Unreadable> {
    let body = hcl_edit::parser::parse_body(text).map_err(|error| {
        let (line, column) = (error.location().line(), error.location().column());
        let of = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Unreadable {
            message: error.message().to_owned(),
            span: Span::point(path.clone(), of(line), of(column)),
        }
    })?;
    let reader = Reader { lines: Lines::of(path, text) };
    let (attributes, mut blocks) = reader.body(&body);
    if !attributes.is_empty() {
        let span = attributes[0].expression.span.clone();
        blocks.push(Block { kind: String::new(), labels: Vec::new(), attributes, blocks: Vec::new(), span });
    }
    Ok(blocks)
}

struct Reader {
    lines: Lines,
}

impl Reader {
    fn body(&self, body: &Body) -> (Vec<Attribute>, Vec<Block>) {
        let (mut attributes, mut blocks) = (Vec::new(), Vec::new());
        for structure in body {
            match structure {
                Structure::Attribute(it) => attributes
                    .push(Attribute { name: it.key.to_string(), expression: self.expression(&it.value) }),
                Structure::Block(it) => blocks.push(self.block(it)),
            }
        }
        (attributes, blocks)
    }

    fn block(&self, block: &structure::Block) -> Block {
        let (mut attributes, mut blocks) = self.body(&block.body);
        let mut kind = block.ident.to_string();
        let mut labels: Vec<String> = block.labels.iter().map(|label| label.as_str().to_owned()).collect();
        if kind == "dynamic" && labels.len() == 1 {
            kind = labels.remove(0);
            if let Some(at) = blocks.iter().position(|inner| inner.kind == "content") {
                let content = blocks.remove(at);
                attributes.extend(content.attributes);
                blocks.extend(content.blocks);
            }
        }
        Block { kind, labels, attributes, blocks, span: self.span(block.span()) }
    }

    fn expression(&self, expression: &expr::Expression) -> Expression {
        let mut names = Names { reader: self, found: Vec::new() };
        names.visit_expr(expression);
        Expression {
            value: self.value(expression),
            references: names.found,
            span: self.span(expression.span()),
        }
    }

    fn value(&self, expression: &expr::Expression) -> Value {
        match expression {
            expr::Expression::Null(_) => Value::Null,
            expr::Expression::Bool(value) => Value::Bool(*value.value()),
            expr::Expression::Number(value) => value.value().as_f64().map_or(Value::Unknown, Value::Number),
            expr::Expression::String(value) => Value::String(value.value().clone()),
            expr::Expression::HeredocTemplate(heredoc) => {
                let elements: Vec<&Element> = heredoc.template.iter().collect();
                match elements.as_slice() {
                    [Element::Literal(literal)] => Value::String(literal.value().clone()),
                    _ => Value::Unknown,
                }
            }
            expr::Expression::Array(items) => {
                Value::List(items.iter().map(|item| self.expression(item)).collect())
            }
            expr::Expression::Object(object) => {
                let pairs = object
                    .iter()
                    .filter_map(|(key, value)| Some((key_text(key)?, self.expression(value.expr()))));
                Value::Object(pairs.collect())
            }
            expr::Expression::Parenthesis(inner) => self.value(inner.inner()),
            _ => Value::Unknown,
        }
    }

    fn span(&self, bytes: Option<std::ops::Range<usize>>) -> Span {
        self.lines.span(bytes.unwrap_or_default())
    }
}

fn key_text(key: &ObjectKey) -> Option<String> {
    match key {
        ObjectKey::Ident(ident) => Some(ident.to_string()),
        ObjectKey::Expression(expression) => {
            expression.as_str().map(str::to_owned).or_else(|| Some(expression.as_variable()?.to_string()))
        }
    }
}

/// Collects what an expression refers to.
struct Names<'a> {
    reader: &'a Reader,
    found: Vec<Reference>,
}

impl Visit for Names<'_> {
    fn visit_traversal(&mut self, node: &expr::Traversal) {
        if let Some(root) = node.expr.as_variable() {
            let mut path = vec![root.to_string()];
            for operator in &node.operators {
                if let TraversalOperator::GetAttr(name) = operator.value() {
                    path.push(name.to_string());
                }
            }
            self.found.push(Reference { path, span: self.reader.span(node.span()) });
        }
        visit::visit_traversal(self, node);
    }
}
