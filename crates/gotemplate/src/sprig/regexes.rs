//! Regular expressions. Compiled ones are kept, since templates use them in loops, and for all threads, since
//! some live no longer than a rendering.

use super::{add, int, text};
use crate::{CallError, CallResult, Context, Functions, List, ListType, Type, Value};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock};
use tiphys_gocompat::regex::{Regex, RegexError, quote_meta};

const SS: &[Type] = &[Type::String, Type::String];
const SSI: &[Type] = &[Type::String, Type::String, Type::Int];
const SSS: &[Type] = &[Type::String, Type::String, Type::String];
/// How many expressions are kept.
const KEPT: usize = 256;

type Compiled = Result<Arc<Regex>, RegexError>;

static KNOWN: LazyLock<Mutex<FxHashMap<String, Compiled>>> = LazyLock::new(Mutex::default);

fn cached(pattern: &str) -> Compiled {
    let lock = || KNOWN.lock();
    if let Some(known) = lock().get(pattern) {
        return known.clone();
    }
    let compiled = Regex::compile(pattern).map(Arc::new);
    let mut known = lock();
    if known.len() >= KEPT {
        known.clear();
    }
    known.insert(pattern.to_owned(), compiled.clone());
    compiled
}

/// The expression of the first argument. Functions without `must` panic in Go, which words the error
/// differently.
fn compiled(args: &[Value], must: bool) -> Result<Arc<Regex>, CallError> {
    let pattern = text(args, 0);
    cached(pattern).map_err(|error| {
        if must {
            return CallError::new(error.to_string());
        }
        let shown = if tiphys_gocompat::strconv::can_backquote(pattern) {
            format!("`{pattern}`")
        } else {
            tiphys_gocompat::strconv::quote(pattern)
        };
        CallError::new(format!("regexp: Compile({shown}): {error}"))
    })
}

pub(super) fn register(f: &mut Functions) {
    add(f, &["regexMatch"], SS, |_, args| {
        Ok(compiled(args, true).is_ok_and(|regex| regex.is_match(text(args, 1))).into())
    });
    add(f, &["mustRegexMatch"], SS, |_, args| Ok(compiled(args, true)?.is_match(text(args, 1)).into()));
    add(f, &["regexQuoteMeta"], &[Type::String], |_, args| Ok(quote_meta(text(args, 0)).into()));
    register_pair(f, ["regexFind", "mustRegexFind"], SS, |_, regex, args| {
        Ok(regex.find(text(args, 1)).unwrap_or_default().into())
    });
    register_pair(f, ["regexFindAll", "mustRegexFindAll"], SSI, |ctx, regex, args| {
        strings(ctx, text(args, 1), int(args, 2), |limit| regex.find_all(text(args, 1), limit))
    });
    register_pair(f, ["regexReplaceAll", "mustRegexReplaceAll"], SSS, |ctx, regex, args| {
        ctx.check_size(regex.replaced_length(text(args, 1), text(args, 2)))?;
        Ok(regex.replace_all(text(args, 1), text(args, 2)).as_ref().into())
    });
    register_pair(f, ["regexReplaceAllLiteral", "mustRegexReplaceAllLiteral"], SSS, |ctx, regex, args| {
        ctx.check_size(regex.replaced_length(text(args, 1), text(args, 2)))?;
        Ok(regex.replace_all_literal(text(args, 1), text(args, 2)).as_ref().into())
    });
    register_pair(f, ["regexSplit", "mustRegexSplit"], SSI, |ctx, regex, args| {
        strings(ctx, text(args, 1), int(args, 2), |limit| regex.split(text(args, 1), limit))
    });
}

/// A function and its `must` form.
fn register_pair(
    f: &mut Functions,
    names: [&'static str; 2],
    params: &'static [Type],
    body: impl Fn(&Context<'_>, &Regex, &[Value]) -> Result<Value, CallError> + Send + Sync + Copy + 'static,
) {
    for (must, name) in names.iter().enumerate() {
        add(f, &[name], params, move |ctx, args| body(ctx, compiled(args, must == 1)?.as_ref(), args));
    }
}

/// A `[]string` of at most so many parts of a text (all of them, if that is negative), nil if there is
/// nothing in it.
fn strings<'t>(
    ctx: &Context<'_>,
    whole: &'t str,
    limit: i64,
    find: impl FnOnce(i64) -> Vec<&'t str>,
) -> CallResult {
    // One more than there may be tells that there are too many, before all are found.
    let most = i64::try_from(ctx.most_items()).unwrap_or(i64::MAX).saturating_add(1);
    let found = find(if limit < 0 { most } else { limit.min(most) });
    ctx.claim_items(found.len(), if found.is_empty() { 0 } else { whole.len() })?;
    Ok(if found.is_empty() { List::nil(ListType::String).into() } else { Value::strings(found) })
}
