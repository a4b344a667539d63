//! The table format of `data/*.txt`, written by `cargo xtask schema` and read here once.
//!
//! ```text
//! kubernetes v1.36.1
//! kind apps/v1 Deployment deployments deployment namespaced short=deploy categories=all verbs=get,list type=NAME
//! sub status verbs=get,patch gvk=apps/v1/Deployment
//! type io.k8s.api.core.v1.ContainerPort [atomic] [gvk=apps/v1/Deployment]
//! field protocol str allowed=SCTP,TCP,UDP default="TCP"
//! ```
//!
//! Types: `str bool i32 i64 f64 bytes time microtime quantity intstr any`, `@NAME`, `{T}` map, `{!T}` atomic
//! map, `[T]` atomic list, `[set T]`, `[map K1,K2 T]`. Spaces inside a type are written as `~`.

use std::{collections::HashMap, sync::Arc};

use tiphys_value::GroupVersionKind;

use crate::{Catalog, Definition, Field, Kind, ListKind, Subresource, Type};

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("schema table, line {line}: {reason}")]
pub(crate) struct TableError {
    line: usize,
    reason: String,
}

/// Reads a table.
pub(crate) fn parse(text: &str) -> Result<Catalog, TableError> {
    let names = text.lines().filter_map(|line| line.strip_prefix("type ")?.split(' ').next());
    let ids: HashMap<&str, u32> = names.zip(0..).collect();
    let mut reader = Reader { ids, version: String::new(), kinds: Vec::new(), definitions: Vec::new() };
    for (at, line) in text.lines().enumerate() {
        reader.line(line).map_err(|reason| TableError { line: at + 1, reason })?;
    }
    let definitions = reader.definitions.into_iter().map(Arc::new).collect();
    Ok(Catalog::new(reader.version, reader.kinds, definitions))
}

struct Reader<'a> {
    ids: HashMap<&'a str, u32>,
    version: String,
    kinds: Vec<Kind>,
    definitions: Vec<Definition>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "" | "#" => {}
            "kubernetes" => self.version = rest.to_owned(),
            "kind" => {
                let kind = self.kind(rest).ok_or("malformed kind")?;
                self.kinds.push(kind);
            }
            "sub" => {
                let sub = subresource(rest).ok_or("malformed subresource")?;
                self.kinds.last_mut().ok_or("subresource before a kind")?.subresources.push(sub);
            }
            "type" => self.definitions.push(definition(rest)),
            "field" => {
                let (name, mut field) = self.field(rest)?;
                let definition = self.definitions.last_mut().ok_or("field before a type")?;
                field.position = definition.fields.len();
                definition.fields.insert(name, field);
            }
            other => return Err(format!("unknown word {other:?}")),
        }
        Ok(())
    }

    fn kind(&self, rest: &str) -> Option<Kind> {
        let mut words = rest.split(' ');
        let (api_version, name) = (words.next()?, words.next()?);
        let (plural, singular, scope) = (words.next()?, words.next()?, words.next()?);
        let mut kind = Kind {
            gvk: GroupVersionKind::from_api_version(api_version, name),
            plural: plural.to_owned(),
            singular: singular.to_owned(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: scope == "namespaced",
            verbs: Vec::new(),
            subresources: Vec::new(),
            ty: Type::Any,
        };
        for word in words {
            let (key, value) = word.split_once('=')?;
            match key {
                "short" => kind.short_names = list(value),
                "categories" => kind.categories = list(value),
                "verbs" => kind.verbs = list(value),
                "type" => kind.ty = Type::Ref(*self.ids.get(value)?),
                _ => return None,
            }
        }
        Some(kind)
    }

    fn field(&self, rest: &str) -> Result<(String, Field), String> {
        let (head, default) = match rest.split_once(" default=") {
            Some((head, json)) => (head, Some(serde_json::from_str(json).map_err(|e| e.to_string())?)),
            None => (rest, None),
        };
        let mut words = head.split(' ');
        let name = words.next().ok_or("field without a name")?;
        let spelled = words.next().ok_or("field without a type")?;
        let mut field = Field { default, ..Field::plain(self.ty(spelled)?) };
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match key {
                "required" => field.required = true,
                "pointer" => field.pointer = true,
                "kept" => field.kept = true,
                "granular" => field.granular = true,
                "go" => field.go_type = Some(value.to_owned()),
                "via" => field.embedded = value.split('.').map(str::to_owned).collect(),
                "allowed" => field.allowed = list(value),
                "mergekey" => field.merge_key = Some(value.to_owned()),
                "strategy" => {
                    for strategy in value.split(',') {
                        match strategy {
                            "merge" => field.strategy.merge = true,
                            "retainKeys" => field.strategy.retain_keys = true,
                            "replace" => field.strategy.replace = true,
                            other => return Err(format!("unknown patch strategy {other:?}")),
                        }
                    }
                }
                other => return Err(format!("unknown attribute {other:?}")),
            }
        }
        Ok((name.to_owned(), field))
    }

    /// Reads a type; the table is ours, so its nesting is shallow.
    fn ty(&self, text: &str) -> Result<Type, String> {
        if let Some(name) = text.strip_prefix('@') {
            return self.ids.get(name).map(|id| Type::Ref(*id)).ok_or_else(|| format!("no type {name}"));
        }
        if let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let atomic = inner.starts_with('!');
            return Ok(Type::Map(Box::new(self.ty(inner.trim_start_matches('!'))?), atomic));
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (kind, item) = match inner.split_once('~') {
                Some(("set", item)) => (ListKind::Set, item),
                Some(("map", rest)) => {
                    let (keys, item) = rest.split_once('~').ok_or("map list without keys")?;
                    (ListKind::Map(list(keys)), item)
                }
                _ => (ListKind::Atomic, inner),
            };
            return Ok(Type::List(Box::new(self.ty(item)?), kind));
        }
        Ok(match text {
            "str" => Type::Str,
            "bool" => Type::Bool,
            "i32" => Type::I32,
            "i64" => Type::I64,
            "f64" => Type::F64,
            "bytes" => Type::Bytes,
            "time" => Type::Time,
            "microtime" => Type::MicroTime,
            "quantity" => Type::Quantity,
            "intstr" => Type::IntOrString,
            "any" => Type::Any,
            other => return Err(format!("unknown type {other:?}")),
        })
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn gvk(text: &str) -> Option<GroupVersionKind> {
    let (api_version, kind) = text.rsplit_once('/')?;
    Some(GroupVersionKind::from_api_version(api_version, kind))
}

fn subresource(rest: &str) -> Option<Subresource> {
    let mut words = rest.split(' ');
    let name = words.next()?.to_owned();
    let verbs = list(words.next()?.strip_prefix("verbs=")?);
    Some(Subresource { name, verbs, gvk: gvk(words.next()?.strip_prefix("gvk=")?)? })
}

fn definition(rest: &str) -> Definition {
    let mut words = rest.split(' ');
    let mut definition =
        Definition { name: words.next().unwrap_or_default().to_owned(), ..Definition::default() };
    for word in words {
        match word.split_once('=') {
            Some(("gvk", value)) => definition.gvk = gvk(value),
            _ => definition.atomic |= word == "atomic",
        }
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_construct() {
        let text = "kubernetes v1.99.0\n\
            kind apps/v1 D ds d namespaced short=x,y verbs=get,list type=a.D\n\
            sub status verbs=get gvk=apps/v1/D\n\
            type a.D atomic gvk=apps/v1/D\n\
            field ports [map~port,protocol~@a.D] required mergekey=port strategy=merge,retainKeys\n\
            field m {!str} default={\"a\": \"b c\"}\n\
            field g @a.D granular\n";
        let catalog = parse(text).expect("reads");
        let gvk = GroupVersionKind::new("apps", "v1", "D");
        let kind = catalog.kind(&gvk).expect("kind");
        assert_eq!((kind.short_names.len(), kind.subresources.len()), (2, 1));
        let ty = catalog.type_of(&gvk).expect("type");
        let ports = ty.field_info("ports").expect("field");
        assert!(ports.required && ports.strategy.merge && ports.strategy.retain_keys);
        let keys = vec!["port".to_owned(), "protocol".to_owned()];
        assert_eq!(ty.field("ports").and_then(|f| f.list_kind()), Some(&ListKind::Map(keys)));
        assert!(ty.is_atomic_object() && ty.field("m").is_some_and(|f| f.is_atomic_object()));
        assert!(ty.field("g").is_some_and(|f| !f.is_atomic_object()));
    }

    #[test]
    fn a_fault_names_its_line() {
        let error = parse("kubernetes v1\ntype a\nfield x nonsense\n").expect_err("fails");
        assert_eq!(error.to_string(), "schema table, line 3: unknown type \"nonsense\"");
    }
}
