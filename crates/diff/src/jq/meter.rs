//! Limits of a run: whoever may write an Application may write a path expression, and none of them may take
//! the engine's time, memory or stack. Every term that can yield without end is followed by a filter that
//! counts, every function begins with one, and what is made is weighed before it is used.

use std::{cell::Cell, collections::HashSet, sync::LazyLock};

use jaq_core::{
    DataT, Exn, Lut, Native, ValXs,
    box_iter::box_once,
    data::HasLut,
    load::{
        lex::StrPart,
        parse::{BinaryOp, Def, Pattern, Term},
    },
    native::{Filter, run, v},
    ops::Math,
    path::{Part, Path},
};
use jaq_json::{Num, Val};

/// What one run may spend, which takes it some tenths of a second; Argo CD ends a run after a second.
const BUDGET: u64 = 5_000_000;
/// What a step costs. A value that is made or given to a function of the library costs what it weighs: 1 for
/// each value in it.
const STEP_COST: u64 = 5;
/// Text that weighs as much as a value, in bytes.
const LIGHT_TEXT: usize = 64;
/// Most text in one value, in bytes; an object of the API has no more than 1.5 MiB.
const MAX_TEXT: usize = 2 << 20;
/// Most values in one value.
const MAX_NODES: u64 = 1_000_000;
/// Deepest value.
const MAX_DEPTH: usize = 1000;
/// Longest number, in bits or digits.
const MAX_NUMBER: usize = 4096;
/// Stack that is left for what a function of the library does.
const RESERVE: usize = 4 << 20;

/// Names that no program can write: its own definitions cannot take their place.
const STEP: &str = " step";
const STEPPED: &str = " stepped";
const WEIGH: &str = " weigh";
const WEIGHED: &str = " weighed";
const SHALLOW: &str = " shallow";
const SHALLOWED: &str = " shallowed";
const FITS: &str = " fits";
const TIMES: &str = " times";
const BY: &str = "$ by";

/// What a run has left.
pub(super) struct Meter(Cell<u64>);

impl Default for Meter {
    fn default() -> Self {
        Self(Cell::new(BUDGET))
    }
}

impl Meter {
    /// Whether there is enough left, also of the stack.
    fn spend(&self, cost: u64) -> bool {
        let left = self.0.get().checked_sub(cost);
        self.0.set(left.unwrap_or(0));
        left.is_some() && stacker::remaining_stack().is_none_or(|left| left > RESERVE)
    }
}

/// Programs on JSON values whose runs are metered.
pub(super) struct Metered;

/// What a run knows.
#[derive(Clone)]
pub(super) struct Run<'a> {
    pub lut: &'a Lut<Metered>,
    pub meter: &'a Meter,
}

impl DataT for Metered {
    type V<'a> = Val;
    type Data<'a> = Run<'a>;
}

impl<'a> HasLut<'a, Metered> for Run<'a> {
    fn lut(&self) -> &'a Lut<Metered> {
        self.lut
    }
}

/// The functions that count.
pub(super) fn funs() -> impl Iterator<Item = Filter<Native<Metered>>> {
    [
        run::<Metered>((STEP, v(0), |cv| verdict(cv.0.data().meter.spend(STEP_COST)))),
        run::<Metered>((WEIGH, v(0), |cv| {
            let weight = weight(&cv.1);
            verdict(weight.is_some_and(|weight| cv.0.data().meter.spend(weight)))
        })),
        run::<Metered>((SHALLOW, v(0), |cv| verdict(is_shallow(&cv.1)))),
        run::<Metered>((FITS, v(2), |mut cv| {
            let (by, value) = (cv.0.pop_var(), cv.0.pop_var());
            verdict(may_repeat(&value, &by) && may_repeat(&by, &value))
        })),
    ]
    .into_iter()
}

/// True, or the end of the run: programs can catch errors, and would go on.
fn verdict<'a>(may_go_on: bool) -> ValXs<'a, Val> {
    box_once(if may_go_on { Ok(Val::Bool(true)) } else { Err(Exn::halt(1)) })
}

/// What a value costs; `None` if it is too large.
fn weight(value: &Val) -> Option<u64> {
    let (mut nodes, mut text) = (0, 0);
    weigh(value, MAX_DEPTH, &mut nodes, &mut text)?;
    Some(nodes + (text / LIGHT_TEXT) as u64)
}

fn weigh(value: &Val, depth: usize, nodes: &mut u64, text: &mut usize) -> Option<()> {
    *nodes += 1;
    match value {
        Val::TStr(bytes) | Val::BStr(bytes) => *text += bytes.len(),
        Val::Num(Num::BigInt(number)) if number.bits() > MAX_NUMBER as u64 => return None,
        Val::Num(Num::Dec(digits)) if digits.len() > MAX_NUMBER => return None,
        _ => {}
    }
    if *nodes > MAX_NODES || *text > MAX_TEXT || depth == 0 {
        return None;
    }
    match value {
        Val::Arr(items) => items.iter().try_for_each(|item| weigh(item, depth - 1, nodes, text)),
        Val::Obj(fields) => fields.iter().try_for_each(|(key, value)| {
            weigh(key, depth - 1, nodes, text)?;
            weigh(value, depth - 1, nodes, text)
        }),
        _ => Some(()),
    }
}

/// Whether what a text says in JSON is not too deep for a reader that calls itself.
fn is_shallow(text: &Val) -> bool {
    let (Val::TStr(bytes) | Val::BStr(bytes)) = text else { return true };
    let mut depth = 0_usize;
    bytes.iter().all(|byte| {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth <= MAX_DEPTH
    })
}

/// Whether a text may be repeated so often; true for what is no text and no number.
fn may_repeat(text: &Val, by: &Val) -> bool {
    let (Val::TStr(bytes) | Val::BStr(bytes), Val::Num(by)) = (text, by) else { return true };
    match by {
        Num::Int(by) => {
            usize::try_from(*by)
                .is_ok_and(|by| bytes.len().checked_mul(by).is_some_and(|len| len <= MAX_TEXT))
                || *by <= 0
        }
        _ => false,
    }
}

/// What [`metered`] puts into programs, for the library.
pub(super) fn defs() -> [Def<&'static str>; 4] {
    let guard =
        |name, ask| Def { name, args: Vec::new(), body: Term::IfThenElse(vec![(call(ask), Term::Id)], None) };
    let factors = || ["$ left", "$ right"];
    let [left, right] = factors().map(Term::Var);
    let product = Term::BinOp(Box::new(left), BinaryOp::Math(Math::Mul), Box::new(right));
    let may = Term::Call(FITS, factors().map(Term::Var).into());
    let times =
        Def { name: TIMES, args: factors().into(), body: Term::IfThenElse(vec![(may, product)], None) };
    [guard(STEPPED, STEP), guard(WEIGHED, WEIGH), guard(SHALLOWED, SHALLOW), times]
}

/// A definition whose every call is counted.
pub(super) fn metered_def(def: Def<&str>) -> Def<&str> {
    let body = pipe(call(STEPPED), metered(def.body));
    Def { body, ..def }
}

/// The paths of a term, metered.
pub(super) fn path_of(term: Term<&str>) -> Term<&str> {
    Term::Call("path", vec![stepped(metered(term))])
}

/// A term that is a program of its own, metered.
pub(super) fn whole(term: Term<&str>) -> Term<&str> {
    stepped(metered(term))
}

/// A term that counts what it does. Calls of functions that are defined stay last in what calls them, so that
/// those which repeat themselves do not need more and more stack.
fn metered<'s>(term: Term<&'s str>) -> Term<&'s str> {
    let inner = |term: Box<Term<&'s str>>| Box::new(metered(*term));
    match term {
        Term::Id | Term::Num(_) | Term::Var(_) | Term::Break(_) => term,
        Term::Recurse => stepped(Term::Recurse),
        Term::Str(format, parts) => {
            let parts = parts.into_iter().map(|part| match part {
                StrPart::Term(term) => StrPart::Term(with_metering(metered(term))),
                part => part,
            });
            with_metering(Term::Str(format, parts.collect()))
        }
        Term::Arr(items) => with_metering(Term::Arr(items.map(inner))),
        Term::Obj(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (metered(key), value.map(metered)));
            with_metering(Term::Obj(fields.collect()))
        }
        Term::Neg(term) => Term::Neg(inner(term)),
        Term::BinOp(left, op, right) => operation(*left, op, *right),
        Term::Label(name, term) => Term::Label(name, inner(term)),
        Term::Fold(name, items, pattern, args) => {
            let args = args.into_iter().map(metered).collect();
            Term::Fold(name, Box::new(stepped(metered(*items))), metered_pattern(pattern), args)
        }
        Term::TryCatch(term, otherwise) => Term::TryCatch(inner(term), otherwise.map(inner)),
        Term::IfThenElse(cases, otherwise) => {
            let cases = cases.into_iter().map(|(condition, then)| (metered(condition), metered(then)));
            Term::IfThenElse(cases.collect(), otherwise.map(inner))
        }
        Term::Def(defs, term) => Term::Def(defs.into_iter().map(metered_def).collect(), inner(term)),
        Term::Call(name, args) => call_term(name, args),
        Term::Path(from, Path(parts)) => {
            let parts = parts.into_iter().map(|(part, optional)| {
                let part = match part {
                    Part::Index(at) => Part::Index(metered(at)),
                    Part::Range(from, to) => Part::Range(from.map(metered), to.map(metered)),
                };
                (part, optional)
            });
            stepped(Term::Path(inner(from), Path(parts.collect())))
        }
    }
}

fn operation<'s>(left: Term<&'s str>, op: BinaryOp<&'s str>, right: Term<&'s str>) -> Term<&'s str> {
    if let BinaryOp::UpdateMath(math) = op {
        // As jq's manual defines these.
        let sum = Term::BinOp(Box::new(Term::Id), BinaryOp::Math(math), Box::new(Term::Var(BY)));
        let update = Term::BinOp(Box::new(left), BinaryOp::Update, Box::new(sum));
        return operation(right, BinaryOp::Pipe(Some(Pattern::Var(BY))), update);
    }
    let (left, right) = (metered(left), metered(right));
    let of = |left, op, right| Term::BinOp(Box::new(left), op, Box::new(right));
    match op {
        BinaryOp::Pipe(pattern) => of(left, BinaryOp::Pipe(pattern.map(metered_pattern)), right),
        BinaryOp::Comma | BinaryOp::Alt | BinaryOp::Or | BinaryOp::And => of(left, op, right),
        BinaryOp::Cmp(_) => of(with_metering(left), op, with_metering(right)),
        BinaryOp::Math(Math::Mul) => with_metering(Term::Call(TIMES, vec![left, right])),
        _ => with_metering(of(left, op, right)),
    }
}

fn metered_pattern(pattern: Pattern<&str>) -> Pattern<&str> {
    match pattern {
        Pattern::Var(name) => Pattern::Var(name),
        Pattern::Arr(items) => Pattern::Arr(items.into_iter().map(metered_pattern).collect()),
        Pattern::Obj(fields) => {
            let fields = fields.into_iter().map(|(key, pattern)| (metered(key), metered_pattern(pattern)));
            Pattern::Obj(fields.collect())
        }
    }
}

fn call_term<'s>(name: &'s str, args: Vec<Term<&'s str>>) -> Term<&'s str> {
    static NATIVE: LazyLock<HashSet<(&str, usize)>> = LazyLock::new(|| {
        let funs = jaq_core::funs::<Metered>().chain(jaq_std::funs()).chain(jaq_json::funs());
        funs.map(|(name, binds, _)| (name, binds.len())).collect()
    });
    let is_native = NATIVE.contains(&(name, args.len()));
    let reads_text = name == "fromjson";
    let call = Term::Call(name, args.into_iter().map(|arg| stepped(metered(arg))).collect());
    match (is_native, reads_text) {
        (true, true) => pipe(self::call(SHALLOWED), call),
        (true, false) => pipe(self::call(WEIGHED), with_metering(call)),
        (false, _) => call,
    }
}

fn call(name: &str) -> Term<&str> {
    Term::Call(name, Vec::new())
}

fn pipe<'s>(left: Term<&'s str>, right: Term<&'s str>) -> Term<&'s str> {
    Term::BinOp(Box::new(left), BinaryOp::Pipe(None), Box::new(right))
}

fn stepped(term: Term<&str>) -> Term<&str> {
    pipe(term, call(STEPPED))
}

fn with_metering(term: Term<&str>) -> Term<&str> {
    pipe(term, call(WEIGHED))
}
