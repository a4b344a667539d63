//! What templates see as `.`, for each chart.

use smol_str::SmolStr;
use tiphys_gotemplate::{Entry, List, Map, MapType, Value};

use super::{
    files::Files,
    metadata::chart_value,
    objects::{CapabilitiesObject, VALUES_3, VALUES_4},
};
use crate::{
    Chart, Compat, RenderOptions,
    capabilities::Capabilities,
    chart::ChartFile,
    origins::Trace,
    values::{Table, Val},
};

/// A template with what it is rendered with.
pub(crate) struct Renderable<'a> {
    /// Full name, from the top chart's name on.
    pub(crate) name: String,
    pub(crate) file: &'a ChartFile,
    /// `.`, shared by all templates of a chart.
    pub(crate) dot: Map,
    /// `.Template.BasePath`.
    pub(crate) base_path: String,
}

/// What all charts of a rendering share.
pub(crate) struct Roots {
    values: Value,
    release: Value,
    capabilities: Value,
    compat: Compat,
}

impl Roots {
    pub(crate) fn new(
        values: &Table,
        capabilities: &Capabilities,
        options: &RenderOptions,
        trace: Option<&mut Trace>,
    ) -> Self {
        let compat = options.compat;
        let release = Map::new();
        release.insert("Name", options.release_name.as_str());
        release.insert("Namespace", options.namespace.as_str());
        release.insert("IsUpgrade", options.is_upgrade);
        release.insert("IsInstall", !options.is_upgrade);
        release.insert("Revision", Value::Int(1));
        release.insert("Service", "Helm");
        Self {
            values: Converter { trace }.table(values, values_type(compat), 0),
            release: Value::Map(release),
            capabilities: Value::object(CapabilitiesObject::new(capabilities, compat)),
            compat,
        }
    }
}

fn values_type(compat: Compat) -> MapType {
    MapType::Named(match compat {
        Compat::Helm4 => &VALUES_4,
        Compat::Helm3 => &VALUES_3,
    })
}

/// From values to the executor's values, which all templates share, giving every one an origin if origins are
/// traced.
struct Converter<'a> {
    trace: Option<&'a mut Trace>,
}

impl Converter<'_> {
    fn table(&mut self, table: &Table, kind: MapType, origin: u32) -> Value {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            let below = self.trace.as_deref_mut().map_or(0, |trace| trace.child(origin, key));
            entries.push(Entry {
                key: SmolStr::from(key.clone()),
                value: self.value(value, below),
                origin: below,
            });
        }
        Value::Map(Map::from_shared(kind, entries))
    }

    fn value(&mut self, value: &Val, origin: u32) -> Value {
        match value {
            Val::Null => Value::Nil,
            Val::Bool(bool) => Value::Bool(*bool),
            Val::Int(int) => Value::Int64(*int),
            Val::Float(float) => Value::Float64(*float),
            Val::Str(text) => Value::String(SmolStr::from(text.clone())),
            Val::List(items) => self.list(items, origin),
            Val::Table(table) => self.table(table, MapType::Any, origin),
        }
    }

    fn list(&mut self, items: &[Val], origin: u32) -> Value {
        let mut values = Vec::with_capacity(items.len());
        let mut origins = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let below = self.trace.as_deref_mut().map_or(0, |trace| trace.item(origin, index));
            values.push(self.value(item, below));
            if self.trace.is_some() {
                origins.push(below);
            }
        }
        let list = List::from_shared(values);
        if self.trace.is_some() {
            list.set_origins(origins);
            list.set_origin(origin);
        }
        Value::List(list)
    }
}

/// Every template of a chart and its subcharts.
pub(crate) fn renderables<'a>(chart: &'a Chart, roots: &Roots) -> Vec<Renderable<'a>> {
    let mut all = Vec::new();
    collect(chart, roots, roots.values.clone(), chart.name().to_owned(), true, &mut all);
    all
}

/// The values of a subchart, a type of its own in each chart. Helm takes the dots of a name for steps of a
/// path.
fn own_values(above: &Value, name: &str, kind: MapType) -> Map {
    let own = name.split('.').try_fold(above.clone(), |at, step| at.as_map()?.get(step));
    match (own.as_ref().and_then(Value::as_map), kind) {
        (Some(own), MapType::Named(methods)) => own.as_named(methods),
        _ => Map::with_type(kind),
    }
}

fn collect<'a>(
    chart: &'a Chart,
    roots: &Roots,
    values: Value,
    full_path: String,
    is_root: bool,
    all: &mut Vec<Renderable<'a>>,
) -> Map {
    let dot = Map::with_type(values_type(roots.compat));
    let subcharts = Map::new();
    dot.insert("Chart", chart_value(&chart.metadata, is_root, roots.compat));
    dot.insert("Files", Value::object(Files::new(&chart.files)));
    dot.insert("Release", roots.release.clone());
    dot.insert("Capabilities", roots.capabilities.clone());
    dot.insert("Subcharts", Value::Map(subcharts.clone()));
    for subchart in &chart.dependencies {
        let own = Value::Map(own_values(&values, subchart.name(), values_type(roots.compat)));
        let path = format!("{full_path}/charts/{}", subchart.name());
        let below = collect(subchart, roots, own, path, false, all);
        subcharts.insert(subchart.name(), Value::Map(below.as_unnamed()));
    }
    dot.insert("Values", values);
    dot.share();
    let base_path = format!("{full_path}/templates");
    for file in chart.templates.iter() {
        if chart.is_library() && !tiphys_vfs::base_name(&file.name).starts_with('_') {
            continue;
        }
        all.push(Renderable {
            name: [&full_path, "/", &file.name].concat(),
            file,
            dot: dot.clone(),
            base_path: base_path.clone(),
        });
    }
    dot
}

/// `.Template`.
pub(crate) fn template_data(template: &Renderable<'_>, compat: Compat) -> Map {
    let map = Map::with_type(values_type(compat));
    map.insert("Name", template.name.as_str());
    map.insert("BasePath", template.base_path.as_str());
    map.share();
    map
}
