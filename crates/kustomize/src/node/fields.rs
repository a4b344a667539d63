//! Reading and setting fields as kyaml's `FieldMatcher`, `FieldSetter` and `FieldClearer` do.

use super::{Content, Kind, Node, Style, reads_as_string};

impl Node {
    /// The value of a field; `None` for other kinds than mappings.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.pairs().iter().find(|(key, _)| key.value() == name).map(|(_, value)| value)
    }

    /// The value of a field, to change.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.pairs_mut()?.iter_mut().find(|(key, _)| key.value() == name).map(|(_, value)| value)
    }

    /// The position of a field in its mapping.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.pairs().iter().position(|(key, _)| key.value() == name)
    }

    /// The text of a field, empty if absent or no scalar.
    pub(crate) fn text_of(&self, name: &str) -> &str {
        self.get(name).map(Node::value).unwrap_or_default()
    }

    /// Takes a field out (`FieldClearer`).
    ///
    /// # Errors
    /// The node is no mapping and not null.
    pub(crate) fn clear(&mut self, name: &str) -> Result<Option<Node>, String> {
        self.expect(Kind::Map)?;
        let Some(at) = self.position(name) else { return Ok(None) };
        Ok(self.pairs_mut().map(|pairs| pairs.remove(at).1))
    }

    /// Sets a field (`FieldSetter`): the style of an existing value is kept, a null value removes the
    /// field, text that would read as another type is quoted.
    ///
    /// # Errors
    /// The node is no mapping.
    pub(crate) fn set(&mut self, name: &str, value: Node) -> Result<(), String> {
        self.set_in_group(name, value, 0)
    }

    /// As [`Self::set`], of a field that is known not to be there: nothing is searched for.
    pub(crate) fn add(&mut self, name: &str, mut value: Node) {
        quote_ambiguous(&mut value);
        if let Some(pairs) = self.pairs_mut() {
            pairs.push((Node::scalar(name), value));
        }
    }

    /// As [`Self::set`]; a field that is added belongs to a group of shared nodes.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub(crate) fn set_in_group(&mut self, name: &str, mut value: Node, group: u32) -> Result<(), String> {
        quote_ambiguous(&mut value);
        if value.is_null() {
            self.clear(name)?;
            return Ok(());
        }
        if self.is_null() {
            return Ok(());
        }
        self.expect(Kind::Map)?;
        if let Some(field) = self.get_mut(name) {
            value.style = field.style;
            field.assign(value);
            return Ok(());
        }
        value.group = group;
        if let Some(pairs) = self.pairs_mut() {
            pairs.push((Node::scalar(name), value));
        }
        Ok(())
    }

    /// Sets a scalar in place (`FieldSetter` without a name): the style stays.
    ///
    /// # Errors
    /// The node is a collection.
    pub(crate) fn set_scalar(&mut self, mut value: Node) -> Result<(), String> {
        self.expect(Kind::Scalar)?;
        if value.is_null() {
            return Ok(());
        }
        value.style = self.style;
        self.assign(value);
        Ok(())
    }

    /// Refuses nodes of another kind; nulls pass (`ErrorIfInvalid`).
    ///
    /// # Errors
    /// kyaml's text.
    pub(crate) fn expect(&self, kind: Kind) -> Result<(), String> {
        if self.is_null() || self.kind() == kind { Ok(()) } else { Err(kind_error(kind, self)) }
    }

    /// Turns a null into an empty node of a kind.
    pub(crate) fn become_kind(&mut self, kind: Kind, tag: super::Tag) {
        self.tag = tag;
        match (kind, &self.content) {
            (Kind::Map, Content::Map(_))
            | (Kind::Seq, Content::Seq(_))
            | (Kind::Scalar, Content::Scalar(_)) => {}
            (Kind::Map, _) => self.content = Content::Map(Vec::new()),
            (Kind::Seq, _) => self.content = Content::Seq(Vec::new()),
            (Kind::Scalar, _) => self.content = Content::Scalar("".into()),
        }
    }
}

/// Quotes plain text that YAML 1.1 or 1.2 would not read as text.
fn quote_ambiguous(value: &mut Node) {
    let text = value.value();
    if value.is_string()
        && value.style == Style::Plain
        && !text.is_empty()
        && !text.contains('\n')
        && !reads_as_string(text)
    {
        value.style = Style::DoubleQuoted;
    }
}

/// kyaml's text for a node of the wrong kind.
pub(crate) fn kind_error(expected: Kind, node: &Node) -> String {
    let printed = tiphys_yaml::emit(&node.to_yaml_node(), tiphys_yaml::EmitOptions::KYAML);
    format!(
        "wrong node kind: expected {} but got {}: node contents:\n{printed}",
        expected.name(),
        node.kind().name()
    )
}
