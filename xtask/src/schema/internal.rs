//! The structs inside the server that its messages show: their fields have no JSON names, so Go prints the
//! names of the Go fields. Derived from the Go sources of the internal types and of the version v1 beside
//! them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::Context;

/// The structs that messages show; everything inside them is derived too.
const ROOTS: [&str; 3] = ["PodTemplateSpec", "PersistentVolumeClaimSpec", "PersistentVolumeSource"];

/// Structs by name: the Go name of each field (empty if embedded), its JSON name if it has a tag, its type.
#[derive(Default)]
struct Source {
    structs: BTreeMap<String, Vec<(String, String, String)>>,
    named: BTreeMap<String, String>,
}

impl Source {
    fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let (mut source, mut current) = (Self::default(), None);
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("type ") {
                match rest.split_once(' ') {
                    Some((name, "struct {")) => current = Some(name.to_owned()),
                    Some((name, ty)) => drop(source.named.insert(name.to_owned(), ty.trim().to_owned())),
                    None => {}
                }
            } else if line == "}" {
                current = None;
            } else if let Some(name) = &current {
                source.structs.entry(name.clone()).or_default().extend(field(line));
            }
        }
        Ok(source)
    }

    fn json_name(&self, of: &str, field: &str) -> Option<&str> {
        self.structs.get(of)?.iter().find_map(|(name, tag, ty)| match name == field {
            true => Some(tag.as_str()),
            false if name.is_empty() => self.json_name(ty, field),
            false => None,
        })
    }
}

fn field(line: &str) -> Option<(String, String, String)> {
    let code = line.split("//").next().unwrap_or_default();
    let tag = code.split_once("json:\"").and_then(|(_, rest)| rest.split(['"', ',']).next());
    let mut words = code.split('`').next().unwrap_or_default().split_whitespace();
    let (first, second) = (words.next()?, words.next());
    let tag = tag.unwrap_or_default().to_owned();
    Some(match second {
        Some(ty) => (first.to_owned(), tag, ty.to_owned()),
        None => (String::new(), tag, first.to_owned()),
    })
}

/// The table: `struct NAME`, then a line per field: Go name, JSON name in v1 (`^` before it: of the object
/// around), type; `+ TYPE` for an embedded struct.
///
/// # Errors
/// The sources are not there.
pub(super) fn table(modules: &Path, version: &str) -> anyhow::Result<String> {
    let root = modules.join("k8s.io");
    let own = Source::read(&root.join(format!("kubernetes@{version}/pkg/apis/core/types.go")))?;
    let api = format!("api@{}/core/v1/types.go", version.replacen("v1.", "v0.", 1));
    let v1 = Source::read(&root.join(api))?;
    let (mut queue, mut done) = (ROOTS.map(str::to_owned).to_vec(), BTreeSet::new());
    let mut text = String::new();
    while let Some(name) = queue.pop() {
        if !done.insert(name.clone()) {
            continue;
        }
        writeln!(text, "struct {name}")?;
        for (field, _, ty) in &own.structs[&name] {
            let (spelled, inner) = type_text(&own, ty);
            queue.extend(inner);
            let json = match v1.json_name(&name, field) {
                Some(json) => json.to_owned(),
                None => v1.json_name("PodSpec", field).map(|json| format!("^{json}")).unwrap_or_default(),
            };
            match field.is_empty() {
                true => writeln!(text, "+ {spelled}")?,
                false => writeln!(text, "{field} {json} {spelled}")?,
            }
        }
    }
    Ok(text)
}

/// A type in the words of the table, and the struct in it that has to be derived too.
fn type_text(own: &Source, ty: &str) -> (String, Option<String>) {
    for prefix in ["*", "[]"] {
        if let Some(rest) = ty.strip_prefix(prefix) {
            let (inner, needed) = type_text(own, rest);
            return (format!("{prefix}{inner}"), needed);
        }
    }
    if let Some((_, of)) = ty.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        let (inner, needed) = type_text(own, of);
        return (format!("map:{inner}"), needed);
    }
    if let Some(known) = own.named.get(ty) {
        return type_text(own, known);
    }
    match ty {
        "string" | "bool" => (ty.to_owned(), None),
        "int32" | "int64" | "int" | "intstr.IntOrString" => ("number".to_owned(), None),
        "types.UID" | "UID" => ("string".to_owned(), None),
        "resource.Quantity" => ("quantity".to_owned(), None),
        "metav1.Time" => ("time".to_owned(), None),
        other => match other.split_once('.') {
            Some((_, name)) => (format!("@{name}"), None),
            None => (other.to_owned(), Some(other.to_owned())),
        },
    }
}
