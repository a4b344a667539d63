//! `cargo xtask custom-kinds write|check FOLDER`: the tables of custom kinds, from their definitions.
//!
//! FOLDER holds `CustomResourceDefinition` objects as YAML or JSON, in any number of files and folders. Of a
//! kind that several of them define, the table has what any of them accepts: operators of several versions
//! are in use. Of kinds that a `MutatingWebhookConfiguration` in the folder completes, no field is required.

mod core_types;
mod node;
mod rules;
mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, bail};
use core_types::CoreTypes;
use node::Node;
use serde_json::Value;
use text::Writer;

/// What to do with the tables.
#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Write the tables of all groups in the folder anew; those of other groups stay.
    Write(Args),
    /// Say which tables the definitions contradict.
    Check(Args),
}

/// Options of both.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder with definitions.
    folder: std::path::PathBuf,
}

const TABLES: &str = "crates/check/data/custom-kinds";

/// The kinds of a group, by version and kind.
type Kinds = BTreeMap<(String, String), Node>;

/// Writes the tables, or compares them.
///
/// # Errors
/// The folder or a table cannot be read or written, or a table is contradicted.
pub(crate) fn run(action: &Action) -> anyhow::Result<()> {
    let (Action::Write(args) | Action::Check(args)) = action;
    let tables = derive(&args.folder)?;
    if matches!(action, Action::Check(_)) {
        let is_other = |(group, table): &(&String, &String)| {
            fs::read_to_string(table_path(group)).ok().as_ref() != Some(*table)
        };
        let wrong: Vec<&str> = tables.iter().filter(is_other).map(|(group, _)| group.as_str()).collect();
        if wrong.is_empty() {
            println!("{} groups agree with {TABLES}", tables.len());
            return Ok(());
        }
        bail!("{TABLES} says otherwise of {}: run `cargo xtask custom-kinds write`", wrong.join(", "));
    }
    fs::create_dir_all(TABLES)?;
    for (group, table) in &tables {
        fs::write(table_path(group), table)?;
    }
    println!("{} groups written", tables.len());
    Ok(())
}

fn table_path(group: &str) -> std::path::PathBuf {
    Path::new(TABLES).join(format!("{group}.txt"))
}

/// The tables of the groups that a folder has definitions of.
fn derive(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = Found::default();
    found.add_folder(folder)?;
    anyhow::ensure!(!found.groups.is_empty(), "{} holds no definition", folder.display());
    Ok(found.tables())
}

/// What is in a folder.
#[derive(Default)]
struct Found {
    groups: BTreeMap<String, Kinds>,
    /// Plural names by group and kind.
    plurals: BTreeMap<(String, String), String>,
    /// Groups and plural names of what webhooks complete.
    completed: BTreeSet<(String, String)>,
}

impl Found {
    /// The tables of the groups.
    fn tables(self) -> BTreeMap<String, String> {
        let core = CoreTypes::new();
        let mut tables = BTreeMap::new();
        for (group, mut kinds) in self.groups {
            for ((_, kind), node) in &mut kinds {
                let plural = self.plurals.get(&(group.clone(), kind.clone()));
                if plural.is_some_and(|plural| self.completed.contains(&(group.clone(), plural.clone()))) {
                    node.require_nothing();
                }
            }
            kinds.retain(|_, node| node.has_fields());
            if !kinds.is_empty() {
                let table = Writer::new(&core).table(&group, &kinds);
                tables.insert(group, table);
            }
        }
        tables
    }

    fn add_folder(&mut self, folder: &Path) -> anyhow::Result<()> {
        let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                self.add_folder(&path)?;
                continue;
            }
            let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            if !matches!(extension.as_str(), "yaml" | "yml" | "json") {
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            if extension == "json" {
                self.add(&serde_json::from_str(&text).with_context(|| path.display().to_string())?);
                continue;
            }
            for (_, document) in tiphys_yaml::split_helm_manifests(&text) {
                match tiphys_yaml::from_yaml(document) {
                    Ok(value) => self.add(&value),
                    Err(error) => eprintln!("{}: {error}", path.display()),
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, object: &Value) {
        match object["kind"].as_str() {
            Some("CustomResourceDefinition") if object["apiVersion"] == "apiextensions.k8s.io/v1" => {
                self.add_definition(&object["spec"]);
            }
            Some("MutatingWebhookConfiguration") => self.add_webhooks(object),
            _ => {}
        }
    }

    fn add_definition(&mut self, spec: &Value) {
        let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let (Some(group), Some(kind)) = (text("/group"), text("/names/kind")) else { return };
        if let Some(plural) = text("/names/plural") {
            self.plurals.insert((group.clone(), kind.clone()), plural);
        }
        if spec["preserveUnknownFields"] == true {
            return;
        }
        let kinds = self.groups.entry(group).or_default();
        for version in spec["versions"].as_array().into_iter().flatten() {
            let (Some(name), Some(schema)) =
                (version["name"].as_str(), version.pointer("/schema/openAPIV3Schema"))
            else {
                continue;
            };
            let node = Node::of_object(schema);
            match kinds.entry((name.to_owned(), kind.clone())) {
                std::collections::btree_map::Entry::Occupied(mut known) => known.get_mut().widen(node),
                std::collections::btree_map::Entry::Vacant(free) => drop(free.insert(node)),
            }
        }
    }

    fn add_webhooks(&mut self, object: &Value) {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        for rule in list(&object["webhooks"]).iter().flat_map(|webhook| list(&webhook["rules"])) {
            for (group, plural) in list(&rule["apiGroups"]).iter().flat_map(|group| {
                list(&rule["resources"]).into_iter().map(move |plural| (group.clone(), plural))
            }) {
                if let (Some(group), Some(plural)) = (group.as_str(), plural.as_str()) {
                    self.completed.insert((group.to_owned(), plural.to_owned()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The table of a kind from the properties of its `spec` in several definitions.
    fn table(versions: &[Value]) -> String {
        let mut tables = found_in(versions).tables();
        tables.remove("shop.example.com").expect("a table of the group")
    }

    fn found_in(versions: &[Value]) -> Found {
        let mut found = Found::default();
        for spec in versions {
            let schema =
                json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}});
            found.add(&json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "spec": {
                    "group": "shop.example.com",
                    "names": {"kind": "Till", "plural": "tills"},
                    "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}],
                },
            }));
        }
        found
    }

    #[test]
    fn limits_stand_behind_types() {
        let spec = json!({"type": "object", "required": ["name", "mode"], "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z]+$"},
            "mode": {"type": "string", "enum": ["Fast", "Safe"], "default": "Safe"},
            "share": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
            "ports": {"type": "array", "maxItems": 8, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port"], "items": {"type": "object", "required": ["port"],
                "properties": {"port": {"type": "integer", "maximum": 65535, "minimum": 1}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "size": {"x-kubernetes-int-or-string": true},
        }});
        let expected = "\
shop.example.com/v1 Till
 spec o
  labels {s
  mode s(Fast|Safe) =Safe
  name! s1..63 /^[a-z]+$
  ports [^port:..8o
   port! i1..65535
  share n0<..
  size x
";
        assert_eq!(table(&[spec]), expected);
    }

    #[test]
    fn the_table_has_what_any_definition_accepts() {
        let older = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "maxLength": 20},
            "mode": {"type": "string", "enum": ["Fast"]},
            "port": {"type": "integer"},
        }});
        let newer = json!({"type": "object", "required": ["name", "tax"], "properties": {
            "name": {"type": "string", "maxLength": 40, "pattern": "^x"},
            "mode": {"type": "string", "enum": ["Safe"]},
            "port": {"x-kubernetes-int-or-string": true},
            "tax": {"type": "string"},
        }});
        let expected = "\
shop.example.com/v1 Till
 spec o
  mode s(Fast|Safe)
  name! s..40
  port x
  tax s
";
        assert_eq!(table(&[older, newer]), expected);
    }

    #[test]
    fn what_fields_ask_of_each_other_is_read_from_cel() {
        let rules = [
            "[has(self.cash), has(self.card)].filter(x, x == true).size() == 1",
            "self.kind == 'Card' ? has(self.card) : !has(self.card)",
            "!(has(self.a) && has(self.b))",
            "self.items.all(i, has(i.name))",
            "self.size() < 5 && self.total > self.paid",
            "self == oldSelf",
        ];
        let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
        let text = json!({"type": "string"});
        let item = json!({"type": "object", "properties": {"name": text, "note": text}});
        let spec = json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
            "kind": text, "cash": text, "card": text, "a": text, "b": text, "items": {"type": "array", "items": item},
        }});
        let expected = "\
shop.example.com/v1 Till
 spec o
  ? one card cash
  ? most a b
  ? if card -> kind=Card
  ? if kind=Card -> card
  a s
  b s
  card s
  cash s
  items [o
   ? some name
   name s
   note s
  kind s
";
        assert_eq!(table(&[spec]), expected);
    }

    #[test]
    fn types_of_kubernetes_are_only_named() {
        let text = json!({"type": "string"});
        let seconds = json!({"type": "integer", "format": "int64"});
        let spec = json!({"type": "object", "properties": {"tolerations": {"type": "array", "items": {
            "type": "object",
            "properties": {"effect": text, "key": text, "operator": text, "tolerationSeconds": seconds, "value": text},
        }}}});
        let table = table(&[spec]);
        assert!(table.contains("  tolerations [@api.core.v1.Toleration\n"), "{table}");
    }

    #[test]
    fn nothing_is_required_of_what_a_webhook_completes() {
        let text = json!({"type": "string"});
        let spec = json!({"type": "object", "required": ["name"], "properties": {"name": text}});
        let mut found = found_in(&[spec]);
        found.add(&json!({"kind": "MutatingWebhookConfiguration", "webhooks": [
            {"rules": [{"apiGroups": ["shop.example.com"], "resources": ["tills"]}]}]}));
        assert!(found.completed.contains(&("shop.example.com".to_owned(), "tills".to_owned())));
        let table = &found.tables()["shop.example.com"];
        assert_eq!(table, "shop.example.com/v1 Till\n spec o\n  name s\n");
    }
}
