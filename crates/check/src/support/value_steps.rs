//! The way to a value in steps that borrow its keys. Many values are walked through and few are told of: only
//! for those a path is made.

use tiphys_value::{FieldPath, Map, Value};

/// A step to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// A key of a map.
    Key(&'a str),
    /// An element of a list.
    Index(usize),
}

/// The path of what stands these steps below a field.
pub(crate) fn path_below(field: FieldPath, steps: &[Step<'_>]) -> FieldPath {
    steps.iter().fold(field, |path, step| match step {
        Step::Key(key) => path.key(*key),
        Step::Index(at) => path.index(*at),
    })
}

/// Hands on each text of a value with the steps to it, but for what stands under a key that is not read.
pub(crate) fn each_text<'a>(
    value: &'a Value,
    steps: &mut Vec<Step<'a>>,
    reads: &dyn Fn(&str) -> bool,
    each: &mut dyn FnMut(&[Step<'a>], &'a str),
) {
    each_scalar(value, steps, reads, &mut |steps, value| {
        if let Value::String(text) = value {
            each(steps, text);
        }
    });
}

/// Hands on each value that holds no others, as [`each_text`] does texts.
pub(crate) fn each_scalar<'a>(
    value: &'a Value,
    steps: &mut Vec<Step<'a>>,
    reads: &dyn Fn(&str) -> bool,
    each: &mut dyn FnMut(&[Step<'a>], &'a Value),
) {
    const MAX_DEPTH: usize = 48;
    if steps.len() > MAX_DEPTH {
        return;
    }
    let mut below = |step, value| {
        steps.push(step);
        each_scalar(value, steps, reads, each);
        steps.pop();
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| below(Step::Index(at), item)),
        Value::Object(map) => {
            map.iter().filter(|(key, _)| reads(key)).for_each(|(key, value)| below(Step::Key(key), value));
        }
        scalar => each(steps, scalar),
    }
}

/// What is called for a map, with the steps to it; it says whether what is in the map is looked at, too.
pub(crate) type EachMap<'f, 'a> = dyn FnMut(&[Step<'a>], &'a Map<String, Value>) -> bool + 'f;

/// Hands on each map of a value with the steps to it, the outer ones first.
pub(crate) fn each_map<'a>(value: &'a Value, steps: &mut Vec<Step<'a>>, each: &mut EachMap<'_, 'a>) {
    const MAX_DEPTH: usize = 32;
    if steps.len() > MAX_DEPTH {
        return;
    }
    let is_hidden = value.as_object().is_some_and(|map| !each(steps, map));
    if is_hidden {
        return;
    }
    let mut below = |step, value| {
        steps.push(step);
        each_map(value, steps, each);
        steps.pop();
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| below(Step::Index(at), item)),
        Value::Object(map) => map.iter().for_each(|(key, value)| below(Step::Key(key), value)),
        _ => {}
    }
}
