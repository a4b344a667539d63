//! Strings.

use super::{add, add_variadic, fail, int, text, to_text};
use crate::{CallError, Context, Entry, Functions, List, ListType, Map, MapType, Type, Value, format};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::borrow::Cow;
use tiphys_gocompat::{rawstr, strconv, text as words, unicode};

const S: &[Type] = &[Type::String];
const SS: &[Type] = &[Type::String, Type::String];
const SSS: &[Type] = &[Type::String, Type::String, Type::String];
const IS: &[Type] = &[Type::Int, Type::String];
const ANY: &[Type] = &[Type::Any];

pub(super) fn register(functions: &mut Functions) {
    whole(functions);
    trims(functions);
    tests(functions);
    sizes(functions);
    quotes(functions);
    splits(functions);
    random(functions);
}

fn whole(f: &mut Functions) {
    add(f, &["hello"], &[], |_, _| Ok("Hello!".into()));
    add(f, &["upper"], S, |_, args| Ok(unicode::upper(text(args, 0)).into()));
    add(f, &["lower"], S, |_, args| Ok(unicode::lower(text(args, 0)).into()));
    add(f, &["title"], S, |_, args| Ok(words::title(text(args, 0)).into()));
    add(f, &["untitle"], S, |_, args| Ok(words::uncapitalize(text(args, 0)).into()));
    add(f, &["swapcase"], S, |_, args| Ok(words::swap_case(text(args, 0)).into()));
    add(f, &["snakecase"], S, |_, args| Ok(words::separated_case(text(args, 0), '_').into()));
    add(f, &["kebabcase"], S, |_, args| Ok(words::separated_case(text(args, 0), '-').into()));
    add(f, &["camelcase"], S, |_, args| Ok(words::pascal_case(text(args, 0)).into()));
    add(f, &["initials"], S, |_, args| Ok(words::initials(text(args, 0)).into()));
    add(f, &["nospace"], S, |_, args| Ok(words::without_space(text(args, 0)).into()));
    add(f, &["replace"], SSS, |ctx, args| {
        let (old, new, from) = (text(args, 0), text(args, 1), text(args, 2));
        if new.len() > old.len() {
            ctx.check_size(from.len().saturating_mul(new.len() + 1))?;
        }
        Ok(rawstr::renormalise(from.replace(old, new)).into())
    });
    add(f, &["toString"], ANY, |_, args| Ok(to_text(&args[0]).into()));
    add_variadic(f, &["cat"], ANY, |_, args| {
        let shown: Vec<String> = args
            .iter()
            .filter(|arg| !arg.is_nil())
            .map(|arg| format::sprint(std::slice::from_ref(arg)))
            .collect();
        Ok(shown.join(" ").into())
    });
    add(f, &["plural"], &[Type::String, Type::String, Type::Int], |_, args| {
        Ok(args[usize::from(int(args, 2) != 1)].clone())
    });
}

fn trims(f: &mut Functions) {
    add(f, &["trim"], S, |_, args| Ok(text(args, 0).trim_matches(unicode::is_space).into()));
    add(f, &["trimall", "trimAll"], SS, |_, args| {
        let set: FxHashSet<char> = text(args, 0).chars().collect();
        Ok(text(args, 1).trim_matches(|c| set.contains(&c)).into())
    });
    add(f, &["trimSuffix"], SS, |_, args| {
        let whole = text(args, 1);
        Ok(whole.strip_suffix(text(args, 0)).unwrap_or(whole).into())
    });
    add(f, &["trimPrefix"], SS, |_, args| {
        let whole = text(args, 1);
        Ok(whole.strip_prefix(text(args, 0)).unwrap_or(whole).into())
    });
}

fn tests(f: &mut Functions) {
    add(f, &["contains"], SS, |_, args| Ok(text(args, 1).contains(text(args, 0)).into()));
    add(f, &["hasPrefix"], SS, |_, args| Ok(text(args, 1).starts_with(text(args, 0)).into()));
    add(f, &["hasSuffix"], SS, |_, args| Ok(text(args, 1).ends_with(text(args, 0)).into()));
}

fn sizes(f: &mut Functions) {
    add(f, &["trunc"], IS, |_, args| Ok(truncate(int(args, 0), text(args, 1)).as_ref().into()));
    add(f, &["substr"], &[Type::Int, Type::Int, Type::String], |_, args| {
        Ok(substring(int(args, 0), int(args, 1), text(args, 2))?.as_ref().into())
    });
    add(f, &["abbrev"], IS, |_, args| {
        let (width, whole) = (int(args, 0), text(args, 1));
        Ok(if width < 4 { whole.into() } else { words::abbreviate(whole, 0, width).into() })
    });
    add(f, &["abbrevboth"], &[Type::Int, Type::Int, Type::String], |_, args| {
        let (left, right, whole) = (int(args, 0), int(args, 1), text(args, 2));
        Ok(if right < 4 || left > 0 && right < 7 {
            whole.into()
        } else {
            words::abbreviate(whole, left, right).into()
        })
    });
    add(f, &["wrap"], IS, |_, args| Ok(words::wrap(text(args, 1), int(args, 0), "", false).into()));
    add(f, &["wrapWith"], &[Type::Int, Type::String, Type::String], |ctx, args| {
        // Of two lines one after the other, the first words of the second did not fit in the first.
        let width = usize::try_from(int(args, 0)).unwrap_or_default().max(1);
        let lines = text(args, 2).len() * 2 / width + 1;
        ctx.check_size(lines.saturating_mul(text(args, 1).len()).saturating_add(text(args, 2).len()))?;
        Ok(words::wrap(text(args, 2), int(args, 0), text(args, 1), true).into())
    });
    add(f, &["repeat"], IS, |ctx, args| Ok(repeat(ctx, text(args, 1), int(args, 0))?.into()));
    add(f, &["indent"], IS, |ctx, args| Ok(indent(ctx, text(args, 1), int(args, 0), false)?.into()));
    add(f, &["nindent"], IS, |ctx, args| Ok(indent(ctx, text(args, 1), int(args, 0), true)?.into()));
}

fn truncate(count: i64, whole: &str) -> Cow<'_, str> {
    let length = rawstr::len(whole) as i64;
    if count < 0 && length + count > 0 {
        return rawstr::slice(whole, (length + count) as usize, length as usize);
    }
    if count >= 0 && length > count {
        return rawstr::slice(whole, 0, count as usize);
    }
    Cow::Borrowed(whole)
}

fn substring(start: i64, end: i64, whole: &str) -> Result<Cow<'_, str>, CallError> {
    let length = rawstr::len(whole) as i64;
    let (from, to) = if start < 0 {
        (0, end)
    } else if end < 0 || end > length {
        (start, length)
    } else {
        (start, end)
    };
    if start < 0 && to > length {
        return fail(format!("runtime error: slice bounds out of range [:{to}] with length {length}"));
    }
    if to < 0 {
        return fail(format!("runtime error: slice bounds out of range [:{to}]"));
    }
    if from > to {
        return fail(format!("runtime error: slice bounds out of range [{from}:{to}]"));
    }
    Ok(rawstr::slice(whole, from as usize, to as usize))
}

fn repeat(ctx: &Context<'_>, whole: &str, count: i64) -> Result<String, CallError> {
    let Ok(count) = usize::try_from(count) else {
        return fail("strings: negative Repeat count");
    };
    ctx.check_size(whole.len().saturating_mul(count))?;
    Ok(rawstr::renormalise(whole.repeat(count)))
}

fn indent(ctx: &mut Context<'_>, whole: &str, count: i64, newline: bool) -> Result<SmolStr, CallError> {
    let Ok(count) = usize::try_from(count) else {
        return fail("strings: negative Repeat count");
    };
    let lines = memchr::memchr_iter(b'\n', whole.as_bytes()).count() + 1;
    ctx.check_size(count.saturating_mul(lines).saturating_add(whole.len() + 1))?;
    Ok(ctx.build(|out| {
        if newline {
            out.push('\n');
        }
        let mut rest = whole;
        loop {
            push_spaces(out, count);
            let Some(end) = memchr::memchr(b'\n', rest.as_bytes()) else {
                out.push_str(rest);
                return;
            };
            out.push_str(&rest[..=end]);
            rest = &rest[end + 1..];
        }
    }))
}

fn push_spaces(out: &mut String, mut count: usize) {
    const SPACES: &str = "                                ";
    while count > SPACES.len() {
        out.push_str(SPACES);
        count -= SPACES.len();
    }
    out.push_str(&SPACES[..count]);
}

fn quotes(f: &mut Functions) {
    add_variadic(f, &["quote"], ANY, |_, args| Ok(quote_all(args, strconv::quote).into()));
    add_variadic(f, &["squote"], ANY, |_, args| {
        let shown = args.iter().filter(|arg| !arg.is_nil());
        let shown: Vec<String> =
            shown.map(|arg| format!("'{}'", format::sprint(std::slice::from_ref(arg)))).collect();
        Ok(shown.join(" ").into())
    });
}

fn quote_all(args: &[Value], quote: impl Fn(&str) -> String) -> String {
    if let [only] = args
        && !only.is_nil()
    {
        return quote(&to_text(only));
    }
    let quoted: Vec<String> =
        args.iter().filter(|arg| !arg.is_nil()).map(|arg| quote(&to_text(arg))).collect();
    quoted.join(" ")
}

/// Parts of a text; an empty separator splits into characters. At most `limit` parts if that is positive.
pub(super) fn split<'t>(whole: &'t str, separator: &str, limit: i64) -> Vec<&'t str> {
    if limit == 0 {
        return Vec::new();
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if !separator.is_empty() {
        return whole.splitn(limit, separator).collect();
    }
    let mut parts = Vec::new();
    let mut rest = whole;
    while let Some(c) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            break;
        }
        let (part, tail) = rest.split_at(c.len_utf8());
        parts.push(part);
        rest = tail;
    }
    parts
}

/// What a part of a text takes in the map that [`numbered`] makes, about.
const NUMBERED: u64 = 160;

/// How many parts a text has, at most.
fn count(whole: &str, separator: &str) -> usize {
    match separator {
        "" => whole.len(),
        separator => memchr::memmem::find_iter(whole.as_bytes(), separator.as_bytes()).count() + 1,
    }
}

fn numbered(parts: &[&str]) -> Value {
    let entry = |(at, part): (usize, &&str)| Entry {
        key: format!("_{at}").into(),
        value: Value::from(*part),
        origin: 0,
    };
    Map::from_entries(MapType::String, parts.iter().enumerate().map(entry).collect()).into()
}

/// Sprig's `strslice`: the texts of a list's items without nils, or of a single value.
pub(super) fn texts(value: &Value) -> Vec<smol_str::SmolStr> {
    match value {
        Value::List(list) => list.items().iter().filter(|item| !item.is_nil()).map(to_text).collect(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| byte.to_string().into()).collect(),
        Value::NoValue | Value::Nil => Vec::new(),
        Value::Object(object) => match object.content() {
            Some(content @ Value::List(_)) => texts(&content),
            _ => vec![to_text(value)],
        },
        other => vec![to_text(other)],
    }
}

fn splits(f: &mut Functions) {
    add(f, &["split"], SS, |ctx, args| {
        let (whole, separator) = (text(args, 1), text(args, 0));
        ctx.claim(count(whole, separator) as u64 * NUMBERED)?;
        Ok(numbered(&split(whole, separator, -1)))
    });
    add(f, &["splitn"], &[Type::String, Type::Int, Type::String], |ctx, args| {
        let (whole, separator, limit) = (text(args, 2), text(args, 0), int(args, 1));
        let parts = usize::try_from(limit).map_or(usize::MAX, |limit| limit).min(count(whole, separator));
        ctx.claim(parts as u64 * NUMBERED)?;
        Ok(numbered(&split(whole, separator, limit)))
    });
    add(f, &["splitList"], SS, |ctx, args| {
        let (whole, separator) = (text(args, 1), text(args, 0));
        ctx.claim_items(count(whole, separator), whole.len())?;
        Ok(Value::strings(split(whole, separator, -1)))
    });
    add(f, &["toStrings"], ANY, |_, args| match &args[0] {
        Value::List(list) if list.list_type() == ListType::String => Ok(args[0].clone()),
        other => Ok(Value::strings(texts(other))),
    });
    add(f, &["join"], &[Type::String, Type::Any], |ctx, args| {
        if let Value::Bytes(bytes) = &args[1] {
            ctx.claim_items(bytes.len(), 0)?;
        }
        let (texts, separator) = (texts(&args[1]), text(args, 0));
        ctx.check_size(texts.iter().map(|text| text.len() + separator.len()).sum())?;
        Ok(rawstr::renormalise(texts.join(separator)).into())
    });
    add(f, &["sortAlpha"], ANY, |_, args| match &args[0] {
        Value::List(list) if list.list_type() == ListType::String => {
            list.sort_strings();
            Ok(args[0].clone())
        }
        other => {
            let mut sorted = texts(other);
            if !matches!(other, Value::List(_) | Value::Bytes(_) | Value::Object(_)) {
                sorted = vec![to_text(other)];
            }
            sorted.sort();
            Ok(Value::List(List::with_type(
                ListType::String,
                sorted.into_iter().map(Value::String).collect(),
            )))
        }
    });
}

/// Characters that are shuffled in a millisecond, about.
const SHUFFLED: u64 = 1000;

fn random(f: &mut Functions) {
    const I: &[Type] = &[Type::Int];
    add(f, &["randAlphaNum"], I, |ctx, args| random_text(ctx, int(args, 0), |c| c.is_ascii_alphanumeric()));
    add(f, &["randAlpha"], I, |ctx, args| random_text(ctx, int(args, 0), |c| c.is_ascii_alphabetic()));
    add(f, &["randNumeric"], I, |ctx, args| random_text(ctx, int(args, 0), |c| c.is_ascii_digit()));
    add(f, &["randAscii"], I, |ctx, args| random_text(ctx, int(args, 0), |c| (b' '..=b'~').contains(c)));
    add(f, &["randInt"], &[Type::Int, Type::Int], |ctx, args| {
        let (low, high) = (int(args, 0), int(args, 1));
        match high.wrapping_sub(low) {
            range if range <= 0 => fail("invalid argument to Intn"),
            range => Ok(Value::Int((random_number(ctx) % range as u64) as i64 + low)),
        }
    });
    add(f, &["shuffle"], S, |ctx, args| {
        ctx.work(text(args, 0).len() as u64 / SHUFFLED)?;
        let mut chars: Vec<char> = text(args, 0).chars().collect();
        for at in (1..chars.len()).rev() {
            chars.swap(at, (random_number(ctx) % (at as u64 + 1)) as usize);
        }
        Ok(chars.into_iter().collect::<String>().into())
    });
}

fn random_number(ctx: &Context<'_>) -> u64 {
    let mut bytes = [0; 8];
    ctx.random(&mut bytes);
    u64::from_be_bytes(bytes)
}

/// Characters of a class, each equally likely. A negative count gives nothing, as in Sprig.
fn random_text(ctx: &Context<'_>, count: i64, class: impl Fn(&u8) -> bool) -> Result<Value, CallError> {
    let count = usize::try_from(count).unwrap_or(0);
    ctx.check_size(count)?;
    let alphabet: Vec<u8> = (0..128).filter(|byte| class(byte)).collect();
    // The largest multiple of the alphabet's size: bytes from there on would favour its beginning.
    let limit = 256 - 256 % alphabet.len();
    let mut out = String::with_capacity(count);
    let mut buffer = vec![0; count + count / 2 + 16];
    while out.len() < count {
        ctx.random(&mut buffer);
        let usable = buffer.iter().map(|byte| usize::from(*byte)).filter(|byte| *byte < limit);
        out.extend(usable.take(count - out.len()).map(|byte| char::from(alphabet[byte % alphabet.len()])));
    }
    Ok(out.into())
}
