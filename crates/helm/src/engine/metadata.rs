//! `.Chart`: a map with the field names of Go's struct in Helm 4, the struct itself in Helm 3.

use std::{borrow::Cow, collections::BTreeMap};

use tiphys_gotemplate::{Map, MapType, Numbers, Object, Value};

use crate::{
    Compat,
    chart::{Dependency, Maintainer, Metadata},
};

/// `.Chart` of a chart.
pub(crate) fn chart_value(metadata: &Metadata, is_root: bool, compat: Compat) -> Value {
    let map = Map::new();
    for (name, value) in fields(metadata) {
        map.insert(name, value);
    }
    map.insert("IsRoot", is_root);
    // Nobody who shares a struct sees what is in it.
    map.share();
    match compat {
        Compat::Helm4 => Value::Map(map),
        Compat::Helm3 => Value::object(ChartStruct { fields: map }),
    }
}

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::list(items.into_iter().collect())
}

fn texts(items: &[String]) -> Value {
    list(items.iter().map(Value::string))
}

fn annotations(annotations: Option<&BTreeMap<String, String>>) -> Value {
    let Some(annotations) = annotations else { return Value::Map(Map::nil(MapType::String)) };
    let map = Map::with_type(MapType::String);
    for (key, value) in annotations {
        map.insert(key.as_str(), value.as_str());
    }
    Value::Map(map)
}

fn fields(metadata: &Metadata) -> [(&'static str, Value); 17] {
    [
        ("Name", Value::string(&metadata.name)),
        ("Home", Value::string(&metadata.home)),
        ("Sources", texts(&metadata.sources)),
        ("Version", Value::string(&metadata.version)),
        ("Description", Value::string(&metadata.description)),
        ("Keywords", texts(&metadata.keywords)),
        ("Maintainers", list(metadata.maintainers.iter().map(maintainer))),
        ("Icon", Value::string(&metadata.icon)),
        ("APIVersion", Value::string(&metadata.api_version)),
        ("Condition", Value::string(&metadata.condition)),
        ("Tags", Value::string(&metadata.tags)),
        ("AppVersion", Value::string(&metadata.app_version)),
        ("Deprecated", Value::Bool(metadata.deprecated)),
        ("Annotations", annotations(metadata.annotations.as_ref())),
        ("KubeVersion", Value::string(&metadata.kube_version)),
        ("Dependencies", list(metadata.dependencies.iter().map(dependency))),
        ("Type", Value::string(&metadata.chart_type)),
    ]
}

fn maintainer(maintainer: &Maintainer) -> Value {
    let map = Map::new();
    map.insert("Name", maintainer.name.as_str());
    map.insert("Email", maintainer.email.as_str());
    map.insert("URL", maintainer.url.as_str());
    Value::Map(map)
}

fn dependency(dependency: &Dependency) -> Value {
    let map = Map::new();
    for (name, text) in [
        ("Name", &dependency.name),
        ("Version", &dependency.version),
        ("Repository", &dependency.repository),
        ("Condition", &dependency.condition),
        ("Alias", &dependency.alias),
    ] {
        map.insert(name, text.as_str());
    }
    map.insert("Tags", texts(&dependency.tags));
    map.insert("Enabled", dependency.enabled);
    let imports = dependency.import_values.iter().map(|value| Value::from_json(value, Numbers::Float64));
    map.insert("ImportValues", list(imports));
    Value::Map(map)
}

/// Go's anonymous struct around `chart.Metadata`.
struct ChartStruct {
    fields: Map,
}

impl Object for ChartStruct {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("struct { chart.Metadata; IsRoot bool }")
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields.get(name)
    }

    fn field_names(&self) -> &[&'static str] {
        &[
            "Name",
            "Home",
            "Sources",
            "Version",
            "Description",
            "Keywords",
            "Maintainers",
            "Icon",
            "APIVersion",
            "Condition",
            "Tags",
            "AppVersion",
            "Deprecated",
            "Annotations",
            "KubeVersion",
            "Dependencies",
            "Type",
            "IsRoot",
        ]
    }

    fn json_names(&self) -> &[&'static str] {
        &[
            "name",
            "home",
            "sources",
            "version",
            "description",
            "keywords",
            "maintainers",
            "icon",
            "apiVersion",
            "condition",
            "tags",
            "appVersion",
            "deprecated",
            "annotations",
            "kubeVersion",
            "dependencies",
            "type",
            "IsRoot",
        ]
    }

    /// Fields under their names in `Chart.yaml`, empty ones left out.
    fn to_json(&self) -> Value {
        let map = Map::new();
        for (name, json) in self.field_names().iter().zip(self.json_names()) {
            let value = self.fields.get(name).unwrap_or_default();
            match *name {
                "IsRoot" => map.insert(*json, value),
                _ if !value.truth() => {}
                "Maintainers" => map.insert(*json, json_items(&value, &["Name"])),
                "Dependencies" => map.insert(*json, json_items(&value, &["Name", "Repository"])),
                _ => map.insert(*json, value),
            }
        }
        Value::Map(map)
    }
}

/// Structs in a list, for JSON. A field that is empty is left out unless it is always there.
fn json_items(items: &Value, always: &[&str]) -> Value {
    let item = |item: &Value| {
        let map = Map::new();
        for entry in item.as_map().iter().flat_map(|fields| fields.entries().to_vec()) {
            let name = match entry.key.as_str() {
                "ImportValues" => "import-values".to_owned(),
                name => name.to_ascii_lowercase(),
            };
            if entry.value.truth() || always.contains(&entry.key.as_str()) {
                map.insert(name, entry.value);
            }
        }
        Value::object(JsonItem { fields: map })
    };
    list(items.as_list().iter().flat_map(|items| items.snapshot()).map(|value| item(&value)))
}

/// A maintainer or dependency as JSON has it, under the names of `Chart.yaml`.
struct JsonItem {
    fields: Map,
}

impl Object for JsonItem {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("struct")
    }

    /// Those of both, in the order of each.
    fn json_names(&self) -> &[&'static str] {
        &[
            "name",
            "email",
            "url",
            "version",
            "repository",
            "condition",
            "tags",
            "enabled",
            "import-values",
            "alias",
        ]
    }

    fn to_json(&self) -> Value {
        Value::Map(self.fields.clone())
    }
}
