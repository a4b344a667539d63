//! `resource.customizations`: health, ignored differences and more by kind, in one block or one key each
//! (Argo CD docs, "Resource Health" and "Diff Customization").

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tiphys_value::GroupVersionKind;

use super::{Reader, go_bool, parsed};
use crate::{IgnoreDifference, glob};

const BLOCK: &str = "resource.customizations";
const PREFIX: &str = "resource.customizations.";

/// What is set for one kind or for all kinds of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customization {
    /// Lua that tells the health.
    pub health_lua: String,
    /// Key in `argocd-cm` that the Lua stands at.
    pub health_key: String,
    /// The Lua may use all libraries.
    pub use_open_libs: bool,
    /// Actions on live objects.
    pub actions: Option<KindActions>,
    /// Differences that do not count; group and kind are those of the pattern.
    pub ignore_differences: Option<IgnoreDifference>,
    /// Changes that cause no new look.
    pub ignore_resource_updates: Option<IgnoreDifference>,
    /// Fields whose values are of a known type.
    pub known_type_fields: Vec<KnownTypeField>,
}

/// Actions on live objects of a kind (Argo CD docs, "Resource Actions").
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KindActions {
    /// Lua that tells which actions an object offers.
    #[serde(rename = "discovery.lua")]
    pub discovery_lua: String,
    /// The actions.
    pub definitions: Vec<ActionDefinition>,
    /// The built-in actions of the kind are offered, too.
    #[serde(rename = "mergeBuiltinActions")]
    pub merge_builtin_actions: bool,
}

/// An action on live objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ActionDefinition {
    /// Name.
    pub name: String,
    /// Lua that returns the object as it should become, or a list of objects with what to do with each.
    #[serde(rename = "action.lua")]
    pub action_lua: String,
}

/// A field of a custom resource that holds a value of a known type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KnownTypeField {
    /// Path of the field, with dots.
    pub field: String,
    /// Type, such as `core/Quantity`.
    #[serde(rename = "type")]
    pub type_name: String,
}

/// Everything that is set, by `group/Kind` or, for the core group, `Kind`; both may hold globs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customizations {
    entries: BTreeMap<String, Customization>,
}

impl Customizations {
    /// The entries by pattern.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Customization)> {
        self.entries.iter().map(|(pattern, entry)| (pattern.as_str(), entry))
    }

    /// The entry whose Lua tells the health of a kind: that of the very kind, else that of the longest
    /// pattern that matches. (Argo CD takes any pattern that matches.)
    pub fn health_of(&self, gvk: &GroupVersionKind) -> Option<&Customization> {
        let key = key_of(&gvk.group, &gvk.kind);
        let has_lua = |entry: &&Customization| !entry.health_lua.is_empty();
        let exact = self.entries.get(&key).filter(has_lua);
        exact.or_else(|| {
            let fits = self
                .entries
                .iter()
                .filter(|(pattern, entry)| !entry.health_lua.is_empty() && glob::matches(pattern, &key));
            fits.max_by_key(|(pattern, _)| pattern.len()).map(|(_, entry)| entry)
        })
    }

    /// The actions of a kind; patterns have none.
    pub fn actions_of(&self, gvk: &GroupVersionKind) -> Option<&KindActions> {
        self.entries.get(&key_of(&gvk.group, &gvk.kind))?.actions.as_ref()
    }

    /// The differences that do not count anywhere, as rules of an Application.
    pub fn ignore_differences(&self) -> Vec<IgnoreDifference> {
        self.entries.values().filter_map(|entry| entry.ignore_differences.clone()).collect()
    }

    /// The changes that cause no new look, as rules of an Application.
    pub fn ignore_resource_updates(&self) -> Vec<IgnoreDifference> {
        self.entries.values().filter_map(|entry| entry.ignore_resource_updates.clone()).collect()
    }

    /// The fields of known types of a kind.
    pub fn known_type_fields(&self, gvk: &GroupVersionKind) -> &[KnownTypeField] {
        let entry = self.entries.get(&key_of(&gvk.group, &gvk.kind));
        entry.map(|entry| entry.known_type_fields.as_slice()).unwrap_or_default()
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn key_of(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") }
}

/// An entry of the block form.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BlockEntry {
    #[serde(rename = "health.lua")]
    health_lua: String,
    #[serde(rename = "health.lua.useOpenLibs")]
    use_open_libs: bool,
    actions: String,
    #[serde(rename = "ignoreDifferences")]
    ignore_differences: Option<Value>,
    #[serde(rename = "ignoreResourceUpdates")]
    ignore_resource_updates: Option<Value>,
    #[serde(rename = "knownTypeFields")]
    known_type_fields: Vec<KnownTypeField>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Customizations {
    let mut all = Customizations::default();
    let block: BTreeMap<String, BlockEntry> = reader.yaml(BLOCK).unwrap_or_default();
    for (pattern, entry) in block {
        let mut rule_of = |given: Option<Value>| {
            let read = given.map_or(Ok(None), |given| block_rule(&given, &pattern));
            read.unwrap_or_else(|message| {
                reader.fault(BLOCK, format!("{pattern}: {message}"));
                None
            })
        };
        let ignore_differences = rule_of(entry.ignore_differences);
        let ignore_resource_updates = rule_of(entry.ignore_resource_updates);
        let actions = actions(&entry.actions).unwrap_or_else(|message| {
            reader.fault(BLOCK, format!("{pattern}: actions: {message}"));
            None
        });
        let read = Customization {
            health_key: if entry.health_lua.is_empty() { String::new() } else { BLOCK.to_owned() },
            health_lua: entry.health_lua,
            use_open_libs: entry.use_open_libs,
            actions,
            ignore_differences,
            ignore_resource_updates,
            known_type_fields: entry.known_type_fields,
        };
        all.entries.insert(pattern, read);
    }
    for key in reader.keys(PREFIX) {
        if let Err(message) = split_key(&mut all, reader, &key) {
            reader.fault(&key, message);
        }
    }
    all
}

/// Actions, a text of YAML; an empty one is none.
fn actions(text: &str) -> Result<Option<KindActions>, String> {
    parsed(text)
}

/// A rule of the block form: a text of YAML, or the mapping itself.
fn block_rule(given: &Value, pattern: &str) -> Result<Option<IgnoreDifference>, String> {
    match given {
        Value::String(text) => rule(text, pattern),
        Value::Null => Ok(None),
        other => of_pattern(serde_json::from_value(other.clone()).map_err(|e| e.to_string())?, pattern),
    }
}

fn rule(text: &str, pattern: &str) -> Result<Option<IgnoreDifference>, String> {
    let rule: Option<IgnoreDifference> = parsed(text)?;
    rule.map_or(Ok(None), |rule| of_pattern(rule, pattern))
}

fn of_pattern(mut rule: IgnoreDifference, pattern: &str) -> Result<Option<IgnoreDifference>, String> {
    let (group, kind) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    rule.group = group.to_owned();
    rule.kind = kind.to_owned();
    Ok(Some(rule))
}

/// A key of its own: `resource.customizations.<what>.<group_Kind>`.
fn split_key(all: &mut Customizations, reader: &mut Reader<'_>, key: &str) -> Result<(), String> {
    let rest = key.strip_prefix(PREFIX).unwrap_or_default();
    let Some((what, group_kind)) = rest.split_once('.') else {
        return Err("is not of the form resource.customizations.<what>.<group_Kind>".into());
    };
    let pattern = pattern_of(group_kind)?;
    let text = reader.data.get(key).cloned().unwrap_or_default();
    let entry = all.entries.entry(pattern.clone()).or_default();
    match what {
        "health" => {
            entry.health_lua = text;
            entry.health_key = key.to_owned();
        }
        "useOpenLibs" => {
            entry.use_open_libs =
                go_bool(text.trim()).ok_or_else(|| format!("{text:?} is neither \"true\" nor \"false\""))?;
        }
        "actions" => entry.actions = actions(&text)?,
        "ignoreDifferences" => entry.ignore_differences = rule(&text, &pattern)?,
        "ignoreResourceUpdates" => entry.ignore_resource_updates = rule(&text, &pattern)?,
        "knownTypeFields" => entry.known_type_fields = parsed(&text)?,
        other => return Err(format!("there is no customization of the type {other:?}")),
    }
    Ok(())
}

/// `group_Kind` as a pattern; `all` stands for every kind of every group.
fn pattern_of(group_kind: &str) -> Result<String, String> {
    match group_kind.split('_').collect::<Vec<_>>()[..] {
        ["all"] => Ok("*/*".into()),
        [kind] if !kind.is_empty() => Ok(kind.to_owned()),
        [group, kind] => Ok(format!("{group}/{kind}")),
        _ => Err(format!("{group_kind:?} is not of the form <group>_<Kind> or <Kind>")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ArgoSettings;

    fn read(pairs: &[(&str, &str)]) -> ArgoSettings {
        let map = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ArgoSettings::read(&map, &BTreeMap::new())
    }

    fn lua(settings: &ArgoSettings, group: &str, kind: &str) -> Option<String> {
        let entry = settings.customizations.health_of(&GroupVersionKind::new(group, "v1", kind));
        entry.map(|entry| entry.health_lua.clone())
    }

    #[test]
    fn the_very_kind_comes_before_patterns_and_the_longest_pattern_first() {
        let settings = read(&[
            ("resource.customizations.health.all", "return 'all'"),
            ("resource.customizations.health.*.example.org_*", "return 'group'"),
            ("resource.customizations.health.db.example.org_Cluster", "return 'kind'"),
            ("resource.customizations.health.ConfigMap", "return 'core'"),
        ]);
        assert_eq!(lua(&settings, "db.example.org", "Cluster").as_deref(), Some("return 'kind'"));
        assert_eq!(lua(&settings, "db.example.org", "Backup").as_deref(), Some("return 'group'"));
        assert_eq!(lua(&settings, "apps", "Deployment").as_deref(), Some("return 'all'"));
        assert_eq!(lua(&settings, "", "ConfigMap").as_deref(), Some("return 'core'"));
        assert_eq!(lua(&settings, "", "Secret"), None, "all means every kind that has a group");
    }

    #[test]
    fn both_forms_are_read_and_keys_of_their_own_win() {
        let settings = read(&[
            (
                "resource.customizations",
                "example.org/A:\n  health.lua: return {}\n  health.lua.useOpenLibs: true\n  ignoreDifferences: |\n    jsonPointers: [/spec/x]\n",
            ),
            ("resource.customizations.ignoreDifferences.apps_Deployment", "jqPathExpressions: ['.spec.x']\n"),
            (
                "resource.customizations.knownTypeFields.example.org_A",
                "- {field: spec.cpu, type: core/Quantity}\n",
            ),
        ]);
        assert_eq!(settings.faults, []);
        let entry =
            settings.customizations.health_of(&GroupVersionKind::new("example.org", "v1", "A")).unwrap();
        assert!(entry.use_open_libs && entry.health_key == "resource.customizations");
        let rules = settings.customizations.ignore_differences();
        assert_eq!((rules[0].group.as_str(), rules[0].kind.as_str()), ("apps", "Deployment"));
        assert_eq!(rules[1].json_pointers, ["/spec/x"]);
        assert_eq!(entry.known_type_fields[0].type_name, "core/Quantity");
    }

    #[test]
    fn wrong_keys_are_named() {
        let settings = read(&[
            ("resource.customizations.healt.example.org_A", "return {}"),
            ("resource.customizations.health.a_b_c", "return {}"),
            ("resource.customizations.useOpenLibs.example.org_A", "maybe"),
        ]);
        let texts: Vec<String> = settings.faults.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(
            texts.iter().any(|text| text.contains("no customization of the type \"healt\"")),
            "{texts:?}"
        );
    }
}
