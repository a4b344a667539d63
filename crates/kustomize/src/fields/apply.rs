//! Following a field spec through an object (kustomize's `fieldspec` filter).

use crate::{
    kustomization::model::FieldSpec,
    meter::check_steps,
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
    Route::new(spec).apply(node, create, set)
}

/// A field spec with its path cut into steps, for many objects.
#[derive(Debug)]
pub(crate) struct Route<'a> {
    spec: &'a FieldSpec,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: String,
    /// It was written with `[]`.
    is_list: bool,
    /// It names an item of a list, or all: kyaml has no use for that in a mapping.
    is_index: bool,
}

impl Step {
    fn new(text: String) -> Self {
        let (name, is_list) = match text.strip_suffix("[]") {
            Some(name) => (name.to_owned(), true),
            None => (text, false),
        };
        let is_index =
            name.parse::<i64>().is_ok() || matches!(name.as_str(), "*" | "-") || list_index(&name).is_some();
        Self { name, is_list, is_index }
    }

    /// Why the step cannot be taken in a mapping, if it cannot.
    fn check(&self, node: &Node) -> Result<(), String> {
        if !self.is_index {
            return Ok(());
        }
        match self.name.parse::<i64>() {
            Ok(index) if index < 0 => Err(format!("array index {index} cannot be negative")),
            Err(_) if self.name == "*" => Err("wildcard is not supported in PathGetter".to_owned()),
            _ => node.expect(Kind::Seq),
        }
    }
}

impl<'a> Route<'a> {
    /// Cuts the path of a spec as [`split_path`] does.
    pub(crate) fn new(spec: &'a FieldSpec) -> Self {
        Self { spec, steps: split_path(&spec.path, '/').into_iter().map(Step::new).collect() }
    }

    /// The routes of several specs.
    pub(crate) fn all(specs: &'a [FieldSpec]) -> Vec<Self> {
        specs.iter().map(Self::new).collect()
    }

    /// The spec.
    pub(crate) fn spec(&self) -> &'a FieldSpec {
        self.spec
    }

    /// As [`apply`].
    ///
    /// # Errors
    /// As [`apply`].
    pub(crate) fn apply(
        &self,
        node: &mut Node,
        create: Option<Create>,
        set: &mut Setter<'_>,
    ) -> Result<(), String> {
        let spec = self.spec;
        if !spec.gvk.selects(node.api_version(), node.object_kind()) {
            return Ok(());
        }
        self.follow(node, create, set)
    }

    /// As [`Self::apply`], in an object whose kind is known to fit.
    ///
    /// # Errors
    /// As [`apply`].
    pub(crate) fn follow(
        &self,
        node: &mut Node,
        create: Option<Create>,
        set: &mut Setter<'_>,
    ) -> Result<(), String> {
        let walk = Walk { create: create.filter(|_| self.spec.create) };
        let followed = check_steps(self.steps.len()).and_then(|()| walk.follow(node, &self.steps, set));
        followed.map_err(|error| {
            let id = ResId {
                gvk: Gvk::new(node.api_version(), node.object_kind()),
                name: node.name().into(),
                namespace: node.namespace().into(),
                cluster_scoped: false,
            };
            format!("considering field '{}' of object {id}: {error}", self.spec.path)
        })
    }
}

struct Walk {
    create: Option<Create>,
}

impl Walk {
    fn follow(&self, node: &mut Node, path: &[Step], set: &mut Setter<'_>) -> Result<(), String> {
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
                .map_err(|error| format!("visit traversal on path: [{}]: {error}", join_steps(path))),
            Content::Map(_) => self.field(node, path, set),
            Content::Scalar(_) => Err("expected sequence or mapping node".to_owned()),
        }
    }

    fn field(&self, node: &mut Node, path: &[Step], set: &mut Setter<'_>) -> Result<(), String> {
        let Some((step, rest)) = path.split_first() else { return Ok(()) };
        let (name, is_list) = (step.name.as_str(), step.is_list);
        if name.is_empty() {
            return Err("cannot set or create an empty field name".to_owned());
        }
        step.check(node).map_err(|error| format!("fieldName: {name}: {error}"))?;
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

/// Steps as errors print them.
fn join_steps(path: &[Step]) -> String {
    let steps = path.iter().map(|step| format!("{}{}", step.name, if step.is_list { "[]" } else { "" }));
    steps.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_name_items_are_refused() {
        let node = Node::map(vec![(Node::scalar("a"), Node::scalar("b"))]);
        let check = |name: &str| Step::new(name.to_owned()).check(&node);
        assert_eq!(check("*").unwrap_err(), "wildcard is not supported in PathGetter");
        assert_eq!(check("-2").unwrap_err(), "array index -2 cannot be negative");
        for name in ["0", "-", "[name=x]"] {
            assert!(check(name).unwrap_err().starts_with("wrong node kind: expected SequenceNode"), "{name}");
        }
        assert!(check("a").is_ok() && check("a[]").is_ok());
    }
}
