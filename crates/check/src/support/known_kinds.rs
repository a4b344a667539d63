//! What is known of kinds whose definitions a repository does not hold: the fields of widely used operators'
//! custom resources, so that a slip in them is found without the cluster.

use std::sync::LazyLock;

use tiphys_schema::StructuralSchema;
use tiphys_value::{GroupVersionKind, Value, json};

const KNOWN: &str = include_str!("../../data/custom-kinds.txt");

/// The kinds of the table, each with where its fields begin.
static KINDS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let mut kinds = Vec::new();
    let mut rest = KNOWN;
    while let Some((line, after)) = rest.split_once('\n') {
        if !line.starts_with(['#', ' ']) {
            kinds.push((line, after));
        }
        rest = after;
    }
    kinds
});

/// The schema of a kind that is known; nothing if it is not.
pub(crate) fn schema(gvk: &GroupVersionKind) -> Option<StructuralSchema> {
    let (_, fields) = KINDS.iter().find(|(line, _)| is_of(line, gvk))?;
    let lines = fields.lines().take_while(|line| line.starts_with(' '));
    let mut lines = lines.filter_map(Line::read).peekable();
    let mut root = object(&mut lines, 1);
    root["properties"]["status"] = anything();
    Some(StructuralSchema::new(&root))
}

/// Whether the table has kinds of a group.
pub(crate) fn is_group(group: &str) -> bool {
    KINDS.iter().any(|(line, _)| line.split_once('/').is_some_and(|(own, _)| own == group))
}

/// The groups in which the table has a kind.
pub(crate) fn groups_of(kind: &str) -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter_map(move |(line, _)| {
        let (versions, kinds) = line.split_once(' ')?;
        let (group, _) = versions.split_once('/')?;
        kinds.split(',').any(|own| own == kind).then_some(group)
    })
}

/// Whether a line `group/version,version Kind,Kind` names a kind.
fn is_of(line: &str, gvk: &GroupVersionKind) -> bool {
    let Some((versions, kinds)) = line.split_once(' ') else { return false };
    let Some((group, versions)) = versions.split_once('/') else { return false };
    group == gvk.group
        && versions.split(',').any(|version| version == gvk.version)
        && kinds.split(',').any(|kind| kind == gvk.kind)
}

/// A field of the table.
struct Line {
    depth: usize,
    name: &'static str,
    is_required: bool,
    ty: &'static str,
}

impl Line {
    fn read(line: &'static str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let (name, ty) = text.split_once(' ')?;
        let known = name.trim_end_matches('!');
        Some(Self { depth: line.len() - text.len(), name: known, is_required: known != name, ty })
    }
}

/// An object with the fields of a depth.
fn object<I: Iterator<Item = Line>>(lines: &mut std::iter::Peekable<I>, depth: usize) -> Value {
    let (mut properties, mut required) = (tiphys_value::Map::new(), Vec::new());
    while let Some(line) = lines.next_if(|line| line.depth >= depth) {
        if line.is_required {
            required.push(Value::from(line.name));
        }
        let inner = line.ty.trim_start_matches('[');
        let mut schema = match inner {
            "o" => object(lines, depth + 1),
            other => scalar(other),
        };
        for _ in 0..line.ty.len() - inner.len() {
            schema = json!({"type": "array", "items": schema});
        }
        schema["nullable"] = true.into();
        properties.insert(line.name.to_owned(), schema);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn scalar(ty: &str) -> Value {
    match ty.split_at(1) {
        ("i", "") => json!({"type": "integer"}),
        ("n", "") => json!({"type": "number"}),
        ("b", "") => json!({"type": "boolean"}),
        ("s", "") => json!({"type": "string"}),
        ("s", values) => {
            let values: Vec<&str> = values.trim_matches(['(', ')']).split('|').collect();
            json!({"type": "string", "enum": values})
        }
        _ => anything(),
    }
}

fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gvk(group: &str, version: &str, kind: &str) -> GroupVersionKind {
        GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in KNOWN.lines().filter(|line| line.starts_with(' ')) {
            let read = Line::read(line).expect("name and type");
            let inner = read.ty.trim_start_matches('[');
            assert!(matches!(&inner[..1], "o" | "s" | "i" | "n" | "b" | "*"), "{line}");
        }
        for (line, _) in KINDS.iter() {
            let (api, kinds) = line.split_once(' ').expect("an API and its kinds");
            let (group, versions) = api.split_once('/').expect("a group and its versions");
            for (version, kind) in versions.split(',').flat_map(|v| kinds.split(',').map(move |k| (v, k))) {
                assert!(schema(&gvk(group, version, kind)).is_some(), "{line}");
            }
        }
    }

    #[test]
    fn fields_and_types_are_told_apart() {
        let schema = schema(&gvk("external-secrets.io", "v1", "ExternalSecret")).expect("is known");
        let mut object = json!({"spec": {"secretStoreRef": {"name": 1, "vault": "x"}, "data": null}});
        assert_eq!(schema.prune(&mut object), ["spec.secretStoreRef.vault"]);
        let errors = schema.validate(&object, None);
        assert_eq!(errors.0.len(), 1, "{errors:?}");
        assert!(super::schema(&gvk("external-secrets.io", "v1", "Secret")).is_none());
    }
}
