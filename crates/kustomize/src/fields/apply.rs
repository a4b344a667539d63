//! Following a field spec through an object (kustomize's `fieldspec` filter).

use crate::{
    kustomization::model::FieldSpec,
    node::{Content, Kind, Node, Tag, list_index, split_path},
    resid::{Gvk, ResId},
};

/// What is made where a path leads to nothing and the spec says to create.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Create {
    pub kind: Kind,
    pub tag: Tag,
}

/// What is done with the node at the end of a path.
pub(crate) type Setter<'a> = dyn FnMut(&mut Node) -> Result<(), String> + 'a;

/// Runs `set` on every node that a field spec leads to in an object of a fitting kind.
///
/// # Errors
/// A path that meets a scalar, or what `set` returned.
pub(crate) fn apply(
    node: &mut Node,
    spec: &FieldSpec,
    create: Option<Create>,
    set: &mut Setter<'_>,
) -> Result<(), String> {
    if !spec.gvk.selects(node.api_version(), node.object_kind()) {
        return Ok(());
    }
    let walk = Walk { create: create.filter(|_| spec.create) };
    with_steps(&spec.path, |steps| walk.follow(node, steps, set)).map_err(|error| {
        let id = ResId {
            gvk: Gvk::new(node.api_version(), node.object_kind()),
            name: node.name().into(),
            namespace: node.namespace().into(),
            cluster_scoped: false,
        };
        format!("considering field '{}' of object {id}: {error}", spec.path)
    })
}

/// Steps that fit on the stack: every object meets every field spec of its kind.
const FEW: usize = 16;

/// Calls `then` with the steps of a path, as [`split_path`] cuts it.
fn with_steps<T>(path: &str, then: impl FnOnce(&[&str]) -> T) -> T {
    let bytes = path.as_bytes();
    let rest = if bytes.first() == Some(&b'/') { &path[1..] } else { path };
    let slashes = rest.bytes().filter(|byte| *byte == b'/').count();
    if bytes.contains(&b'\\') || slashes >= FEW {
        let steps = split_path(path, '/');
        return then(&steps.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let mut steps = [""; FEW];
    let (mut count, mut from) = (0, 0);
    for (at, byte) in rest.bytes().enumerate() {
        if byte == b'/' {
            steps[count] = &rest[from..at];
            (count, from) = (count + 1, at + 1);
        }
    }
    steps[count] = &rest[from..];
    then(&steps[..=count])
}

struct Walk {
    create: Option<Create>,
}

impl Walk {
    fn follow(&self, node: &mut Node, path: &[&str], set: &mut Setter<'_>) -> Result<(), String> {
        if path.is_empty() {
            return set(node);
        }
        if node.is_null() {
            return Ok(());
        }
        match &mut node.content {
            Content::Seq(items) => items
                .iter_mut()
                .try_for_each(|item| self.follow(item, path, set))
                .map_err(|error| format!("visit traversal on path: [{}]: {error}", path.join(" "))),
            Content::Map(_) => self.field(node, path, set),
            Content::Scalar(_) => Err("expected sequence or mapping node".to_owned()),
        }
    }

    fn field(&self, node: &mut Node, path: &[&str], set: &mut Setter<'_>) -> Result<(), String> {
        let Some((step, rest)) = path.split_first() else { return Ok(()) };
        let (name, is_list) = step.strip_suffix("[]").map_or((*step, false), |name| (name, true));
        if name.is_empty() {
            return Err("cannot set or create an empty field name".to_owned());
        }
        refuse_index(name, node).map_err(|error| format!("fieldName: {name}: {error}"))?;
        let made = match self.create {
            Some(create) if !is_list && rest.is_empty() => Some((create.kind, create.tag)),
            Some(_) if !is_list => Some((Kind::Map, Tag::Map)),
            _ => None,
        };
        if let Some((kind, _)) = made
            && node.get(name).is_none()
        {
            node.set(name, Node::empty(kind))?;
        }
        let Some(field) = node.get_mut(name) else { return Ok(()) };
        if field.is_null()
            && let Some((kind, tag)) = made.or(is_list.then_some((Kind::Seq, Tag::Unset)))
        {
            field.become_kind(kind, tag);
        }
        self.follow(field, rest, set)
    }
}

/// Steps that name items of a list, or all: kyaml has no use for them in a mapping.
fn refuse_index(name: &str, node: &Node) -> Result<(), String> {
    let index = name.parse::<i64>();
    match index {
        Ok(index) if index < 0 => return Err(format!("array index {index} cannot be negative")),
        Err(_) if name == "*" => return Err("wildcard is not supported in PathGetter".to_owned()),
        _ => {}
    }
    if index.is_ok() || name == "-" || list_index(name).is_some() {
        return node.expect(Kind::Seq);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_name_items_are_refused() {
        let node = Node::map(vec![(Node::scalar("a"), Node::scalar("b"))]);
        let refused = |name: &str| refuse_index(name, &node).unwrap_err();
        assert_eq!(refused("*"), "wildcard is not supported in PathGetter");
        assert_eq!(refused("-2"), "array index -2 cannot be negative");
        for name in ["0", "-", "[name=x]"] {
            assert!(refused(name).starts_with("wrong node kind: expected SequenceNode"), "{name}");
        }
        assert!(refuse_index("a", &node).is_ok());
    }

    #[test]
    fn steps_are_those_of_the_splitter() {
        let long = "a/".repeat(FEW + 3);
        for path in
            ["", "a", "a/b", "/a/b", "/", "//a", "a//b", "a/", r"a\/b/c", "metadata/labels", long.as_str()]
        {
            let steps =
                with_steps(path, |steps| steps.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>());
            assert_eq!(steps, split_path(path, '/'), "{path}");
        }
    }
}
