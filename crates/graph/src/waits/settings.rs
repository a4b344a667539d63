//! The settings of Argo CD that stand in the repository: in `argocd-cm`, in values of its chart, in
//! patches, playbooks and scripts. Anything that has a key of `argocd-cm` counts, wherever it stands.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::Span;
use tiphys_model::ArgoSettings;
use tiphys_value::{Budget, Location, Value, json_within};

use crate::{EnvironmentId, Files, Survey, survey::environment_of};

/// The keys by which settings are known.
const MARKS: [&str; 2] = ["resource.customizations", "application.resourceTrackingMethod"];
/// Files that may hold settings.
const ENDINGS: [&str; 9] = [".yaml", ".yml", ".json", ".tf", ".sh", ".j2", ".tpl", ".tftpl", ".hcl"];
/// How deep settings may be nested.
const MAX_DEPTH: usize = 40;

/// Settings that stand at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The file.
    pub file: String,
    /// The environment whose folder holds the file; empty if there is none.
    pub environment: String,
    /// The environments whose Applications render the file; empty if none does.
    pub rendered_in: BTreeSet<EnvironmentId>,
    /// The keys of `argocd-cm` with their texts.
    pub data: BTreeMap<String, String>,
}

impl Setting {
    /// The settings as they are understood.
    pub fn read(&self) -> ArgoSettings {
        ArgoSettings::read(&self.data, &BTreeMap::new())
    }

    /// Where a key stands; the start of the file if it cannot be found. A pattern (`group/Kind`) tells
    /// the entries of one block from each other.
    pub fn span(&self, files: &Files, key: &str, pattern: &str) -> Span {
        let text = files.text(&self.file).unwrap_or_default();
        let find = |wanted: &str, after: usize| {
            let lines = text.lines().enumerate().skip(after);
            lines.into_iter().find_map(|(at, line)| Some((at, line.find(wanted)?)))
        };
        let escaped = key.replace('.', "\\.");
        let mut place = find(key, 0).or_else(|| find(&escaped, 0));
        if key == "resource.customizations"
            && let Some((line, _)) = place
        {
            place = find(pattern, line).or(place);
        }
        let (line, byte) = place.unwrap_or_default();
        let column = text.lines().nth(line).map_or(0, |content| content[..byte].chars().count());
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX - 1) + 1;
        files.span(&Location::new(self.file.as_str(), number(line), number(column)))
    }
}

/// All settings of a repository.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// One by one.
    pub all: Vec<Setting>,
}

impl Settings {
    /// Looks for settings in all files.
    pub fn from_survey(survey: &Survey) -> Self {
        let mut all = Vec::new();
        for path in survey.files.ending(&ENDINGS) {
            let Some(text) = survey.files.text(path) else { continue };
            if !MARKS.iter().any(|mark| text.contains(mark)) {
                continue;
            }
            let readers = survey.apps.iter().filter(|app| app.is_rendered() && app.read.contains(path));
            let rendered_in: BTreeSet<EnvironmentId> = readers.map(|app| app.environment).collect();
            for data in in_text(&text) {
                let environment = environment_of(path).to_owned();
                all.push(Setting {
                    file: path.to_string(),
                    environment,
                    rendered_in: rendered_in.clone(),
                    data,
                });
            }
        }
        Self { all }
    }

    /// Those that hold in an environment: those that its Applications render; of those that none renders,
    /// those of no environment and those of one that has its name.
    pub fn of_environment(
        &self,
        survey: &Survey,
        environment: EnvironmentId,
    ) -> impl Iterator<Item = &Setting> {
        let wanted = &survey.environments[environment.0].name;
        let last = |path: &str| path.rsplit(['/', '-', '_']).next().unwrap_or_default().to_owned();
        let wanted = last(wanted);
        self.all.iter().filter(move |it| {
            if !it.rendered_in.is_empty() {
                return it.rendered_in.contains(&environment);
            }
            it.environment.is_empty() || wanted.is_empty() || last(&it.environment) == wanted
        })
    }
}

/// The settings in a text: YAML documents, else the bodies of here-documents and patches in it.
fn in_text(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut found = Vec::new();
    match tiphys_yaml::parse_documents(text, tiphys_yaml::Profile::Go2) {
        Ok(documents) => {
            for document in &documents {
                if let Ok(value) = tiphys_yaml::to_value(&document.root, tiphys_yaml::Profile::Go2) {
                    walk(&value, &mut found, 0);
                }
            }
        }
        Err(_) => embedded(text, &mut found, 0),
    }
    found
}

fn is_key(key: &str) -> bool {
    MARKS.iter().any(|mark| key.starts_with(mark))
}

fn walk(value: &Value, found: &mut Vec<BTreeMap<String, String>>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(map) => {
            if map.keys().any(|key| is_key(key)) {
                let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
                found.push(map.iter().filter_map(text).collect());
                return;
            }
            if let Some(setting) = json_patch(map) {
                found.push(setting);
                return;
            }
            map.values().for_each(|below| walk(below, found, depth + 1));
        }
        Value::Array(items) => items.iter().for_each(|below| walk(below, found, depth + 1)),
        Value::String(text) if MARKS.iter().any(|mark| text.contains(mark)) => {
            match tiphys_yaml::from_yaml(text) {
                Ok(inner @ (Value::Object(_) | Value::Array(_))) => walk(&inner, found, depth + 1),
                _ => embedded(text, found, depth + 1),
            }
        }
        _ => {}
    }
}

/// An entry of a JSON patch that sets one key of `data`.
fn json_patch(map: &tiphys_value::Map<String, Value>) -> Option<BTreeMap<String, String>> {
    let key = map.get("path")?.as_str()?.strip_prefix("/data/")?.replace("~1", "/");
    let value = map.get("value")?.as_str()?;
    is_key(&key).then(|| BTreeMap::from([(key, value.to_owned())]))
}

/// Settings inside a script: bodies of here-documents, and what stands between the outermost braces of a
/// line (`kubectl patch … -p '{…}'`).
fn embedded(text: &str, found: &mut Vec<BTreeMap<String, String>>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    for line in text.lines().filter(|line| MARKS.iter().any(|mark| line.contains(mark))) {
        let (Some(start), Some(end)) = (line.find('{'), line.rfind('}')) else { continue };
        if start < end
            && let Ok(inner) = json_within(&line.as_bytes()[start..=end], &Budget::of_document())
        {
            walk(&inner, found, depth + 1);
        }
    }
    // `kubectl patch … --patch '` with YAML over many lines.
    for quoted in text.split('\'').skip(1).step_by(2).filter(|it| it.contains('\n')) {
        if MARKS.iter().any(|mark| quoted.contains(mark))
            && let Ok(inner @ Value::Object(_)) = tiphys_yaml::from_yaml(quoted)
        {
            walk(&inner, found, depth + 1);
        }
    }
    for (key, body) in here_documents(text) {
        if is_key(&key) {
            found.push(BTreeMap::from([(key, body)]));
        } else if MARKS.iter().any(|mark| body.contains(mark))
            && let Ok(inner @ Value::Object(_)) = tiphys_yaml::from_yaml(&body)
        {
            walk(&inner, found, depth + 1);
        }
    }
}

/// The here-documents of a text (`<<EOF`, `<<-'EOF'`), each with the quoted text before it on its line.
fn here_documents(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((before, after)) = line.split_once("<<") else { continue };
        let mark: String = after
            .trim_start_matches(['-', '~', ' ', '\'', '"'])
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        if mark.is_empty() {
            continue;
        }
        let body: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != mark).collect();
        let indent = body.iter().filter(|line| !line.trim().is_empty());
        let indent = indent.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
        let body: Vec<&str> = body.iter().map(|line| line.get(indent..).unwrap_or_default()).collect();
        let key = before.split('"').nth(1).unwrap_or_default().to_owned();
        found.push((key, body.join("\n")));
    }
    found
}
