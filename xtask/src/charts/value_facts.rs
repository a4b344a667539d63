//! The values that versions of a chart know, from its templates, its own values and its schema.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
};

use anyhow::Context as _;
use tiphys_gotemplate::{Function, Functions, TemplateSet, Type, Value as TemplateValue};
use tiphys_helm::Chart;
use tiphys_value::Value;
use tiphys_vfs::DiskTree;

use super::{
    reads::{Abstract, Reader},
    schemas::Schemas,
    value_tree::ValueTree,
};

/// The values that one version of a chart knows.
pub(super) struct ValueFacts {
    /// The version.
    pub version: String,
    /// Its values.
    pub tree: ValueTree,
    /// Values of the chart's own that no template was seen to read.
    pub unread: Vec<String>,
}

impl ValueFacts {
    /// What the chart of a folder knows.
    ///
    /// # Errors
    /// It is no chart, or its templates cannot be followed.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let chart = Chart::load(&DiskTree::open(folder)?, "")?;
        let mut set = TemplateSet::new(Arc::new(functions()));
        let mut entries = Vec::new();
        collect(&chart, chart.name(), &[], &mut set, &mut entries)?;
        let mut reader = Reader::new(&set);
        for (name, path) in &entries {
            reader.follow(name, &Abstract::context(path))?;
        }
        let mut tree = reader.tree;
        let mut unread = Vec::new();
        describe(&chart, folder, &[], &mut tree, &mut unread)?;
        let mut asked = BTreeSet::new();
        names_of_several_kinds(&chart, &mut asked)?;
        tree.forget_usual_kinds(&asked);
        tree.prune();
        Ok(Self { version: chart.metadata.version.clone(), tree, unread })
    }
}

/// The last names on lines of templates that ask of what kind a value is: they take several.
fn names_of_several_kinds(chart: &Chart, found: &mut BTreeSet<String>) -> anyhow::Result<()> {
    const WORDS: [&str; 6] = ["kindIs", "kindOf", "typeIs", "typeOf", "tplvalues.render", "fromYaml"];
    for file in chart.templates.iter() {
        let text = String::from_utf8_lossy(file.data()?).into_owned();
        for line in text.lines().filter(|line| WORDS.iter().any(|word| line.contains(word))) {
            let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
            let last = words.filter_map(|word| word.rsplit_once('.').map(|(_, last)| last.to_owned()));
            found.extend(last.filter(|name| !name.is_empty()));
        }
    }
    chart.dependencies.iter().try_for_each(|below| names_of_several_kinds(below, found))
}

/// The functions that templates of charts may call; what they do is of no concern here.
fn functions() -> Functions {
    const OF_HELM: [&str; 21] = [
        "include",
        "tpl",
        "required",
        "fail",
        "getHostByName",
        "lookup",
        "toYaml",
        "toYamlPretty",
        "mustToYaml",
        "fromYaml",
        "fromYamlArray",
        "toJson",
        "mustToJson",
        "fromJson",
        "fromJsonArray",
        "toToml",
        "mustToToml",
        "fromToml",
        "env",
        "expandenv",
        "toRawJson",
    ];
    let mut table = Functions::sprig();
    for name in OF_HELM {
        table.insert(Function::variadic(name, &[Type::Any], |_, _| Ok(TemplateValue::string(""))));
    }
    table
}

/// Parses the templates of a chart and of those that it depends on, and notes which are executed, with the
/// path of the values that they see.
fn collect(
    chart: &Chart,
    name: &str,
    path: &[String],
    set: &mut TemplateSet,
    entries: &mut Vec<(String, Vec<String>)>,
) -> anyhow::Result<()> {
    for dependency in &chart.dependencies {
        let below = format!("{name}/charts/{}", dependency.name());
        for key in keys_of(chart, dependency.name()) {
            collect(dependency, &below, &[path, &[key]].concat(), set, entries)?;
        }
    }
    for file in chart.templates.iter() {
        let full = format!("{name}/{}", file.name);
        let text = String::from_utf8_lossy(file.data()?).into_owned();
        set.parse(&full, &text).with_context(|| full.clone())?;
        // Notes for people change nothing.
        let is_helper = &*file.name == "templates/NOTES.txt"
            || file.name.rsplit('/').next().is_some_and(|base| base.starts_with('_'));
        if !is_helper && !chart.is_library() {
            entries.push((full, path.to_vec()));
        }
    }
    Ok(())
}

/// The keys below which a dependency finds its values.
fn keys_of(chart: &Chart, dependency: &str) -> Vec<String> {
    let declared = chart.metadata.dependencies.iter().filter(|it| it.name == dependency);
    let mut keys: Vec<String> =
        declared.map(|it| if it.alias.is_empty() { it.name.clone() } else { it.alias.clone() }).collect();
    if keys.is_empty() {
        keys.push(dependency.to_owned());
    }
    keys
}

/// Adds what a chart's own values and schema say, and what they say of its dependencies.
fn describe(
    chart: &Chart,
    folder: &Path,
    path: &[String],
    tree: &mut ValueTree,
    unread: &mut Vec<String>,
) -> anyhow::Result<()> {
    let at = |key: &str| [path, &[key.to_owned()]].concat();
    tree.read_whole(&at("global"));
    tree.read_whole(&at("tags"));
    for dependency in &chart.metadata.dependencies {
        let key = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
        match chart.dependencies.iter().find(|it| it.name() == dependency.name) {
            Some(own) => {
                let below = folder.join("charts").join(&dependency.name);
                describe(own, &below, &at(key), tree, unread)?;
            }
            None => tree.read_whole(&at(key)),
        }
        for condition in dependency.condition.split(',').filter(|it| !it.trim().is_empty()) {
            let steps: Vec<String> = condition.trim().split('.').map(str::to_owned).collect();
            tree.read(&[path, &steps].concat());
        }
        if !dependency.import_values.is_empty() {
            tree.read_whole(path);
        }
    }
    // What is a template only once it is rendered: texts among the values, and files.
    let mut texts: Vec<String> = Vec::new();
    for file in chart.files.iter().filter(|file| !file.name.ends_with(".md")) {
        texts.push(String::from_utf8_lossy(file.data()?).into_owned());
    }
    if let Ok(text) = fs::read_to_string(folder.join("values.yaml")) {
        let values = tiphys_yaml::from_yaml(&text)?;
        note_unread(&values, &mut path.to_vec(), tree, unread);
        tree.read(path).add_defaults(&values);
        texts.push(text);
    }
    let mut templates: Vec<String> = Vec::new();
    for file in chart.templates.iter() {
        templates.push(String::from_utf8_lossy(file.data()?).into_owned());
    }
    texts.extend(included_bodies(&texts, &templates));
    for steps in texts.iter().flat_map(|text| mentioned(text)) {
        tree.read_whole(&[path, &steps].concat());
    }
    for steps in templates.iter().flat_map(|text| mentioned(text)) {
        tree.read(&[path, &steps].concat());
    }
    if let Some(schema) = &chart.schema {
        const ROOT: &str = "values.schema.json";
        let is_schema = |name: &str| name.ends_with(".json") && name.starts_with("schemas/");
        let mut schemas = BTreeMap::from([(ROOT.to_owned(), serde_json::from_slice::<Value>(schema)?)]);
        for file in chart.files.iter().filter(|file| is_schema(&file.name)) {
            schemas.insert(file.name.to_string(), serde_json::from_slice(file.data()?)?);
        }
        tree.read(path).add_schema(&schemas[ROOT], &Schemas::seen_from(&schemas, ROOT), 0);
    }
    Ok(())
}

/// The bodies of the templates that texts include, and of those that these include.
fn included_bodies(texts: &[String], templates: &[String]) -> Vec<String> {
    let defined: BTreeMap<&str, &str> = templates
        .iter()
        .flat_map(|text| text.split("define \"").skip(1))
        .filter_map(|rest| rest.split_once('"'))
        .collect();
    let names = |text: &str| -> Vec<String> {
        let words = ["include \"", "template \""];
        let rests = words.iter().flat_map(|word| text.split(word).skip(1));
        rests.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    };
    let mut open: Vec<String> = texts.iter().flat_map(|text| names(text)).collect();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut bodies = Vec::new();
    while let Some(name) = open.pop() {
        let Some(body) = defined.get(name.as_str()).filter(|_| !seen.contains(&name)) else { continue };
        open.extend(names(body));
        bodies.push((*body).to_owned());
        seen.insert(name);
    }
    bodies
}

/// The paths that a text has behind `.Values.`.
fn mentioned(text: &str) -> Vec<Vec<String>> {
    let paths = text.split(".Values.").skip(1).map(|rest| {
        let is_end = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.');
        let path = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        path.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect()
    });
    paths.filter(|path: &Vec<String>| !path.is_empty()).collect()
}

/// Notes the chart's own values that no template was seen to read: each is a value that nothing reads, or one
/// that this program did not understand.
fn note_unread(values: &Value, path: &mut Vec<String>, tree: &ValueTree, unread: &mut Vec<String>) {
    let Some(map) = values.as_object() else { return };
    for (key, below) in map {
        path.push(key.clone());
        match tree.knows(path) {
            true => note_unread(below, path, tree, unread),
            false => unread.push(path.join(".")),
        }
        path.pop();
    }
}
