//! From the parser's tree to ours.

use std::sync::Arc;

use hcl_edit::{
    Span as _,
    expr::{self, ObjectKey, TraversalOperator},
    structure::{self, Body, Structure},
    template::Element,
    visit::{self, Visit},
};
use tiphys_diag::{Span, catch_panic};

use super::{Attribute, Block, Expression, FileRead, Reference, Unreadable, Value};
use crate::tools::Lines;

/// What a file says.
pub(super) struct Text {
    /// Its blocks; the attributes outside of blocks, as in `.tfvars`, are in a block without kind.
    pub blocks: Vec<Block>,
    /// The files beside the module that its functions read.
    pub reads: Vec<FileRead>,
}

/// Reads a file.
pub(super) fn text(path: &Arc<str>, text: &Arc<str>) -> Result<Text, Unreadable> {
    let parsed = catch_panic("the HCL file", || {
        let first = hcl_edit::parser::parse_body(text);
        first.or_else(|error| hcl_edit::parser::parse_body(&with_joined_conditions(text)).map_err(|_| error))
    })
    .map_err(|panicked| Unreadable {
        message: panicked.to_string(),
        span: Span::point(path.clone(), 1, 1),
    })?;
    let body = parsed.map_err(|error| {
        let (line, column) = (error.location().line(), error.location().column());
        let of = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Unreadable {
            message: error.message().to_owned(),
            span: Span::point(path.clone(), of(line), of(column)),
        }
    })?;
    let reader = Reader { lines: Lines::new(path, text) };
    let (attributes, mut blocks) = reader.body(&body);
    if !attributes.is_empty() {
        let span = attributes[0].expression.span.clone();
        blocks.push(Block { kind: String::new(), labels: Vec::new(), attributes, blocks: Vec::new(), span });
    }
    let mut reads = Reads { reader: &reader, found: Vec::new() };
    reads.visit_body(&body);
    let reads = reads.found;
    Ok(Text { blocks, reads })
}

/// The same text, of the same length, with lines that begin with `?` or `:` joined to the ones before them.
/// Terraform takes such conditions between the braces of a `for`; the parser knows them between parentheses
/// alone.
fn with_joined_conditions(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with(['?', ':']) && joined.ends_with('\n') {
            joined.pop();
            joined.push(' ');
        }
        joined.push_str(line);
    }
    joined
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
        let mut names = Names { reader: self, found: Vec::new(), tries: 0 };
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
    /// How many calls of `try` and `can` it stands in.
    tries: usize,
}

impl Names<'_> {
    /// A bare word as an index, which may be the name of a loop's element.
    fn note_bare_index(&mut self, operator: &TraversalOperator) {
        if let TraversalOperator::Index(index) = operator
            && let Some(word) = index.as_variable()
        {
            let span = self.reader.span(index.span());
            let path = vec![word.to_string()];
            self.found.push(Reference { path, span, is_tried: self.tries > 0, before_index: 1 });
        }
    }
}

impl Visit for Names<'_> {
    fn visit_traversal(&mut self, node: &expr::Traversal) {
        if let Some(root) = node.expr.as_variable() {
            let mut path = vec![root.to_string()];
            let mut before_index = None;
            for operator in &node.operators {
                match operator.value() {
                    TraversalOperator::GetAttr(name) => path.push(name.to_string()),
                    other => {
                        before_index.get_or_insert(path.len());
                        self.note_bare_index(other);
                    }
                }
            }
            let span = self.reader.span(node.span());
            let before_index = before_index.unwrap_or(path.len());
            self.found.push(Reference { path, span, is_tried: self.tries > 0, before_index });
        }
        visit::visit_traversal(self, node);
    }

    fn visit_func_call(&mut self, node: &expr::FuncCall) {
        let tries = usize::from(matches!(node.name.name.as_str(), "try" | "can"));
        self.tries += tries;
        visit::visit_func_call(self, node);
        self.tries -= tries;
    }
}

/// Collects the files that functions read from the module's own folder, wherever they are sure to be read.
struct Reads<'a> {
    reader: &'a Reader,
    found: Vec<FileRead>,
}

impl Visit for Reads<'_> {
    fn visit_func_call(&mut self, node: &expr::FuncCall) {
        match node.name.name.as_str() {
            // What cannot be read is an answer there.
            "try" | "can" | "fileexists" => return,
            "file" | "templatefile" | "filemd5" | "filesha1" | "filesha256" | "filesha512" | "filebase64"
            | "filebase64sha256" | "filebase64sha512" => {
                if let Some(path) = node.args.iter().next().and_then(below_module) {
                    let span = self.reader.span(node.span());
                    self.found.push(FileRead { function: node.name.name.to_string(), path, span });
                }
            }
            _ => {}
        }
        visit::visit_func_call(self, node);
    }

    /// Only one side of a condition is read.
    fn visit_conditional(&mut self, _node: &expr::Conditional) {}

    /// What is made for each element of a list may be made for none.
    fn visit_for_expr(&mut self, _node: &expr::ForExpr) {}
}

/// `"${path.module}/rest"`, as the rest.
fn below_module(argument: &expr::Expression) -> Option<String> {
    let expr::Expression::StringTemplate(template) = argument else { return None };
    let elements: Vec<&Element> = template.iter().collect();
    let [Element::Interpolation(first), Element::Literal(rest)] = elements.as_slice() else { return None };
    let expr::Expression::Traversal(of) = &first.expr else { return None };
    let [TraversalOperator::GetAttr(name)] = of.operators.iter().map(|it| it.value()).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let is_module =
        of.expr.as_variable().is_some_and(|root| root.as_str() == "path") && name.as_str() == "module";
    is_module.then(|| rest.value().strip_prefix('/').map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_over_several_lines_is_read_within_a_for() {
        let of = |condition: &str| {
            let hcl = format!(
                "locals {{\n  users = {{\n    for name, user in var.users : name =>\n{condition}  }}\n}}\n"
            );
            text(&"users.tf".into(), &hcl.as_str().into())
        };
        let whole = of("    local.is_open\n    ? { host = user.host }\n    : { host = null }\n");
        assert_eq!(whole.map(|it| it.blocks.len()).map_err(|it| it.message), Ok(1));
        assert!(of("    local.is_open\n    ? { host = user.host\n").is_err());
    }
}
