//! Splitting paths, and following them (kyaml's `PathSplitter`, `SmarterPathSplitter`, `PathGetter`).

use super::{Kind, Node, kind_error};
use crate::meter::check_steps;

/// Splits at a delimiter; one that follows a backslash belongs to the step. A leading one is dropped.
pub(crate) fn split_path(path: &str, delimiter: char) -> Vec<String> {
    let mut steps: Vec<&str> = path.split(delimiter).collect();
    if steps.len() > 1 && steps[0].is_empty() {
        steps.remove(0);
    }
    let mut result: Vec<String> = Vec::with_capacity(steps.len());
    for step in steps {
        match result.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(step);
            }
            _ => result.push(step.to_owned()),
        }
    }
    result
}

/// Splits as [`split_path`], but keeps what stands in brackets together: `[name=a.b]` is one step,
/// and `[a.b/c]` the step `a.b/c`.
pub(crate) fn smarter_split(path: &str, delimiter: char) -> Vec<String> {
    let mut steps = split_path(path, delimiter).into_iter();
    let mut result = Vec::new();
    while let Some(step) = steps.next() {
        if !step.starts_with('[') || step.ends_with(']') {
            result.push(step);
            continue;
        }
        let mut bracketed = step;
        for next in steps.by_ref() {
            bracketed.push(delimiter);
            bracketed.push_str(&next);
            if next.ends_with(']') {
                break;
            }
        }
        let is_match = bracketed.contains('=');
        result.push(if is_match { bracketed } else { bracketed.trim_matches(['[', ']']).to_owned() });
    }
    result
}

/// `name` and `value` of a step `[name=value]`; `None` if the step is no list index.
///
/// # Errors
/// Brackets without `=`.
pub(crate) fn list_index(step: &str) -> Option<Result<(&str, &str), String>> {
    let inner = step.strip_prefix('[')?.strip_suffix(']')?;
    Some(
        inner.split_once('=').ok_or_else(|| {
            "list path element must contain fieldName=fieldValue for element to match".to_owned()
        }),
    )
}

/// What kind of node to make for a field, given the step that follows it.
pub(crate) fn kind_for(next: Option<&str>, last: Kind) -> Kind {
    match next {
        None | Some("") => last,
        Some(next) if list_index(next).is_some() || next.parse::<u32>().is_ok() => Kind::Seq,
        Some(_) => Kind::Map,
    }
}

fn cleaned<S: AsRef<str>>(path: &[S]) -> impl Iterator<Item = &str> {
    path.iter().map(|step| step.as_ref().trim()).filter(|step| !step.is_empty())
}

/// Where a step leads in a node: the position of the item or field.
fn locate(node: &Node, step: &str) -> Result<Option<usize>, String> {
    if let Ok(index) = step.parse::<i64>() {
        let index = usize::try_from(index).map_err(|_| format!("array index {index} cannot be negative"))?;
        node.expect(Kind::Seq)?;
        return Ok((index < node.items().len()).then_some(index));
    }
    if step == "-" {
        node.expect(Kind::Seq)?;
        return Ok(node.items().len().checked_sub(1));
    }
    if step == "*" {
        return Err("wildcard is not supported in PathGetter".to_owned());
    }
    if let Some(parts) = list_index(step) {
        let (name, value) = parts?;
        node.expect(Kind::Seq)?;
        return Ok(node.items().iter().position(|item| match name {
            "" => item.value() == value,
            name => item.get(name).is_some_and(|field| field.value() == value),
        }));
    }
    if node.is_null() {
        return Ok(None);
    }
    node.expect(Kind::Map)?;
    Ok(node.position(step))
}

fn child(node: &Node, at: usize) -> Option<&Node> {
    node.items().get(at).or_else(|| node.pairs().get(at).map(|(_, value)| value))
}

fn child_mut(node: &mut Node, at: usize) -> Option<&mut Node> {
    match &mut node.content {
        super::Content::Map(pairs) => pairs.get_mut(at).map(|(_, value)| value),
        super::Content::Seq(items) => items.get_mut(at),
        super::Content::Scalar(_) => None,
    }
}

/// Follows a path; `None` if it ends early.
///
/// # Errors
/// A step that does not fit the kind of its node.
pub(crate) fn lookup<'a, S: AsRef<str>>(node: &'a Node, path: &[S]) -> Result<Option<&'a Node>, String> {
    let mut node = node;
    for step in cleaned(path) {
        let Some(next) = locate(node, step)?.and_then(|at| child(node, at)) else { return Ok(None) };
        node = next;
    }
    Ok(Some(node))
}

/// The positions by which a path leads to a node, which stay where others are added.
pub(crate) fn positions<S: AsRef<str>>(node: &Node, path: &[S]) -> Option<Vec<usize>> {
    let mut node = node;
    let mut positions = Vec::new();
    for step in cleaned(path) {
        let at = locate(node, step).ok()??;
        positions.push(at);
        node = child(node, at)?;
    }
    Some(positions)
}

/// The node that [`positions`] lead to.
pub(crate) fn at_positions<'a>(node: &'a Node, positions: &[usize]) -> Option<&'a Node> {
    positions.iter().try_fold(node, |node, at| child(node, *at))
}

/// As [`lookup`], to change.
///
/// # Errors
/// As [`lookup`].
pub(crate) fn lookup_mut<'a, S: AsRef<str>>(
    node: &'a mut Node,
    path: &[S],
) -> Result<Option<&'a mut Node>, String> {
    let mut node = node;
    for step in cleaned(path) {
        let Some(at) = locate(node, step)? else { return Ok(None) };
        let Some(next) = child_mut(node, at) else { return Ok(None) };
        node = next;
    }
    Ok(Some(node))
}

/// Follows a path, making what is missing; the last node is made of `kind`. Nothing is made below
/// a null (`None` then).
///
/// # Errors
/// As [`lookup`].
pub(crate) fn lookup_create<'a, S: AsRef<str>>(
    node: &'a mut Node,
    path: &[S],
    kind: Kind,
) -> Result<Option<&'a mut Node>, String> {
    let steps: Vec<&str> = cleaned(path).collect();
    check_steps(steps.len())?;
    let mut node = node;
    for (index, step) in steps.iter().enumerate() {
        let at = match locate(node, step)? {
            Some(at) => at,
            None if node.is_null() => return Ok(None),
            None => match create(node, step, kind_for(steps.get(index + 1).copied(), kind))? {
                Some(at) => at,
                None => return Ok(None),
            },
        };
        let Some(next) = child_mut(node, at) else { return Ok(None) };
        node = next;
    }
    Ok(Some(node))
}

/// Makes the node that a step leads to; `None` where kyaml makes nothing (plain indices).
fn create(node: &mut Node, step: &str, kind: Kind) -> Result<Option<usize>, String> {
    if let Some(parts) = list_index(step) {
        let (name, value) = parts?;
        let item = match name {
            "" => Node::scalar(value),
            name => Node::map(vec![(Node::scalar(name), Node::scalar(value))]),
        };
        let items = match node.items_mut() {
            Some(items) => items,
            None => return Err(kind_error(Kind::Seq, node)),
        };
        items.push(item);
        return Ok(Some(items.len() - 1));
    }
    if step.parse::<i64>().is_ok() || step == "-" {
        return Ok(None);
    }
    node.set(step, Node::empty(kind))?;
    Ok(node.position(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_brackets_keep_delimiters() {
        assert_eq!(split_path(r"metadata/annotations/a.b\/c", '/'), ["metadata", "annotations", "a.b/c"]);
        assert_eq!(split_path("/a/b", '/'), ["a", "b"]);
        assert_eq!(smarter_split("spec.[name=a.b].image", '.'), ["spec", "[name=a.b]", "image"]);
        assert_eq!(
            smarter_split("metadata.annotations.[a.b/c.d]", '.'),
            ["metadata", "annotations", "a.b/c.d"]
        );
        assert_eq!(smarter_split(r"a\.b.c", '.'), ["a.b", "c"]);
    }

    #[test]
    fn makes_what_is_missing() {
        let mut node = Node::map(vec![]);
        lookup_create(&mut node, &["a", "[name=x]", "b"], Kind::Scalar).unwrap().unwrap().assign_value("1");
        let found = lookup(&node, &["a", "[name=x]", "b"]).unwrap().unwrap();
        assert_eq!(found.value(), "1");
        assert!(lookup(&node, &["a", "3"]).unwrap().is_none());
        assert!(lookup(&node, &["a", "b"]).is_err());
    }
}
