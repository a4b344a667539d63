//! Where a rendered field came from: the files, lines and expressions that made it.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{FieldPath, Segment};

/// A place in a file. Lines and columns count from 1; a column of 0 means the whole line, a line of
/// 0 the whole file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Location {
    /// Path as the user would write it: relative to the repository or chart root.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Location {
    /// Makes a location from its parts.
    pub fn new(file: impl Into<Arc<str>>, line: u32, column: u32) -> Self {
        Self { file: file.into(), line, column }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column] {
            if number == 0 {
                break;
            }
            write!(f, ":{number}")?;
        }
        Ok(())
    }
}

/// What kind of thing wrote a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OriginKind {
    /// A manifest file as it stands.
    Manifest,
    /// Literal text or an action of a chart template.
    Template,
    /// A call of a named template (`include`, `template`, `tpl`) on the way to the text.
    Include,
    /// A value that the producing action read, and the file or flag that set it.
    Values,
    /// A Kustomize patch.
    Patch,
    /// A ConfigMap or Secret generator, or a Helm chart inflated by Kustomize.
    Generator,
    /// Another Kustomize transformer: images, replicas, labels, names, namespace, replacements.
    Transformer,
    /// A field of an Application's source (parameters, kustomize options).
    Application,
    /// The engine itself (tracking, namespace).
    Engine,
}

/// One writer of a field: what it was, where it stands, and a detail such as the template name, the
/// values path (`.Values.image.tag`) or the transformer's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// What kind of thing wrote the field.
    pub kind: OriginKind,
    /// Where it stands.
    pub location: Location,
    /// Template name, values path, transformer name; may be empty.
    pub detail: String,
}

/// For a node of an object and those below it, the chain of writers, last writer first. A node without a
/// chain of its own has that of its nearest ancestor with one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    chain: Vec<Origin>,
    /// Most nodes have none below them, and a map makes room for eleven entries with the first: so both are
    /// held at arm's length.
    below: Option<Box<Below>>,
}

/// What is known of the nodes right below one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Below {
    keys: BTreeMap<Box<str>, Box<Origins>>,
    items: BTreeMap<usize, Box<Origins>>,
}

impl Origins {
    /// Sets the chain of a node, last writer first, in place of what it had.
    pub fn set(&mut self, path: &FieldPath, chain: Vec<Origin>) {
        path.0.iter().fold(self, |at, segment| at.child(segment)).chain = chain;
    }

    /// Sets the chain of this node itself.
    pub fn set_own(&mut self, chain: Vec<Origin>) {
        self.chain = chain;
    }

    /// What is known of the node one key deeper.
    pub fn key(&mut self, key: &str) -> &mut Self {
        let keys = &mut self.below.get_or_insert_default().keys;
        if !keys.contains_key(key) {
            keys.insert(key.into(), Box::default());
        }
        keys.get_mut(key).expect("it was just made")
    }

    /// What is known of the node one array position deeper.
    pub fn index(&mut self, index: usize) -> &mut Self {
        self.below.get_or_insert_default().items.entry(index).or_default()
    }

    /// Puts a later writer before those that a node already has.
    pub fn overwrite(&mut self, path: &FieldPath, writer: Origin) {
        let mut chain = vec![writer];
        chain.extend(self.lookup(path).iter().cloned());
        self.set(path, chain);
    }

    /// The chain of a node: its own or that of its nearest ancestor; empty if nothing is known.
    pub fn lookup(&self, path: &FieldPath) -> &[Origin] {
        let (mut at, mut chain) = (self, self.chain.as_slice());
        for segment in &path.0 {
            let Some(below) = at.get(segment) else { break };
            at = below;
            if !at.chain.is_empty() {
                chain = &at.chain;
            }
        }
        chain
    }

    /// What is known of a node and those below it; `None` if none of them has a chain of its own.
    pub fn find(&self, path: &FieldPath) -> Option<&Self> {
        path.0.iter().try_fold(self, |at, segment| at.get(segment))
    }

    /// Every node that has a chain of its own, in path order.
    pub fn all(&self) -> Vec<(FieldPath, &[Origin])> {
        let mut all = Vec::new();
        self.collect(&FieldPath::default(), &mut all);
        all
    }

    fn collect<'a>(&'a self, path: &FieldPath, all: &mut Vec<(FieldPath, &'a [Origin])>) {
        if !self.chain.is_empty() {
            all.push((path.clone(), &self.chain));
        }
        let Some(nodes) = &self.below else { return };
        for (key, below) in &nodes.keys {
            below.collect(&path.key(&**key), all);
        }
        for (index, below) in &nodes.items {
            below.collect(&path.index(*index), all);
        }
    }

    fn get(&self, segment: &Segment) -> Option<&Self> {
        let nodes = self.below.as_ref()?;
        let found = match segment {
            Segment::Key(key) => nodes.keys.get(key.as_str()),
            Segment::Index(index) => nodes.items.get(index),
        };
        found.map(Box::as_ref)
    }

    fn child(&mut self, segment: &Segment) -> &mut Self {
        match segment {
            Segment::Key(key) => self.key(key),
            Segment::Index(index) => self.index(*index),
        }
    }

    /// Whether nothing is known of any node.
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty() && self.below.is_none()
    }
}

/// A map from printed field path to chain.
impl Serialize for Origins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.all().into_iter().map(|(path, chain)| (path.to_string(), chain)))
    }
}

/// An object as a renderer hands it on.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedObject {
    /// The object.
    pub value: Value,
    /// The file (template, manifest or resource) that it came from, and the line where it starts.
    pub location: Location,
    /// Where its fields came from; empty where origins were not asked for.
    pub origins: Origins,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(kind: OriginKind, line: u32) -> Origin {
        Origin { kind, location: Location::new("f.yaml", line, 1), detail: String::new() }
    }

    #[test]
    fn a_node_inherits_from_its_nearest_ancestor() {
        let mut origins = Origins::default();
        let spec = FieldPath::default().key("spec");
        origins.set_own(vec![origin(OriginKind::Manifest, 1)]);
        origins.set(&spec, vec![origin(OriginKind::Manifest, 3)]);
        assert_eq!(origins.lookup(&spec.key("replicas"))[0].location.line, 3);
        assert_eq!(origins.lookup(&FieldPath::default().key("kind"))[0].location.line, 1);
    }

    #[test]
    fn a_later_writer_comes_first_and_keeps_what_was_there() {
        let mut origins = Origins::default();
        let replicas = FieldPath::default().key("spec").key("replicas");
        origins.set_own(vec![origin(OriginKind::Manifest, 1)]);
        origins.overwrite(&replicas, origin(OriginKind::Patch, 9));
        let kinds: Vec<_> = origins.lookup(&replicas).iter().map(|o| o.kind).collect();
        assert_eq!(kinds, [OriginKind::Patch, OriginKind::Manifest]);
    }

    #[test]
    fn nodes_are_listed_in_path_order() {
        let mut origins = Origins::default();
        for path in [".spec.b[1]", ".spec.b[0].x", ".spec.b", ".kind"] {
            origins.set(&path.parse().unwrap(), vec![origin(OriginKind::Manifest, 1)]);
        }
        let paths: Vec<String> = origins.all().iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(paths, [".kind", ".spec.b", ".spec.b[0].x", ".spec.b[1]"]);
        let below = origins.find(&".spec.b[0]".parse().unwrap()).expect("it is known");
        assert_eq!(below.all()[0].0.to_string(), ".x");
        assert!(origins.find(&".spec.c".parse().unwrap()).is_none());
    }
}
