//! Sets of field paths, as `fieldsV1` writes them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tiphys_schema::{ListKind, Type, TypeRef};

/// How deep a set read from outside may be.
const MAX_DEPTH: usize = 200;

/// A set of field paths. A step is spelled as in `fieldsV1`: `f:name`, `k:{"name":"x"}`, `v:"x"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: BTreeMap<String, Node>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    member: bool,
    children: FieldSet,
}

impl FieldSet {
    /// Whether the set has no path.
    pub fn is_empty(&self) -> bool {
        self.nodes.values().all(|node| !node.member && node.children.is_empty())
    }

    /// Reads `fieldsV1`; what is malformed or too deep is left out.
    pub fn from_fields_v1(fields: &Value) -> Self {
        Self::read(fields, 0)
    }

    fn read(fields: &Value, depth: usize) -> Self {
        let mut set = Self::default();
        for (key, inner) in fields.as_object().into_iter().flatten().filter(|_| depth < MAX_DEPTH) {
            if key == "." {
                continue;
            }
            let empty = inner.as_object().is_none_or(Map::is_empty);
            let node =
                Node { member: empty || inner.get(".").is_some(), children: Self::read(inner, depth + 1) };
            set.nodes.insert(key.clone(), node);
        }
        set
    }

    /// Writes `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        let entries = self.nodes.iter().map(|(key, node)| {
            let mut inner = node.children.to_fields_v1();
            if let (true, false, Value::Object(map)) = (node.member, node.children.is_empty(), &mut inner) {
                map.insert(".".into(), Value::Object(Map::new()));
            }
            (key.clone(), inner)
        });
        Value::Object(entries.collect())
    }

    /// Adds a path.
    pub fn insert(&mut self, path: &[String]) {
        if let Some((last, before)) = path.split_last() {
            let mut set = self;
            for step in before {
                set = &mut set.nodes.entry(step.clone()).or_default().children;
            }
            set.nodes.entry(last.clone()).or_default().member = true;
        }
    }

    /// Whether a step of this level is a member.
    pub(super) fn contains(&self, step: &str) -> bool {
        self.nodes.get(step).is_some_and(|node| node.member)
    }

    /// What lies below a step.
    pub(super) fn child(&self, step: &str) -> Option<&FieldSet> {
        self.nodes.get(step).map(|node| &node.children).filter(|set| !set.is_empty())
    }

    /// Removes a step with all that lies below it.
    pub(super) fn remove_tree(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [last] => drop(self.nodes.remove(*last)),
            [first, rest @ ..] => {
                if let Some(node) = self.nodes.get_mut(*first) {
                    node.children.remove_tree(rest);
                    if !node.member && node.children.is_empty() {
                        self.nodes.remove(*first);
                    }
                }
            }
        }
    }

    fn combine(&self, other: &Self, keep: fn(bool, bool) -> bool) -> Self {
        let empty = Node::default();
        let mut nodes = BTreeMap::new();
        for step in self.nodes.keys().chain(other.nodes.keys()) {
            let a = self.nodes.get(step).unwrap_or(&empty);
            let b = other.nodes.get(step).unwrap_or(&empty);
            let node =
                Node { member: keep(a.member, b.member), children: a.children.combine(&b.children, keep) };
            if node.member || !node.children.nodes.is_empty() {
                nodes.insert(step.clone(), node);
            }
        }
        Self { nodes }
    }

    /// Paths of either set.
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a || b)
    }

    /// Paths of both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a && b)
    }

    /// Paths of this set that the other does not have.
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a && !b)
    }

    /// The set with every named field on the way to a path added.
    pub(super) fn with_named_fields(&self, ty: Option<TypeRef<'_>>) -> Self {
        let nodes = self.nodes.iter().map(|(step, node)| {
            let name = step.strip_prefix("f:");
            let named = name.is_some_and(|name| ty.and_then(|ty| ty.field_info(name)).is_some());
            let inner = match name {
                Some(name) => ty.and_then(|ty| ty.field(name)),
                None => ty.and_then(TypeRef::items),
            };
            let children = node.children.with_named_fields(inner);
            (step.clone(), Node { member: node.member || named, children })
        });
        Self { nodes: nodes.collect() }
    }

    /// All paths in the spelling of conflict messages, such as `.spec.containers[name="a"].image`.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.collect(&mut String::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut String, out: &mut Vec<String>) {
        let members = self.nodes.iter().filter(|(_, node)| node.member);
        out.extend(members.map(|(step, _)| format!("{prefix}{}", step_text(step))));
        for (step, node) in &self.nodes {
            let length = prefix.len();
            prefix.push_str(&step_text(step));
            node.children.collect(prefix, out);
            prefix.truncate(length);
        }
    }

    /// The paths that a configuration sets.
    ///
    /// # Errors
    /// List items without their keys.
    pub fn from_value(value: &Value, ty: Option<TypeRef<'_>>) -> Result<Self, String> {
        let mut set = Self::default();
        collect_value(value, ty, &mut Vec::new(), &mut set)?;
        Ok(set)
    }
}

/// One step in the spelling of messages.
fn step_text(step: &str) -> String {
    if let Some(name) = step.strip_prefix("f:") {
        return format!(".{name}");
    }
    if let Some(value) = step.strip_prefix("v:") {
        return format!("[={value}]");
    }
    let keys: Value = serde_json::from_str(step.trim_start_matches("k:")).unwrap_or_default();
    let keys = keys.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={value}"));
    format!("[{}]", keys.collect::<Vec<_>>().join(","))
}

fn collect_value(
    value: &Value,
    ty: Option<TypeRef<'_>>,
    path: &mut Vec<String>,
    set: &mut FieldSet,
) -> Result<(), String> {
    match value {
        Value::Object(_) if is_atomic(value, ty) => set.insert(path),
        Value::Object(map) => {
            for (key, inner) in map {
                path.push(format!("f:{key}"));
                let field = ty.and_then(|ty| ty.field(key));
                collect_value(inner, field, path, set)?;
                let empty = inner.is_null() || inner.as_object().is_some_and(Map::is_empty);
                if empty || ty.and_then(|ty| ty.field_info(key)).is_none() {
                    set.insert(path);
                }
                path.pop();
            }
        }
        Value::Array(_) if is_atomic(value, ty) => set.insert(path),
        Value::Array(items) => {
            let item_ty = ty.and_then(TypeRef::items);
            for item in items {
                path.push(item_step(item, ty)?);
                collect_value(item, item_ty, path, set)?;
                set.insert(path);
                path.pop();
            }
        }
        _ => set.insert(path),
    }
    Ok(())
}

/// Whether a value is replaced as a whole.
pub(super) fn is_atomic(value: &Value, ty: Option<TypeRef<'_>>) -> bool {
    match (value, ty) {
        (Value::Object(_), Some(ty)) => ty.is_atomic_object(),
        (Value::Object(_), None) => false,
        (Value::Array(_), Some(ty)) => !matches!(ty.list_kind(), Some(ListKind::Set | ListKind::Map(_))),
        _ => true,
    }
}

/// The step that identifies a list item.
pub(super) fn item_step(item: &Value, ty: Option<TypeRef<'_>>) -> Result<String, String> {
    let Some(ListKind::Map(keys)) = ty.and_then(TypeRef::list_kind) else {
        return Ok(format!("v:{item}"));
    };
    let items = ty.and_then(TypeRef::items);
    let Some(map) = item.as_object() else {
        return Err("associative list with keys may not have non-map elements".into());
    };
    let mut found = Map::new();
    for key in keys {
        let value = map.get(key).filter(|value| !value.is_null());
        if let Some(value) = value.or_else(|| items.and_then(|items| items.key_default(key))) {
            found.insert(key.clone(), value.clone());
        } else if let Some(zero) =
            items.and_then(|items| items.field_info(key)).and_then(|f| zero_key(f.required, &f.ty))
        {
            found.insert(key.clone(), zero);
        }
    }
    if found.is_empty() {
        let key = keys.first().map(String::as_str).unwrap_or_default();
        return Err(format!(
            "associative list with keys has an element that omits key field {key:?} (and doesn't have default value)"
        ));
    }
    Ok(format!("k:{}", Value::Object(found)))
}

/// Required keys of built-in types default to their zero value.
fn zero_key(required: bool, ty: &Type) -> Option<Value> {
    match ty {
        Type::Str if required => Some("".into()),
        Type::I32 | Type::I64 if required => Some(0.into()),
        _ => None,
    }
}
