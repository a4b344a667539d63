//! Go's own template functions.

mod compare;
mod index;

pub(crate) use index::sub_list;

use crate::functions::Special;
use crate::{Function, Functions, Type, Value, format};
use tiphys_gocompat::escape;

/// Adds the functions to the table.
pub(crate) fn register(functions: &mut Functions) {
    const REFLECT: &[Type] = &[Type::Reflect, Type::Reflect];
    const ONE: &[Type] = &[Type::Reflect];
    const ANY: &[Type] = &[Type::Any];
    let unreachable = |_: &mut crate::Context<'_>, _: &mut [Value]| Ok(Value::NoValue);
    functions.insert(Function::variadic("and", REFLECT, unreachable).special(Special::And));
    functions.insert(Function::variadic("or", REFLECT, unreachable).special(Special::Or));
    functions.insert(Function::variadic("call", REFLECT, |_, args| index::call(args)).special(Special::Call));
    functions.insert(Function::variadic("html", ANY, |_, args| Ok(escape::html(&text(args)).into())));
    functions.insert(Function::variadic("js", ANY, |_, args| Ok(escape::js(&text(args)).into())));
    functions.insert(Function::variadic(
        "urlquery",
        ANY,
        |_, args| Ok(escape::url_query(&text(args)).into()),
    ));
    functions.insert(Function::variadic("index", REFLECT, |ctx, args| index::index(ctx, args)));
    functions.insert(Function::variadic("slice", REFLECT, |_, args| index::slice(args)));
    functions.insert(Function::new("len", ONE, |_, args| index::length(&args[0])));
    functions.insert(Function::new("not", ONE, |_, args| Ok((!args[0].truth()).into())));
    functions.insert(Function::variadic("print", ANY, |_, args| Ok(format::sprint(args).into())));
    functions.insert(Function::variadic("println", ANY, |_, args| Ok(format::sprintln(args).into())));
    functions.insert(Function::variadic("printf", &[Type::String, Type::Any], |ctx, args| {
        let most = ctx.largest_value();
        match format::sprintf_within(args[0].as_str().unwrap_or_default(), &args[1..], most) {
            Ok(text) => Ok(text.into()),
            Err(length) => Err(ctx.too_large(length)),
        }
    }));
    functions.insert(Function::variadic("eq", REFLECT, |_, args| compare::eq(args).map(Value::Bool)));
    functions
        .insert(Function::new("ne", REFLECT, |_, args| compare::eq(args).map(|equal| Value::Bool(!equal))));
    functions.insert(Function::new("lt", REFLECT, |_, args| compare::lt(args).map(Value::Bool)));
    functions.insert(Function::new("le", REFLECT, |_, args| compare::le(args).map(Value::Bool)));
    functions.insert(Function::new("gt", REFLECT, |_, args| compare::le(args).map(|le| Value::Bool(!le))));
    functions.insert(Function::new("ge", REFLECT, |_, args| compare::lt(args).map(|lt| Value::Bool(!lt))));
    functions.walking(&["html", "js", "print", "printf", "println", "urlquery"]);
}

/// The arguments as the escapers read them: nil prints as no value.
fn text(args: &[Value]) -> String {
    match args {
        [Value::String(text)] => text.to_string(),
        _ => {
            let shown = |arg: &Value| if arg.is_nil() { Value::string("<no value>") } else { arg.clone() };
            format::sprint(&args.iter().map(shown).collect::<Vec<_>>())
        }
    }
}
