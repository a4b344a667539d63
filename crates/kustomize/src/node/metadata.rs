//! The parts of a Kubernetes object that kustomize reads and sets, as `RNode` does.

use std::{borrow::Cow, collections::BTreeMap};

use smol_str::SmolStr;

use super::{Kind, Node, lookup_create};

/// Labels or annotations.
pub(crate) type StringMap = BTreeMap<String, String>;

impl Node {
    /// `apiVersion`, or empty.
    pub(crate) fn api_version(&self) -> &str {
        self.text_of("apiVersion")
    }

    /// `kind`, or empty.
    pub(crate) fn object_kind(&self) -> &str {
        self.text_of("kind")
    }

    fn metadata(&self) -> Option<&Node> {
        self.get("metadata").filter(|metadata| !metadata.is_empty())
    }

    fn metadata_text(&self, name: &str) -> &str {
        self.metadata()
            .and_then(|metadata| metadata.get(name))
            .filter(|value| !value.is_empty())
            .map(Node::value)
            .unwrap_or_default()
    }

    /// `metadata.name`, or empty.
    pub(crate) fn name(&self) -> &str {
        self.metadata_text("name")
    }

    /// `metadata.namespace`, or empty.
    pub(crate) fn namespace(&self) -> &str {
        self.metadata_text("namespace")
    }

    /// One annotation.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata()?.get("annotations")?.get(key).map(Node::value)
    }

    /// `metadata.labels` or `metadata.annotations` as texts.
    pub(crate) fn metadata_map(&self, field: &str) -> StringMap {
        let map = self.metadata().and_then(|metadata| metadata.get(field));
        let pairs = map.map(Node::pairs).unwrap_or_default();
        pairs.iter().map(|(key, value)| (key.value().to_owned(), value.value().to_owned())).collect()
    }

    /// Replaces `metadata.labels` or `metadata.annotations`; an empty map removes the field. Values
    /// that stay the same keep their node's origin.
    pub(crate) fn set_metadata_map(&mut self, field: &str, map: &StringMap) -> Result<(), String> {
        let Some(metadata) = lookup_create(self, &["metadata"], Kind::Map)? else { return Ok(()) };
        let old = metadata.clear(field)?;
        if map.is_empty() {
            return Ok(());
        }
        let mut map = Cow::Borrowed(map);
        // A manifest may have the field twice: kyaml then writes into the one that is left.
        while let Some(later) = metadata.clear(field)? {
            for (key, value) in later.pairs() {
                map.to_mut().entry(key.value().to_owned()).or_insert_with(|| value.value().to_owned());
            }
        }
        let mut fresh = Node::map(Vec::with_capacity(map.len()));
        fresh.origin = old.as_ref().map_or(0, |old| old.origin);
        if let Some(pairs) = fresh.pairs_mut() {
            pairs.extend(map.iter().map(|(key, text)| kept_or_new(old.as_ref(), key, text)));
        }
        metadata.set(field, fresh)
    }

    /// Sets `metadata.name` (`SetName`).
    pub(crate) fn set_name(&mut self, name: &str) -> Result<(), String> {
        self.set_metadata_text("name", name)
    }

    /// Sets `metadata.namespace`, or removes it where it is empty (`SetNamespace`).
    pub(crate) fn set_namespace(&mut self, namespace: &str) -> Result<(), String> {
        if !namespace.is_empty() {
            return self.set_metadata_text("namespace", namespace);
        }
        match self.get_mut("metadata") {
            Some(metadata) => metadata.clear("namespace").map(drop),
            None => Ok(()),
        }
    }

    /// Sets a text below `metadata`, leaving a node that has it already untouched but for its tag.
    fn set_metadata_text(&mut self, field: &str, text: &str) -> Result<(), String> {
        let Some(metadata) = lookup_create(self, &["metadata"], Kind::Map)? else { return Ok(()) };
        set_same_or_new(metadata, field, text)
    }

    /// Sets a top-level text such as `kind`.
    pub(crate) fn set_top(&mut self, field: &str, text: &str) -> Result<(), String> {
        set_same_or_new(self, field, text)
    }
}

/// Sets a field to a text of unset tag; where the text is the same, the origin stays.
fn set_same_or_new(node: &mut Node, field: &str, text: &str) -> Result<(), String> {
    let mut fresh = Node::scalar(text);
    if let Some(old) = node.get(field)
        && old.kind() == Kind::Scalar
        && old.value() == text
    {
        fresh.origin = old.origin;
    }
    node.set(field, fresh)
}

fn kept_or_new(old: Option<&Node>, key: &str, text: &str) -> (Node, Node) {
    let mut value = Node::string(SmolStr::from(text));
    let mut key_node = Node::scalar(key);
    let found = old.and_then(|old| old.pairs().iter().find(|(k, _)| k.value() == key));
    if let Some((old_key, old_value)) = found {
        key_node.origin = old_key.origin;
        if old_value.value() == text {
            value.origin = old_value.origin;
            value.group = old_value.group;
        }
    }
    (key_node, value)
}
