//! The macros that the parser does not know, as the plain expressions that they stand for: comprehensions
//! with two variables, `sortBy`, `optMap` and `optFlatMap` (CEL's extension libraries of those names).

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, MapExpr},
};

/// The pseudo-variable of a loop over nothing.
pub(super) const UNUSED: &str = "#unused";
/// The accumulator of a loop.
const RESULT: &str = "@result";
/// The entry that a loop with two variables is at.
const ENTRY: &str = "@entry";

/// Builds expressions that stand in the place of one.
struct Builder {
    id: u64,
}

impl Builder {
    fn node(&self, expr: Expr) -> IdedExpr {
        IdedExpr { id: self.id, expr }
    }

    fn name(&self, name: &str) -> IdedExpr {
        self.node(Expr::Ident(name.to_owned()))
    }

    fn int(&self, value: i64) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn bool(&self, value: bool) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn list(&self, elements: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::List(ListExpr::new(elements)))
    }

    fn call(&self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
    }

    /// A method, or with a library's name as the target one of its functions.
    fn method(&self, target: IdedExpr, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        let target = Some(Box::new(target));
        self.node(Expr::Call(CallExpr { func_name: name.to_owned(), target, args }))
    }

    /// `body` with a name for a value: a loop over nothing.
    fn bind(&self, name: &str, value: IdedExpr, body: IdedExpr) -> IdedExpr {
        self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: self.list(Vec::new()),
            iter_var: UNUSED.into(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond: self.bool(false),
            loop_step: self.name(name),
            result: body,
        })))
    }

    /// `body` with the names of a key and its value for the entry that a loop is at.
    fn for_entry(&self, names: &[String; 2], body: IdedExpr) -> IdedExpr {
        let part = |at| self.call("_[_]", vec![self.name(ENTRY), self.int(at)]);
        let inner = self.bind(&names[1], part(1), body);
        self.bind(&names[0], part(0), inner)
    }

    fn each(
        &self,
        range: IdedExpr,
        variable: &str,
        init: IdedExpr,
        cond: IdedExpr,
        step: IdedExpr,
        result: IdedExpr,
    ) -> IdedExpr {
        self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: range,
            iter_var: variable.to_owned(),
            iter_var2: None,
            accu_var: RESULT.into(),
            accu_init: init,
            loop_cond: cond,
            loop_step: step,
            result,
        })))
    }
}

/// Replaces one of the macros by what it stands for; anything else stays as it is.
pub(super) fn expand(node: &mut IdedExpr) {
    let Expr::Call(call) = &mut node.expr else { return };
    let Some(target) = call.target.take() else { return };
    let names: Vec<String> = call
        .args
        .iter()
        .map_while(|arg| if let Expr::Ident(name) = &arg.expr { Some(name.clone()) } else { None })
        .collect();
    let b = Builder { id: node.id };
    let args = std::mem::take(&mut call.args);
    let made = match (call.func_name.as_str(), args.len()) {
        ("sortBy", 2) if !names.is_empty() => Ok(sort_by(&b, *target, &names[0], args)),
        ("optMap" | "optFlatMap", 2) if !names.is_empty() => {
            Ok(optional_map(&b, *target, &names[0], args, call.func_name == "optMap"))
        }
        ("named", 1) if target.expr == Expr::Ident("format".into()) => {
            Ok(b.call("@optional", vec![b.method(*target, "named", args)]))
        }
        (name @ ("all" | "exists" | "existsOne" | "exists_one"), 3) if names.len() >= 2 => {
            let quantifier = name.to_owned();
            Ok(quantified(&b, *target, two(&names), args, &quantifier))
        }
        (name @ ("transformList" | "transformMap" | "transformMapEntry"), 3 | 4) if names.len() >= 2 => {
            let transformation = name.to_owned();
            Ok(transformed(&b, *target, two(&names), args, &transformation))
        }
        _ => Err((target, args)),
    };
    match made {
        Ok(made) => *node = made,
        Err((target, args)) => {
            if let Expr::Call(call) = &mut node.expr {
                (call.target, call.args) = (Some(target), args);
            }
        }
    }
}

fn two(names: &[String]) -> [String; 2] {
    [names[0].clone(), names[1].clone()]
}

fn last(mut args: Vec<IdedExpr>) -> IdedExpr {
    args.pop().unwrap_or_default()
}

/// The list in the order of the keys that an expression makes of its items.
fn sort_by(b: &Builder, target: IdedExpr, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let step = b.call("_+_", vec![b.name(RESULT), b.list(vec![last(args)])]);
    let source = b.name("@sorted");
    let keys = b.each(source, name, b.list(Vec::new()), b.bool(true), step, b.name(RESULT));
    let sorted = b.call("@sortByKeys", vec![b.name("@sorted"), keys]);
    b.bind("@sorted", target, sorted)
}

/// The function gives the name to what the optional holds; the CEL library keeps no optionals in variables.
fn optional_map(b: &Builder, target: IdedExpr, name: &str, args: Vec<IdedExpr>, wraps: bool) -> IdedExpr {
    let body = b.bind(name, b.bool(false), last(args));
    b.call(if wraps { "@optMap" } else { "@optFlatMap" }, vec![target, body])
}

fn quantified(
    b: &Builder,
    target: IdedExpr,
    names: [String; 2],
    args: Vec<IdedExpr>,
    quantifier: &str,
) -> IdedExpr {
    let entries = b.call("@entries", vec![target]);
    let holds = b.for_entry(&names, last(args));
    let accumulated = || b.name(RESULT);
    let undecided = |node| b.call("@not_strictly_false", vec![node]);
    match quantifier {
        "all" => {
            let step = b.call("_&&_", vec![accumulated(), holds]);
            b.each(entries, ENTRY, b.bool(true), undecided(accumulated()), step, accumulated())
        }
        "exists" => {
            let step = b.call("_||_", vec![accumulated(), holds]);
            let cond = undecided(b.call("!_", vec![accumulated()]));
            b.each(entries, ENTRY, b.bool(false), cond, step, accumulated())
        }
        _ => {
            let more = b.call("_+_", vec![accumulated(), b.int(1)]);
            let step = b.call("_?_:_", vec![holds, more, accumulated()]);
            let one = b.call("_==_", vec![accumulated(), b.int(1)]);
            b.each(entries, ENTRY, b.int(0), b.bool(true), step, one)
        }
    }
}

fn transformed(
    b: &Builder,
    target: IdedExpr,
    names: [String; 2],
    mut args: Vec<IdedExpr>,
    transformation: &str,
) -> IdedExpr {
    let entries = b.call("@entries", vec![target]);
    let made = b.for_entry(&names, args.pop().unwrap_or_default());
    let filter = (args.len() == 3).then(|| b.for_entry(&names, args.pop().unwrap_or_default()));
    let accumulated = || b.name(RESULT);
    let (init, step) = match transformation {
        "transformList" => (b.list(Vec::new()), b.call("_+_", vec![accumulated(), b.list(vec![made])])),
        "transformMap" => {
            let key = b.call("_[_]", vec![b.name(ENTRY), b.int(0)]);
            (b.node(Expr::Map(MapExpr::default())), b.call("@insert", vec![accumulated(), key, made]))
        }
        _ => (b.node(Expr::Map(MapExpr::default())), b.call("@insertAll", vec![accumulated(), made])),
    };
    let step = match filter {
        Some(filter) => b.call("_?_:_", vec![filter, step, accumulated()]),
        None => step,
    };
    b.each(entries, ENTRY, init, b.bool(true), step, accumulated())
}
