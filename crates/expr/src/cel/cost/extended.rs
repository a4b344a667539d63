//! What CEL's extensions cost: sets, lists, loops with two names, optional values (cel-go, `ext`).

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr},
};

use super::{
    Coster, Entry, LIST, MAP, Node,
    size::{Size, TEXT},
    types::Type,
};

/// Functions of lists and sets.
pub(super) fn call(name: &str, target: Option<&Node<'_>>, args: &[Node<'_>]) -> Option<(u64, Option<Size>)> {
    let own = target.map(Node::size);
    let number = |at: usize, otherwise: u64| {
        args.get(at).and_then(|arg| arg.number).and_then(|n| u64::try_from(n).ok()).unwrap_or(otherwise)
    };
    let made =
        |size: Size, factor: f64| Some((size.traversal_cost(factor).saturating_add(1 + LIST), Some(size)));
    match (name, args) {
        ("sets.contains" | "sets.intersects" | "sets.equivalent", [left, right]) => {
            let factor = if name == "sets.equivalent" { 2.0 } else { 1.0 };
            Some((left.size().times(right.size()).traversal_cost(factor).saturating_add(1), None))
        }
        ("lists.range", [_]) => made(Size::exactly(number(0, u64::MAX)), 1.0),
        ("slice", [_, _]) => made(Size::exactly(number(1, own?.most).saturating_sub(number(0, 0))), 1.0),
        ("reverse", []) => made(own?, 1.0),
        ("flatten", _) => made(own?, if args.is_empty() { 1.0 } else { number(0, u64::MAX) as f64 }),
        ("distinct", []) => made(own?.times(own?), 2.0),
        ("sort", []) => made(own?.times(own?), sorting(&target?.ty.parts())),
        _ => None,
    }
}

/// What comparing items costs that are sorted.
fn sorting(items: &Type<'_>) -> f64 {
    if matches!(items, Type::String | Type::Bytes) { 2.0 + TEXT } else { 2.0 }
}

impl<'a> Coster<'a> {
    /// The macros that the parser leaves as calls.
    pub(super) fn macro_call(&mut self, call: &CallExpr) -> Option<Node<'a>> {
        let target = call.target.as_deref()?;
        let name = |at: usize| match &call.args.get(at)?.expr {
            Expr::Ident(name) => Some(name.as_str()),
            _ => None,
        };
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("optMap" | "optFlatMap", [_, body]) => {
                Some(self.optional_map(target, name(0)?, body, call.func_name == "optMap"))
            }
            ("sortBy", [_, key]) => Some(self.sort_by(target, name(0)?, key)),
            ("all" | "exists" | "existsOne", [_, _, body]) => {
                let names = [name(0)?, name(1)?];
                Some(self.quantified(target, &names, body, &call.func_name))
            }
            ("transformList" | "transformMap" | "transformMapEntry", [_, _, rest @ ..]) => {
                let (body, filter) = match rest {
                    [filter, body] => (body, Some(filter)),
                    [body] => (body, None),
                    _ => return None,
                };
                Some(self.transformed(target, &[name(0)?, name(1)?], filter, body, &call.func_name))
            }
            _ => None,
        }
    }

    /// A test, and what is made of the value; the optional is looked at twice.
    fn optional_map(&mut self, target: &IdedExpr, name: &str, body: &IdedExpr, wraps: bool) -> Node<'a> {
        let target = self.cost(target);
        let twice = target.cost.saturating_add(1);
        let value = Node::new(twice, target.ty.optional_value());
        let body = self.bound(name, value, body);
        let cost = body.cost.saturating_add(twice).saturating_add(u64::from(wraps));
        Node::new(cost, if wraps { body.ty.optional() } else { body.ty })
    }

    fn sort_by(&mut self, target: &IdedExpr, name: &str, key: &IdedExpr) -> Node<'a> {
        let list = self.cost(target);
        let depth = self.locals.len();
        self.name_steps(&list, &[name]);
        let key = self.cost(key);
        self.locals.truncate(depth);
        // The keys are collected as a loop does: a list for each, added to those before.
        let per_item = key.cost.saturating_add(LIST + 2);
        let keys = list.size().most.saturating_mul(per_item).saturating_add(LIST + 2);
        let sorted = list.size().times(list.size());
        let cost = [list.cost, keys, sorted.traversal_cost(sorting(&key.ty)), LIST + LIST + 2];
        Node::new(cost.into_iter().fold(0, u64::saturating_add), list.ty).with_size(sorted)
    }

    fn quantified(
        &mut self,
        range: &IdedExpr,
        names: &[&str],
        body: &IdedExpr,
        quantifier: &str,
    ) -> Node<'a> {
        let range = self.cost(range);
        let depth = self.locals.len();
        self.name_steps(&range, names);
        let body = self.cost(body);
        self.locals.truncate(depth);
        // A test of the result so far, how the body is joined to it, and how it is read in the end.
        let (around, after) = match quantifier {
            "all" => (3, 1),
            "exists" => (4, 1),
            _ => (2, 2),
        };
        let looped = range.size().most.saturating_mul(body.cost.saturating_add(around));
        Node::new(range.cost.saturating_add(looped).saturating_add(after), Type::Bool)
    }

    fn transformed(
        &mut self,
        range: &IdedExpr,
        names: &[&str],
        filter: Option<&IdedExpr>,
        body: &IdedExpr,
        transformation: &str,
    ) -> Node<'a> {
        let range = self.cost(range);
        let depth = self.locals.len();
        self.name_steps(&range, names);
        let filter = filter.map_or(0, |filter| self.cost(filter).cost);
        let body = self.cost(body);
        self.locals.truncate(depth);
        let is_list = transformation == "transformList";
        // The result so far and the call that adds to it; a list of one, or the key.
        let step = body.cost.saturating_add(match transformation {
            "transformList" => 2 + LIST,
            "transformMap" => 3,
            _ => 2,
        });
        let looped = range.size().most.saturating_mul(step.saturating_add(filter));
        let init = if is_list { LIST } else { MAP };
        let cost = [range.cost, init, looped, 1].into_iter().fold(0, u64::saturating_add);
        let ty = match is_list {
            true => Type::list(body.ty.clone()),
            false => Type::Map(Type::Dyn.into(), body.ty.clone().into()),
        };
        let entry = Entry { is_list, key: Size::UNKNOWN, value: body.size() };
        Node::new(cost, ty).with_size(range.size()).holding(is_list.then_some(entry))
    }
}
