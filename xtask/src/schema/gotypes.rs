//! What OpenAPI does not say, from the struct tags of the Go sources: whether a field is a pointer (so that
//! an explicit zero is kept), whether it is written when empty, in which order fields stand, which of them
//! come from embedded structs, and the names of scalar types.

use std::{collections::HashMap, fs, path::Path};

use anyhow::Context;

/// One struct field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GoField {
    /// Its Go type is a pointer.
    pub pointer: bool,
    /// Tagged `omitempty`, which has no effect on structs.
    pub omitempty: bool,
    /// Tagged `omitzero`, which has.
    pub omitzero: bool,
}

/// Fields by package (`io.k8s.api.apps.v1`), struct and JSON name.
#[derive(Default)]
pub(super) struct GoTypes {
    fields: HashMap<String, HashMap<String, GoField>>,
    inlined: HashMap<String, Vec<String>>,
    members: HashMap<String, Vec<Member>>,
    /// Packages that name a scalar type, by that name.
    scalars: HashMap<String, Vec<String>>,
}

/// What stands in a struct, in order.
enum Member {
    /// A field: its JSON name and its Go type.
    Field(String, String),
    /// An embedded struct: its definition, and its name.
    Embedded(String, String),
}

impl GoTypes {
    /// A field of a type by its OpenAPI name, also when it comes from an embedded struct.
    pub(super) fn field(&self, definition: &str, field: &str) -> Option<GoField> {
        if let Some(found) = self.fields.get(definition).and_then(|fields| fields.get(field)) {
            return Some(*found);
        }
        let embedded = self.inlined.get(definition)?;
        embedded.iter().find_map(|inner| self.field(inner, field))
    }

    /// The JSON names of a type's fields in the order of its struct.
    pub(super) fn order(&self, definition: &str) -> Vec<String> {
        let members = self.members.get(definition).map_or(&[][..], Vec::as_slice);
        let names = members.iter().flat_map(|member| match member {
            Member::Field(name, _) => vec![name.clone()],
            Member::Embedded(_, name) if name == "TypeMeta" => {
                vec!["kind".to_owned(), "apiVersion".to_owned()]
            }
            Member::Embedded(inner, _) => self.order(inner),
        });
        names.collect()
    }

    /// The embedded structs through which a type has a field, outermost first.
    pub(super) fn through(&self, definition: &str, field: &str) -> Option<Vec<String>> {
        let members = self.members.get(definition)?;
        members.iter().find_map(|member| match member {
            Member::Field(name, _) => (name == field).then(Vec::new),
            Member::Embedded(inner, name) => {
                let mut path = self.through(inner, field)?;
                path.insert(0, name.clone());
                Some(path)
            }
        })
    }

    /// The Go type of a field if it is, or consists of, a named scalar: `v1.SecretType`, `[]v1.KeyUsage`.
    pub(super) fn scalar(&self, definition: &str, field: &str) -> Option<String> {
        let members = self.members.get(definition)?;
        let own = definition.rsplit_once('.')?.0;
        members.iter().find_map(|member| match member {
            Member::Field(name, ty) if name == field => self.type_text(own, ty),
            Member::Field(..) => None,
            Member::Embedded(inner, _) => self.scalar(inner, field),
        })
    }

    fn type_text(&self, own: &str, ty: &str) -> Option<String> {
        let ty = ty.trim_start_matches('*');
        let at = ty.rfind(']').map_or(0, |at| at + 1);
        let (prefix, name) = ty.split_at(at);
        let name = name.trim_start_matches('*');
        let (version, name) = match name.split_once('.') {
            // An alias such as `corev1` ends in the version.
            Some((alias, name)) => (alias.rfind('v').map(|at| &alias[at..])?, name),
            None => (own.rsplit('.').next()?, name),
        };
        let known = self.scalars.get(name)?;
        let is_known = known.iter().any(|package| package.rsplit('.').next() == Some(version));
        is_known.then(|| format!("{prefix}{version}.{name}"))
    }

    fn read_source(&mut self, package: &str, source: &str) {
        let mut current: Option<String> = None;
        for line in source.lines() {
            if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
                current = Some(format!("{package}.{name}"));
            } else if let Some((name, _)) = line
                .strip_prefix("type ")
                .and_then(|rest| rest.split_once(' '))
                .filter(|(_, ty)| matches!(ty.trim(), "string" | "int32" | "int64" | "bool"))
            {
                self.scalars.entry(name.to_owned()).or_default().push(package.to_owned());
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
            let shown = ty.rsplit('.').next().unwrap_or(ty).to_owned();
            let members = self.members.entry(definition.to_owned()).or_default();
            members.push(Member::Embedded(local.clone(), shown));
            self.inlined.entry(definition.to_owned()).or_default().push(local);
            return;
        }
        let members = self.members.entry(definition.to_owned()).or_default();
        members.push(Member::Field(name.to_owned(), ty.to_owned()));
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
pub(super) fn read(modules: &Path, version: &str) -> anyhow::Result<GoTypes> {
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
        assert_eq!(types.order("p.A"), ["m", "n"]);
        assert_eq!(types.through("p.A", "m"), Some(vec!["B".to_owned()]));
    }

    #[test]
    fn names_scalars_as_go_does() {
        let mut types = GoTypes::default();
        let source = "type Kind string\ntype A struct {\n\tK Kind `json:\"k\"`\n\tL []Kind `json:\"l\"`\n\tS string `json:\"s\"`\n}\n";
        types.read_source("io.p.v1", source);
        assert_eq!(types.scalar("io.p.v1.A", "k").as_deref(), Some("v1.Kind"));
        assert_eq!(types.scalar("io.p.v1.A", "l").as_deref(), Some("[]v1.Kind"));
        assert_eq!(types.scalar("io.p.v1.A", "s"), None);
    }
}
