//! `.Capabilities` and the type of `.Values`.

use std::{borrow::Cow, rc::Rc};

use tiphys_gocompat::strconv::quote;
use tiphys_gotemplate::{
    CallError, CallResult, Clock, Kind, Map, MapMethods, MapType, Object, Signature, Type, Value,
};

use crate::{
    Compat, Questions,
    capabilities::{Capabilities, GO_VERSION, KubeVersion},
};

/// Go's `common.Values` (`chartutil.Values` in Helm 3).
pub(crate) struct ValuesType(&'static str);

/// The type of `.Values` in Helm 4.
pub(crate) static VALUES_4: ValuesType = ValuesType("common.Values");
/// The type of `.Values` in Helm 3.
pub(crate) static VALUES_3: ValuesType = ValuesType("chartutil.Values");

impl MapMethods for ValuesType {
    fn type_name(&self) -> &'static str {
        self.0
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "YAML" | "AsMap" => Some(Signature::fixed(&[])),
            "Table" | "PathValue" => Some(Signature::fixed(&[Type::String])),
            _ => None,
        }
    }

    fn call(&self, map: &Map, _clock: &dyn Clock, name: &str, args: &[Value]) -> CallResult {
        let path = args.first().and_then(Value::as_str).unwrap_or_default();
        match name {
            "YAML" => Ok(Value::from(tiphys_yaml::to_yaml(&Value::Map(map.clone()).to_json()?))),
            "AsMap" if map.is_empty() => Ok(Value::Map(Map::new())),
            "AsMap" => Ok(Value::Map(map.as_unnamed())),
            "PathValue" if path.is_empty() => Err(CallError::new(match self.0 {
                "common.Values" => "YAML path cannot be empty",
                _ => "YAML path string cannot be zero length",
            })),
            "PathValue" => path_value(map, path),
            _ => Ok(Value::Map(match map.map_type() {
                MapType::Named(values) => table(map, path)?.as_named(values),
                _ => table(map, path)?,
            })),
        }
    }
}

/// The table at a path of keys joined by dots.
fn table(map: &Map, path: &str) -> Result<Map, CallError> {
    path.split('.').try_fold(map.clone(), |at, step| {
        at.get(step)
            .and_then(|below| below.as_map().cloned())
            .ok_or_else(|| CallError::new(format!("{} is not a table", quote(step))))
    })
}

/// The value at a path of keys joined by dots; tables are none.
fn path_value(map: &Map, path: &str) -> CallResult {
    let (above, key) = path.rsplit_once('.').map_or((None, path), |(above, key)| (Some(above), key));
    let value = above.map_or_else(|| Ok(map.clone()), |above| table(map, above)).ok();
    let is_table = |value: &Value| value.as_map().is_some_and(|map| map.map_type() == MapType::Any);
    let value = value.and_then(|table| table.get(key)).filter(|value| !is_table(value));
    value.ok_or_else(|| CallError::new(format!("{} is not a value", quote(key))))
}

fn package(compat: Compat) -> &'static str {
    match compat {
        Compat::Helm4 => "common",
        Compat::Helm3 => "chartutil",
    }
}

/// `.Capabilities`.
pub(crate) struct CapabilitiesObject {
    kube_version: Value,
    api_versions: Value,
    helm_version: Value,
    compat: Compat,
}

impl CapabilitiesObject {
    pub(crate) fn new(capabilities: &Capabilities, compat: Compat) -> Self {
        Self {
            kube_version: Value::object(KubeVersionObject {
                version: capabilities.kube_version.clone(),
                compat,
            }),
            api_versions: Value::object(VersionSet {
                versions: Rc::new(capabilities.api_versions.clone()),
                built_in: capabilities.built_in,
                questions: capabilities.questions.clone(),
                compat,
            }),
            helm_version: Value::object(BuildInfo {
                version: capabilities.helm_version,
                client: capabilities.kube_client_version,
            }),
            compat,
        }
    }
}

impl Object for CapabilitiesObject {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Owned(format!("*{}.Capabilities", package(self.compat)))
    }

    fn kind(&self) -> Kind {
        Kind::Pointer
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "KubeVersion" => Some(self.kube_version.clone()),
            "APIVersions" => Some(self.api_versions.clone()),
            "HelmVersion" => Some(self.helm_version.clone()),
            _ => None,
        }
    }

    fn field_names(&self) -> &[&'static str] {
        &["KubeVersion", "APIVersions", "HelmVersion"]
    }
}

struct KubeVersionObject {
    version: KubeVersion,
    compat: Compat,
}

impl Object for KubeVersionObject {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Owned(format!("{}.KubeVersion", package(self.compat)))
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Version" => Some(Value::string(&self.version.version)),
            "normalizedVersion" if self.compat == Compat::Helm4 => {
                Some(Value::string(&self.version.normalized))
            }
            "Major" => Some(Value::string(&self.version.major)),
            "Minor" => Some(Value::string(&self.version.minor)),
            _ => None,
        }
    }

    fn field_names(&self) -> &[&'static str] {
        match self.compat {
            Compat::Helm4 => &["Version", "normalizedVersion", "Major", "Minor"],
            Compat::Helm3 => self.json_names(),
        }
    }

    fn json_names(&self) -> &[&'static str] {
        &["Version", "Major", "Minor"]
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "String" | "GitVersion").then_some(Signature::fixed(&[]))
    }

    fn call(&self, _clock: &dyn Clock, name: &str, _args: &[Value]) -> CallResult {
        Ok(Value::string(match name {
            "GitVersion" => &self.version.version,
            _ => &self.version.normalized,
        }))
    }

    fn pointer_stringer(&self) -> Option<String> {
        Some(self.version.normalized.clone())
    }
}

struct VersionSet {
    versions: Rc<Vec<String>>,
    built_in: usize,
    questions: Questions,
    compat: Compat,
}

impl Object for VersionSet {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Owned(format!("{}.VersionSet", package(self.compat)))
    }

    fn kind(&self) -> Kind {
        Kind::Named
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Has").then_some(Signature::fixed(&[Type::String]))
    }

    fn call(&self, _clock: &dyn Clock, _name: &str, args: &[Value]) -> CallResult {
        let wanted = args.first().and_then(Value::as_str).unwrap_or_default();
        let at = self.versions.iter().position(|known| known == wanted);
        if at.is_none_or(|at| at >= self.built_in) {
            self.questions.record(wanted, at.is_some());
        }
        Ok(Value::Bool(at.is_some()))
    }

    fn content(&self) -> Option<Value> {
        self.questions.record(Questions::ALL, true);
        Some(Value::strings(self.versions.iter()))
    }
}

struct BuildInfo {
    version: &'static str,
    client: Option<&'static str>,
}

impl Object for BuildInfo {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("version.BuildInfo")
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Version" => Some(Value::string(self.version)),
            "GitCommit" | "GitTreeState" => Some(Value::string("")),
            "GoVersion" => Some(Value::string(GO_VERSION)),
            "KubeClientVersion" => self.client.map(Value::string),
            _ => None,
        }
    }

    fn field_names(&self) -> &[&'static str] {
        const NAMES: [&str; 5] = ["Version", "GitCommit", "GitTreeState", "GoVersion", "KubeClientVersion"];
        &NAMES[..if self.client.is_some() { 5 } else { 4 }]
    }

    fn json_names(&self) -> &[&'static str] {
        const NAMES: [&str; 3] = ["version", "go_version", "kube_client_version"];
        &NAMES[..if self.client.is_some() { 3 } else { 2 }]
    }

    fn to_json(&self) -> Value {
        let map = Map::new();
        map.insert("version", self.version);
        map.insert("go_version", GO_VERSION);
        if let Some(client) = self.client {
            map.insert("kube_client_version", client);
        }
        Value::Map(map)
    }
}
