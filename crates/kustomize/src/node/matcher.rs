//! Every node that a path with matchers and wildcards leads to (kyaml's `PathMatcher`), with an
//! action on each.

use tiphys_gocompat::{regex::Regex, strconv::quote};

use super::{Content, Kind, Node, kind_error, list_index, path::kind_for, to_json};
use crate::meter::check_steps;

/// A path of fields, `[name=regex]`, indices and `*`.
pub(crate) struct PathMatcher<'a> {
    /// The steps.
    pub path: &'a [String],
    /// Whether missing nodes are made, and of which kind the last is.
    pub create: Option<Kind>,
}

/// What is done with a node that was found.
type Action<'a> = dyn FnMut(&mut Node) -> Result<(), String> + 'a;

impl PathMatcher<'_> {
    /// Runs `action` on every node that the path leads to; returns how many there were.
    ///
    /// # Errors
    /// A step that does not fit its node, or what the action returned.
    pub(crate) fn each(&self, node: &mut Node, action: &mut Action<'_>) -> Result<usize, String> {
        check_steps(self.path.len())?;
        self.walk(node, self.path, action)
    }

    fn walk(&self, node: &mut Node, path: &[String], action: &mut Action<'_>) -> Result<usize, String> {
        let Some((step, rest)) = path.split_first() else {
            action(node)?;
            return Ok(1);
        };
        if let Ok(index) = step.parse::<usize>() {
            return self.index(node, index, rest, action);
        }
        if let Some(parts) = list_index(step) {
            let (name, pattern) = parts?;
            return self.matching(node, (step, name, pattern), rest, action);
        }
        if step == "*" {
            node.expect(Kind::Seq)?;
            let mut count = 0;
            for item in node.items_mut().into_iter().flatten() {
                count += self.walk(item, rest, action)?;
            }
            return Ok(count);
        }
        self.field(node, step, rest, action)
    }

    fn field(
        &self,
        node: &mut Node,
        name: &str,
        rest: &[String],
        action: &mut Action<'_>,
    ) -> Result<usize, String> {
        if !node.is_null() {
            node.expect(Kind::Map)?;
        }
        if node.get(name).is_none() {
            let Some(kind) = self.create else { return Ok(0) };
            let made = kind_for(rest.first().map(String::as_str), kind);
            node.set(name, Node::empty(made))?;
        }
        match node.get_mut(name) {
            None => Ok(0),
            Some(field) if field.kind() == Kind::Scalar && !rest.is_empty() => {
                self.in_text(field, rest, action)
            }
            Some(field) => self.walk(field, rest, action),
        }
    }

    /// A path that goes on below a scalar is followed in the YAML that the scalar holds; kyaml
    /// changes a copy there, so the scalar stays.
    fn in_text(&self, field: &Node, rest: &[String], action: &mut Action<'_>) -> Result<usize, String> {
        if field.is_null() {
            return Ok(0);
        }
        let Some(mut parsed) = crate::reader::parse_plain(field.value())? else { return Ok(0) };
        self.walk(&mut parsed, rest, action)
    }

    fn index(
        &self,
        node: &mut Node,
        index: usize,
        rest: &[String],
        action: &mut Action<'_>,
    ) -> Result<usize, String> {
        node.expect(Kind::Seq)?;
        let length = node.items().len();
        if let (true, Some(kind)) = (length == index, self.create) {
            let made = Node::empty(kind_for(rest.first().map(String::as_str), kind));
            node.items_mut().into_iter().for_each(|items| items.push(made.clone()));
        }
        match node.items_mut().and_then(|items| items.get_mut(index)) {
            Some(item) => self.walk(item, rest, action),
            None => Err(format!("index {index} specified but only {length} elements found")),
        }
    }

    fn matching(
        &self,
        node: &mut Node,
        (step, name, pattern): (&str, &str, &str),
        rest: &[String],
        action: &mut Action<'_>,
    ) -> Result<usize, String> {
        node.expect(Kind::Seq)?;
        let regex = Regex::compile(pattern).map_err(|error| error.to_string())?;
        let mut count = 0;
        for item in node.items_mut().into_iter().flatten() {
            if name.is_empty() {
                if regex.is_match(printed(item).trim()) {
                    action(item)?;
                    count += 1;
                }
            } else if item.get(name).is_some_and(|field| regex.is_match(printed(field).trim())) {
                count += self.walk(item, rest, action)?;
            }
        }
        if count > 0 || self.create.is_none() {
            return Ok(count);
        }
        let made = match name {
            "" => Node::scalar(pattern),
            name => Node::map(vec![(Node::scalar(name), Node::scalar(pattern))]),
        };
        if !regex.is_match(pattern) {
            return Err(format!("failed to create element for {}", quote(step)));
        }
        match node.items_mut() {
            Some(items) => items.push(made),
            None => return Err(kind_error(Kind::Seq, node)),
        }
        let Some(item) = node.items_mut().and_then(|items| items.last_mut()) else { return Ok(0) };
        if name.is_empty() {
            action(item)?;
            return Ok(1);
        }
        self.walk(item, rest, action)
    }
}

/// A node as its YAML text.
fn printed(node: &Node) -> String {
    match (&node.content, to_json(node)) {
        (_, Ok(serde_json::Value::String(text))) if node.is_quoted() => quote(&text),
        (Content::Scalar(text), _) => text.to_string(),
        (_, value) => tiphys_yaml::to_yaml(&value.unwrap_or_default()),
    }
}
