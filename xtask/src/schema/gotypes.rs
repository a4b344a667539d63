//! What OpenAPI does not say, from the struct tags of the Go sources: whether a field is a pointer
//! (so that an explicit zero is kept) and whether it is written when empty.

use std::{collections::HashMap, fs, path::Path};

use anyhow::Context;

/// One struct field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoField {
    /// Its Go type is a pointer.
    pub pointer: bool,
    /// Tagged `omitempty`, which has no effect on structs.
    pub omitempty: bool,
    /// Tagged `omitzero`, which has.
    pub omitzero: bool,
}

/// Fields by package (`io.k8s.api.apps.v1`), struct and JSON name.
#[derive(Default)]
pub struct GoTypes {
    fields: HashMap<String, HashMap<String, GoField>>,
    inlined: HashMap<String, Vec<String>>,
}

impl GoTypes {
    /// A field of a type by its OpenAPI name, also when it comes from an embedded struct.
    pub fn field(&self, definition: &str, field: &str) -> Option<GoField> {
        if let Some(found) = self.fields.get(definition).and_then(|fields| fields.get(field)) {
            return Some(*found);
        }
        let embedded = self.inlined.get(definition)?;
        embedded.iter().find_map(|inner| self.field(inner, field))
    }

    fn read_source(&mut self, package: &str, source: &str) {
        let mut current: Option<String> = None;
        for line in source.lines() {
            if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
                current = Some(format!("{package}.{name}"));
            } else if line == "}" {
                current = None;
            } else if let Some(definition) = &current {
                self.read_field(package, definition, line.trim());
            }
        }
    }

    fn read_field(&mut self, package: &str, definition: &str, line: &str) {
        let Some((code, tag)) = line.split_once("`json:\"").filter(|_| !line.starts_with("//")) else {
            return;
        };
        let Some((tag, _)) = tag.split_once('"') else { return };
        let mut options = tag.split(',');
        let name = options.next().unwrap_or_default();
        let options: Vec<_> = options.collect();
        let ty = code.split_whitespace().last().unwrap_or_default();
        if name.is_empty() && options.contains(&"inline") {
            let local = format!("{package}.{}", ty.rsplit('.').next().unwrap_or(ty));
            self.inlined.entry(definition.to_owned()).or_default().push(local);
            return;
        }
        let field = GoField {
            pointer: ty.starts_with('*'),
            omitempty: options.contains(&"omitempty"),
            omitzero: options.contains(&"omitzero"),
        };
        self.fields.entry(definition.to_owned()).or_default().insert(name.to_owned(), field);
    }
}

/// Module (at `v0.MINOR.PATCH`), folder inside it, and the OpenAPI prefix of its packages.
const ROOTS: [(&str, &str, &str); 4] = [
    ("api", "", "io.k8s.api"),
    ("apimachinery", "pkg/apis/meta", "io.k8s.apimachinery.pkg.apis.meta"),
    ("apiextensions-apiserver", "pkg/apis", "io.k8s.apiextensions-apiserver.pkg.apis"),
    ("kube-aggregator", "pkg/apis", "io.k8s.kube-aggregator.pkg.apis"),
];

/// Reads the sources that belong to a Kubernetes version such as `v1.36.1`.
pub fn read(modules: &Path, version: &str) -> anyhow::Result<GoTypes> {
    let module_version = version.replacen("v1.", "v0.", 1);
    let mut types = GoTypes::default();
    for (module, folder, prefix) in ROOTS {
        let root = modules.join("k8s.io").join(format!("{module}@{module_version}")).join(folder);
        read_folder(&mut types, &root, prefix).with_context(|| format!("read {}", root.display()))?;
    }
    Ok(types)
}

fn read_folder(types: &mut GoTypes, folder: &Path, package: &str) -> anyhow::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            read_folder(types, &entry.path(), &format!("{package}.{name}"))?;
        } else if name.starts_with("types") && name.ends_with(".go") {
            types.read_source(package, &fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tags_and_embedded_structs() {
        let mut types = GoTypes::default();
        let source = "type A struct {\n\tB `json:\",inline\" protobuf:\"x\"`\n\tN *int32 `json:\"n,omitempty\"`\n}\n\
            type B struct {\n\tM string `json:\"m\"`\n\t// X int `json:\"x\"`\n}\n";
        types.read_source("p", source);
        assert_eq!(
            types.field("p.A", "n"),
            Some(GoField { pointer: true, omitempty: true, omitzero: false })
        );
        assert_eq!(types.field("p.A", "m"), Some(GoField::default()));
        assert_eq!(types.field("p.A", "x"), None);
    }
}
