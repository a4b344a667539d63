//! JSON patches (RFC 6902) with the texts and liberties of the library that kustomize uses:
//! negative indices, `add` at any parent that exists, no error on unknown fields of an operation.

use serde_json::Value;
use tiphys_value::{Budget, json_kind, json_within};

use tiphys_gocompat::strconv::quote;

use crate::{
    meter::Meter,
    node::{Content, Node, WRITTEN, from_json, normalize, to_json},
    origins::Tracker,
    suggest,
};

/// A patch: operations in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPatch {
    operations: Vec<Operation>,
}

#[derive(Clone, Debug, PartialEq)]
struct Operation {
    op: String,
    path: Option<String>,
    from: Option<String>,
    /// `None` where the operation has no `value`; a given null is `Some(Null)`.
    value: Option<Value>,
}

/// Where operations stand, for origins: writer, then line and column of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    pub writer: u32,
    pub positions: Vec<(u32, u32)>,
}

impl JsonPatch {
    /// Reads a patch that is JSON, or YAML that converts to it.
    ///
    /// # Errors
    /// Text of the YAML or JSON decoder.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("empty json patch operations".to_owned());
        }
        let value = if text.starts_with('[') {
            json_within(text.as_bytes(), &Budget::of_document()).map_err(|error| error.to_string())?
        } else {
            tiphys_yaml::from_yaml(text).map_err(|error| error.to_string())?
        };
        match value {
            Value::Null => Ok(Self { operations: Vec::new() }),
            Value::Array(items) => {
                let operations = items.iter().map(operation).collect::<Result<_, _>>()?;
                Ok(Self { operations })
            }
            other => Err(format!(
                "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
                json_kind(&other)
            )),
        }
    }

    /// How many operations there are.
    pub(crate) fn len(&self) -> usize {
        self.operations.len()
    }

    /// Where the first path that leads nowhere ends in an object to which the patch could not be applied.
    pub(crate) fn missing_field(&self, node: &Node) -> Option<String> {
        let paths = self.operations.iter().flat_map(|operation| {
            // What an operation adds need not be there.
            let parent = matches!(operation.op.as_str(), "add" | "copy" | "move");
            let path = operation.path.as_deref().map(|path| (path, parent));
            path.into_iter().chain(operation.from.as_deref().map(|from| (from, false)))
        });
        paths.into_iter().find_map(|(path, parent)| {
            let mut steps: Vec<String> =
                path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
            if parent {
                steps.pop();
            }
            suggest::nearest_field(node, &steps)
        })
    }

    /// Applies all operations; the node is normalised to JSON types first.
    ///
    /// # Errors
    /// Text of the patch library.
    pub(crate) fn apply(
        &self,
        node: &mut Node,
        places: &Places,
        tracker: &mut Tracker,
        meter: &Meter,
    ) -> Result<(), String> {
        normalize(node)?;
        for (index, operation) in self.operations.iter().enumerate() {
            operation.apply(node, meter)?;
            if tracker.is_enabled() {
                let (line, column) = places.positions.get(index).copied().unwrap_or_default();
                tracker.stamp(node, places.writer, line, column);
            }
        }
        Ok(())
    }
}

fn operation(value: &Value) -> Result<Operation, String> {
    let Value::Object(fields) = value else {
        return Err(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Operation",
            json_kind(value)
        ));
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    Ok(Operation {
        op: text("op").unwrap_or_else(|| "unknown".to_owned()),
        path: text("path"),
        from: text("from"),
        value: fields.get("value").cloned(),
    })
}

/// Where a path ends: the container and the last step.
struct PatchTarget<'a> {
    container: &'a mut Node,
    key: String,
}

fn find<'a>(root: &'a mut Node, path: &str) -> Option<PatchTarget<'a>> {
    let mut steps: Vec<String> =
        path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    if steps.len() < 2 {
        return None;
    }
    let key = steps.pop()?;
    let mut container = root;
    for step in &steps[1..] {
        let at = child_at(container, step).ok()??;
        container = match &mut container.content {
            Content::Map(pairs) => &mut pairs.get_mut(at)?.1,
            Content::Seq(items) => items.get_mut(at)?,
            Content::Scalar(_) => return None,
        };
        if matches!(container.content, Content::Scalar(_)) {
            return None;
        }
    }
    Some(PatchTarget { container, key })
}

/// The position of a child; `None` for an absent key of a mapping.
fn child_at(container: &Node, key: &str) -> Result<Option<usize>, String> {
    match &container.content {
        Content::Seq(items) => array_index(key, items.len(), items.len()).map(Some),
        _ => Ok(container.position(key)),
    }
}

/// Go's `Atoi` of an index, counted from the end where negative.
fn array_index(key: &str, length: usize, bound: usize) -> Result<usize, String> {
    let number: i64 =
        key.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", quote(key)))?;
    let invalid = || format!("Unable to access invalid index: {number}: invalid index referenced");
    let index = if number < 0 { number + length as i64 } else { number };
    usize::try_from(index).ok().filter(|index| *index < bound).ok_or_else(invalid)
}

impl Operation {
    fn apply(&self, root: &mut Node, meter: &Meter) -> Result<(), String> {
        match self.op.as_str() {
            "add" => self.add(root, meter),
            "remove" => self.remove(root),
            "replace" => self.replace(root, meter),
            "move" => self.relocate(root, true, meter),
            "copy" => self.relocate(root, false, meter),
            "test" => self.test(root),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn path(&self, failure: &str) -> Result<&str, String> {
        self.path.as_deref().ok_or_else(|| format!("{failure}: missing value"))
    }

    fn node(&self, meter: &Meter) -> Result<Node, String> {
        let node = self.value.as_ref().map_or_else(Node::null, from_json);
        meter.take_node(&node, steps(self.path.as_deref()))?;
        Ok(node)
    }

    fn add(&self, root: &mut Node, meter: &Meter) -> Result<(), String> {
        let path = self.path("add operation failed to decode path")?;
        let Some(place) = find(root, path) else {
            return Err(format!(
                "add operation does not apply: doc is missing path: \"{path}\": missing value"
            ));
        };
        insert(place, self.node(meter)?).map_err(|error| format!("error in add for path: '{path}': {error}"))
    }

    fn remove(&self, root: &mut Node) -> Result<(), String> {
        let path = self.path("remove operation failed to decode path")?;
        let Some(place) = find(root, path) else {
            return Err(format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            ));
        };
        take(place).map(drop).map_err(|error| format!("error in remove for path: '{path}': {error}"))
    }

    fn replace(&self, root: &mut Node, meter: &Meter) -> Result<(), String> {
        let path = self.path("replace operation failed to decode path: operation missing path field")?;
        if path.is_empty() {
            if !matches!(self.value, Some(Value::Object(_) | Value::Array(_) | Value::Null)) {
                return Err("replace operation value must be object or array: %!w(<nil>)".to_owned());
            }
            overwrite(root, self.node(meter)?);
            return Ok(());
        }
        let Some(PatchTarget { container, key }) = find(root, path) else {
            return Err(format!(
                "replace operation does not apply: doc is missing path: {path}: missing value"
            ));
        };
        let missing =
            || format!("replace operation does not apply: doc is missing key: {path}: missing value");
        let node = self.node(meter)?;
        match (child_at(container, &key).map_err(|_| missing())?, &mut container.content) {
            (Some(at), Content::Map(pairs)) => overwrite(&mut pairs[at].1, node),
            (Some(at), Content::Seq(items)) => overwrite(&mut items[at], node),
            (None, Content::Map(pairs)) => pairs.push((from_json(&Value::String(key)), node)),
            _ => return Err(missing()),
        }
        Ok(())
    }

    /// `move` and `copy`.
    fn relocate(&self, root: &mut Node, is_move: bool, meter: &Meter) -> Result<(), String> {
        let name = if is_move { "move" } else { "copy" };
        let Some(from) = self.from.as_deref() else {
            return Err(format!(
                "{name} operation failed to decode from: operation, missing from field: missing value"
            ));
        };
        let Some(place) = find(root, from) else {
            return Err(format!(
                "{name} operation does not apply: doc is missing from path: {from}: missing value"
            ));
        };
        let key = place.key.clone();
        let value = if is_move {
            take(place).map_err(|error| format!("error in move for path: '{key}': {error}"))?
        } else {
            read(&place).map_err(|error| format!("error in copy for from: '{from}': {error}"))?
        };
        let path = self.path(&format!("{name} operation failed to decode path"))?;
        meter.take_node(&value, steps(Some(path)))?;
        let Some(place) = find(root, path) else {
            return Err(format!(
                "{name} operation does not apply: doc is missing destination path: {path}: missing value"
            ));
        };
        insert(place, value).map_err(|error| match is_move {
            true => format!("error in move for path: '{path}': {error}"),
            false => format!("error while adding value during copy: {error}"),
        })
    }

    fn test(&self, root: &mut Node) -> Result<(), String> {
        let path = self.path("test operation failed to decode path")?;
        let failed = || format!("testing value {path} failed: test failed");
        let wanted = self.value.clone().unwrap_or(Value::Null);
        let have = if path.is_empty() {
            to_json(root)?
        } else {
            let Some(place) = find(root, path) else {
                return Err(format!("test operation does not apply: is missing path: {path}: missing value"));
            };
            let node = read(&place).map_err(|error| format!("error in test for path: '{path}': {error}"))?;
            to_json(&node)?
        };
        if json_equal(&have, &wanted) { Ok(()) } else { Err(failed()) }
    }
}

/// The levels of an object that a path leads through.
fn steps(path: Option<&str>) -> usize {
    path.map_or(0, |path| path.matches('/').count())
}

/// Equality of JSON values, numbers by value.
fn json_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| json_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| json_equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Replaces a node, remembering what it replaced.
fn overwrite(slot: &mut Node, value: Node) {
    let origin = slot.origin | WRITTEN;
    *slot = value;
    slot.origin = origin;
}

fn insert(PatchTarget { container, key }: PatchTarget<'_>, value: Node) -> Result<(), String> {
    match &mut container.content {
        Content::Seq(items) if key == "-" => items.push(value),
        Content::Seq(items) => {
            let number: i64 = key.parse().map_err(|_| {
                format!(
                    "value was not a proper array index: '{key}': strconv.Atoi: parsing {}: invalid syntax",
                    quote(&key)
                )
            })?;
            let length = items.len() as i64 + 1;
            let index = if number < 0 { number + length } else { number };
            if index < 0 || index >= length {
                return Err(format!("Unable to access invalid index: {number}: invalid index referenced"));
            }
            items.insert(index as usize, value);
        }
        Content::Map(pairs) => match pairs.iter_mut().find(|(k, _)| k.value() == key) {
            Some((_, slot)) => overwrite(slot, value),
            None => pairs.push((from_json(&Value::String(key)), value)),
        },
        Content::Scalar(_) => return Err("unknown object type".to_owned()),
    }
    Ok(())
}

fn take(PatchTarget { container, key }: PatchTarget<'_>) -> Result<Node, String> {
    let at = child_at(container, &key)?;
    match (&mut container.content, at) {
        (Content::Seq(items), Some(at)) => Ok(items.remove(at)),
        (Content::Map(pairs), Some(at)) => Ok(pairs.remove(at).1),
        _ => Err(format!("Unable to remove nonexistent key: {key}: missing value")),
    }
}

fn read(place: &PatchTarget<'_>) -> Result<Node, String> {
    let at = child_at(place.container, &place.key)?;
    Ok(match (&place.container.content, at) {
        (Content::Seq(items), Some(at)) => items[at].clone(),
        (Content::Map(pairs), Some(at)) => pairs[at].1.clone(),
        _ => Node::null(),
    })
}
