//! What a rule can cost at most, told from its text and the sizes that its schema allows, as the API server
//! does before it accepts a definition (cel-go, `checker/cost.go`, with the sizes of a structural schema).

mod calls;
mod declared;
mod extended;
mod size;
mod types;

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr},
    parser::Parser,
};

pub(super) use declared::{Declared, MAX_REQUEST, Shape};
use tiphys_diag::catch_panic;

use size::Size;
use types::Type;

/// How deep expressions are followed.
const MAX_DEPTH: usize = 500;
const LIST: u64 = 10;
const MAP: u64 = 30;
const MESSAGE: u64 = 40;

/// What one evaluation of an expression about values of a type costs at most; `None` if it cannot be read.
pub(super) fn estimate(source: &str, declared: &Declared) -> Option<u64> {
    let parse = || Parser::default().enable_optional_syntax(true).parse(source).ok();
    let root = catch_panic("the CEL expression", parse).ok().flatten()?;
    let mut coster = Coster { root: declared, locals: Vec::new(), depth: 0 };
    Some(coster.cost(&root).cost)
}

/// Where in the declared types a value comes from.
#[derive(Clone, Copy, Debug)]
enum TypeOrigin<'a> {
    /// From nowhere in them: it is made by the expression.
    Nowhere,
    /// From something that they do not describe.
    Lost,
    At(&'a Declared),
}

/// The sizes of what a list or map holds.
#[derive(Clone, Copy, Debug)]
struct Entry {
    is_list: bool,
    key: Size,
    value: Size,
}

impl Entry {
    fn or(self, other: Self) -> Self {
        Self { key: self.key.or(other.key), value: self.value.or(other.value), ..self }
    }
}

/// What is known of a part of an expression.
#[derive(Clone, Debug)]
struct Node<'a> {
    cost: u64,
    size: Option<Size>,
    entry: Option<Entry>,
    place: TypeOrigin<'a>,
    ty: Type<'a>,
    /// The number that it is, if it is written there.
    number: Option<i64>,
}

impl<'a> Node<'a> {
    fn new(cost: u64, ty: Type<'a>) -> Self {
        let size = ty.has_size_one().then_some(Size::exactly(1));
        Self { cost, size, entry: None, place: TypeOrigin::Nowhere, ty, number: None }
    }

    fn with_size(mut self, size: Size) -> Self {
        self.size = Some(size);
        self
    }

    fn holding(mut self, entry: Option<Entry>) -> Self {
        self.entry = entry;
        self
    }

    /// The size, or that nothing is known of it.
    fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

/// A name that a loop or macro gives.
struct Local<'a> {
    name: String,
    node: Node<'a>,
}

struct Coster<'a> {
    root: &'a Declared,
    locals: Vec<Local<'a>>,
    depth: usize,
}

impl<'a> Coster<'a> {
    fn cost(&mut self, node: &IdedExpr) -> Node<'a> {
        if self.depth > MAX_DEPTH {
            return Node::new(u64::MAX, Type::Dyn);
        }
        self.depth += 1;
        let result = match &node.expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(&list.elements),
            Expr::Map(map) => self.map(map.entries.iter().map(|entry| &entry.expr)),
            Expr::Struct(message) => {
                let fields = self.map(message.entries.iter().map(|entry| &entry.expr));
                Node::new(fields.cost.saturating_add(MESSAGE - MAP), Type::Dyn)
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Unspecified => Node::new(0, Type::Dyn),
        };
        self.depth -= 1;
        result
    }

    fn literal(&self, literal: &LiteralValue) -> Node<'a> {
        let of_size_one = |ty| Node::new(0, ty).with_size(Size::exactly(1));
        match literal {
            LiteralValue::Boolean(_) => of_size_one(Type::Bool),
            LiteralValue::String(text) => {
                Node::new(0, Type::String).with_size(Size::exactly(text.inner().chars().count() as u64))
            }
            LiteralValue::Bytes(bytes) => {
                Node::new(0, Type::Bytes).with_size(Size::exactly(bytes.inner().len() as u64))
            }
            LiteralValue::Int(number) => Node { number: Some(*number.inner()), ..of_size_one(Type::Scalar) },
            LiteralValue::Null => of_size_one(Type::Dyn),
            LiteralValue::Double(_) | LiteralValue::UInt(_) => of_size_one(Type::Scalar),
        }
    }

    fn local(&self, name: &str) -> Option<&Node<'a>> {
        self.locals.iter().rev().find(|local| local.name == name).map(|local| &local.node)
    }

    fn name(&self, name: &str) -> Node<'a> {
        let Some(local) = self.local(name) else {
            let ty = match name {
                "self" => Type::from_declared(self.root),
                // With optionalOldSelf it is optional; it is only used after a test then.
                "oldSelf" => Type::from_declared(self.root),
                _ => Type::Dyn,
            };
            // Every name stands for the root of what is declared.
            let node = Node { place: TypeOrigin::At(self.root), ..Node::new(1, ty) };
            return self.with_declared_size(node);
        };
        let own = Node { cost: 1, number: None, ..local.clone() };
        let by_place = self.with_declared_size(Node { size: None, ..own.clone() });
        Node { size: by_place.size.or(Node::new(0, own.ty.clone()).size).or(own.size), ..own }
    }

    /// The same with the size that its place has.
    fn with_declared_size(&self, node: Node<'a>) -> Node<'a> {
        match node.place {
            TypeOrigin::At(declared) => node.with_size(Size::up_to(declared.most)),
            TypeOrigin::Nowhere | TypeOrigin::Lost => node,
        }
    }

    /// A step from a place: a field, or the parts of a list or map. What comes from nowhere is looked for at
    /// the root, as the API server does.
    fn step(&self, from: TypeOrigin<'a>, to: Step<'_>) -> TypeOrigin<'a> {
        let TypeOrigin::At(declared) = from else {
            return if matches!(from, TypeOrigin::Nowhere) {
                TypeOrigin::At(self.root)
            } else {
                TypeOrigin::Lost
            };
        };
        match (&declared.shape, to) {
            (Shape::List(parts) | Shape::Map(parts), Step::Parts) => TypeOrigin::At(parts),
            (Shape::Map(_), Step::Keys) => TypeOrigin::At(&KEY),
            (Shape::Object(fields), Step::Field(name)) => {
                fields.get(name).map_or(TypeOrigin::Lost, TypeOrigin::At)
            }
            _ => TypeOrigin::Lost,
        }
    }

    fn select(&mut self, select: &SelectExpr) -> Node<'a> {
        let operand = self.cost(&select.operand);
        if select.test {
            return Node::new(operand.cost, Type::Bool);
        }
        let own = u64::from(matches!(operand.ty, Type::Map(..) | Type::Object(_)));
        let node = Node::new(operand.cost.saturating_add(own), operand.ty.field(&select.field));
        let place = self.step(operand.place, Step::Field(&select.field));
        self.with_declared_size(Node { place, ..node })
    }

    fn list(&mut self, elements: &[IdedExpr]) -> Node<'a> {
        let nodes: Vec<Node<'a>> = elements.iter().map(|element| self.cost(element)).collect();
        let cost = nodes.iter().fold(LIST, |sum, node| sum.saturating_add(node.cost));
        let ty = nodes.first().map_or(Type::Dyn, |node| node.ty.clone());
        let entry = Entry { is_list: true, key: Size::exactly(1), value: of_all(nodes.iter()) };
        Node::new(cost, Type::list(ty)).with_size(Size::exactly(nodes.len() as u64)).holding(Some(entry))
    }

    fn map<'e>(&mut self, entries: impl Iterator<Item = &'e EntryExpr>) -> Node<'a> {
        let nodes: Vec<[Node<'a>; 2]> = entries
            .map(|entry| match entry {
                EntryExpr::MapEntry(entry) => [self.cost(&entry.key), self.cost(&entry.value)],
                EntryExpr::StructField(field) => [Node::new(0, Type::String), self.cost(&field.value)],
            })
            .collect();
        let cost = nodes.iter().flatten().fold(MAP, |sum, node| sum.saturating_add(node.cost));
        let of = |at: usize| nodes.first().map_or(Type::Dyn, |pair| pair[at].ty.clone());
        let size = |at: usize| of_all(nodes.iter().map(|pair| &pair[at]));
        let entry = Entry { is_list: false, key: size(0), value: size(1) };
        let ty = Type::Map(of(0).into(), of(1).into());
        Node::new(cost, ty).with_size(Size::exactly(nodes.len() as u64)).holding(Some(entry))
    }

    fn comprehension(&mut self, loop_: &ComprehensionExpr) -> Node<'a> {
        let range = self.cost(&loop_.iter_range);
        let init = self.cost(&loop_.accu_init);
        let names = [loop_.iter_var.as_str()];
        let is_container = matches!(loop_.accu_init.expr, Expr::List(_) | Expr::Map(_));
        let is_literal = matches!(loop_.accu_init.expr, Expr::Literal(_));
        let depth = self.locals.len();
        self.name_local(&loop_.accu_var, init.clone());
        self.name_steps(&range, &names);
        let condition = self.cost(&loop_.loop_cond);
        let step = self.cost(&loop_.loop_step);
        self.locals.truncate(depth);
        let of_result = if is_container { step.ty.clone() } else { init.ty.clone() };
        self.name_local(&loop_.accu_var, Node { ty: of_result, ..init.clone() });
        let result = self.cost(&loop_.result);
        self.locals.truncate(depth);
        let per_step = step.cost.saturating_add(condition.cost);
        let looped = range.size().most.saturating_mul(per_step);
        let cost = [range.cost, init.cost, result.cost, looped];
        let node = Node::new(cost.into_iter().fold(0, u64::saturating_add), result.ty);
        match (is_literal, is_container) {
            (true, _) => Node { size: init.size, ..node },
            (_, true) => node.with_size(range.size()).holding(step.entry),
            _ => node,
        }
    }

    fn name_local(&mut self, name: &str, node: Node<'a>) {
        self.locals.push(Local { name: name.to_owned(), node });
    }

    /// Names what a loop is at: the item of a list or key of a map, or with two names both key and value.
    fn name_steps(&mut self, range: &Node<'a>, names: &[&str]) {
        let is_list = match (&range.entry, &range.ty) {
            (Some(entry), _) => entry.is_list,
            (None, ty) => matches!(ty, Type::List(_)),
        };
        let parts = |this: &Self| {
            let place = this.step(range.place, Step::Parts);
            let size = range.entry.map(|entry| entry.value);
            Node { place, size, ..Node::new(0, range.ty.parts()) }
        };
        let keys = |this: &Self| {
            let place = if is_list { TypeOrigin::Lost } else { this.step(range.place, Step::Keys) };
            let size = range.entry.map(|entry| entry.key);
            let ty = if is_list { Type::Scalar } else { range.ty.steps() };
            Node { place, size, ..Node::new(0, ty) }
        };
        match names {
            [key, value] => {
                let nodes = [keys(self), parts(self)];
                for (name, node) in [key, value].into_iter().zip(nodes) {
                    self.name_local(name, node);
                }
            }
            [one] => {
                let node = if is_list { parts(self) } else { keys(self) };
                self.name_local(one, node);
            }
            _ => {}
        }
    }

    /// The cost of an expression in which a name stands for something.
    fn bound(&mut self, name: &str, value: Node<'a>, body: &IdedExpr) -> Node<'a> {
        let before = value.cost.saturating_add(LIST);
        let depth = self.locals.len();
        self.name_local(name, value);
        let mut body = self.cost(body);
        self.locals.truncate(depth);
        body.cost = body.cost.saturating_add(before);
        Node { place: TypeOrigin::Nowhere, ..body }
    }

    /// A field that may be missing: `self.?field`.
    fn optional_field(&mut self, call: &CallExpr) -> Option<Node<'a>> {
        let [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }] =
            call.args.as_slice()
        else {
            return None;
        };
        let operand = (call.func_name == "_?._").then(|| self.cost(operand))?;
        let ty = match operand.ty.field(field.inner()) {
            already @ Type::Optional(_) => already,
            other => other.optional(),
        };
        Some(Node::new(operand.cost.saturating_add(1), ty))
    }

    fn call(&mut self, call: &CallExpr) -> Node<'a> {
        if let Some(node) = self.macro_call(call).or_else(|| self.optional_field(call)) {
            return node;
        }
        let library = match call.target.as_deref() {
            Some(IdedExpr { expr: Expr::Ident(name), .. })
                if LIBRARIES.contains(&name.as_str()) && self.local(name).is_none() =>
            {
                Some(format!("{name}.{}", call.func_name))
            }
            _ => None,
        };
        let name = library.as_deref().unwrap_or(&call.func_name);
        let args: Vec<Node<'a>> = call.args.iter().map(|arg| self.cost(arg)).collect();
        let target = call.target.as_deref().filter(|_| library.is_none()).map(|target| self.cost(target));
        let before = target.as_ref().map_or(0, |target| target.cost);
        let mut node = self.function(name, target.as_ref(), &args);
        node.cost = node.cost.saturating_add(before);
        node
    }
}

/// Names that stand before functions of a library.
const LIBRARIES: [&str; 8] = ["sets", "lists", "strings", "optional", "format", "ip", "cidr", "jsonpatch"];

/// Keys of maps are texts of no known size.
static KEY: Declared = Declared { shape: Shape::Scalar(declared::Scalar::String), most: 0, smallest: 2 };

/// A step from a place.
enum Step<'s> {
    Field(&'s str),
    /// Items of a list, values of a map.
    Parts,
    Keys,
}

/// The sizes that any of some values can have.
fn of_all<'n, 'a: 'n>(nodes: impl Iterator<Item = &'n Node<'a>>) -> Size {
    nodes.map(Node::size).reduce(Size::or).unwrap_or(Size::exactly(0))
}
