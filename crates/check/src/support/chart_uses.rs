//! Charts that are not in the repository, wherever they are named: by Applications, by charts, by
//! kustomizations and by HelmReleases, each with the values that it is given.

use std::{collections::HashMap, ops::Range, sync::Arc};

use tiphys_diag::Span;
use tiphys_graph::{App, AppId, Object, ObjectScope, survey::settings_text, tools::Lines};
use tiphys_kustomize::FILE_NAMES;
use tiphys_model::{ApplicationSource, HelmSource};
use tiphys_value::{FieldPath, ObjectExt, Value};
use tiphys_vfs::{base_name, join, parent};

use super::{
    field_paths, known_charts,
    pods::{list, text},
    text_values,
};
use crate::Context;

/// A chart that something takes from elsewhere.
pub(crate) struct ChartUse {
    /// Its name.
    pub chart: String,
    /// The address that it comes from, with its name where that is the last step.
    pub repository: String,
    /// Its version, or a range of versions.
    pub version: String,
    /// The values that it is given, the weakest first.
    pub values: Vec<Value>,
    /// Where one of them stands that somebody wrote for this chart alone.
    pub values_at: Option<ValuesPlace>,
    /// Which of them are those of files.
    pub files: Vec<ValuesFile>,
    /// The folder of the chart that depends on it.
    pub parent: Option<String>,
    /// Who names it, for messages.
    pub by: String,
    /// Where it is named.
    pub span: Span,
    /// The Application that it is for, if one leads to it.
    pub app: Option<AppId>,
    /// Whether a kustomization inflates it.
    pub is_inflated: bool,
    /// Whether its definitions are brought along.
    pub brings_definitions: bool,
    /// Whether it is given values that are out of reach, which come before all others.
    pub has_hidden_values: bool,
    /// What it is released as; `None` if that, or a part of its values, is not known.
    pub release: Option<Release>,
}

/// Where values stand.
pub(crate) struct ValuesPlace {
    /// Which of the values of a chart they are.
    pub index: usize,
    /// What they are a part of.
    pub writer: ValuesWriter,
}

/// A file that values are read from.
pub(crate) struct ValuesFile {
    /// Which of the values of a chart they are.
    pub index: usize,
    /// Its path.
    pub path: String,
    /// The key of the file below which they stand; empty where they are all of it.
    pub below: String,
}

/// Values with the file that they are read from, and the key in it.
type Sourced = (Value, Option<(String, String)>);

/// The values, and those of them that are read from files.
fn apart(sourced: Vec<Sourced>) -> (Vec<Value>, Vec<ValuesFile>) {
    let files = sourced.iter().enumerate().filter_map(|(index, (_, file))| {
        let (path, below) = file.clone()?;
        Some(ValuesFile { index, path, below })
    });
    let files = files.collect();
    (sourced.into_iter().map(|(values, _)| values).collect(), files)
}

/// What values are a part of.
pub(crate) enum ValuesWriter {
    /// A HelmRelease, by its place among the objects.
    Release(usize),
    /// An Application, in one of its fields.
    Application(AppId, FieldPath),
}

/// What a chart is released as.
pub(crate) struct Release {
    /// The release's name.
    pub name: String,
    /// The namespace that it goes to.
    pub namespace: String,
    /// Where it would live.
    pub scope: ObjectScope,
    /// What the chart is called: its alias, where another one depends on it.
    pub chart_name: String,
}

impl Release {
    /// The release of a source of an Application, if all its values are seen.
    fn of_source(
        context: &Context<'_>,
        app: &App,
        source: &ApplicationSource,
        folder: Option<&str>,
    ) -> Option<Self> {
        let helm = source.helm.clone().unwrap_or_default();
        // Of a chart from elsewhere its own values are the defaults.
        let is_own = |entry: &str| folder.is_none() && entry == "values.yaml";
        let is_read = |entry: &String| {
            let path = values_path(folder, entry);
            is_own(entry) || path.is_some_and(|path| context.survey.files.contains(&path))
        };
        let is_whole = helm.file_parameters.is_empty() && helm.value_files.iter().all(is_read);
        let name =
            Some(helm.release_name).filter(|it| !it.is_empty()).unwrap_or_else(|| app.name().to_owned());
        let namespace = Some(helm.namespace).filter(|it| !it.is_empty());
        let namespace = namespace.unwrap_or_else(|| app.application.spec.destination.namespace.clone());
        let scope = ObjectScope::Cluster(app.environment, app.cluster().into());
        let release = Self { name, namespace, scope, chart_name: String::new() };
        (is_whole && !release.namespace.is_empty()).then_some(release)
    }

    /// The release of a chart that a kustomization inflates, which is itself the source of an Application and
    /// changes no names.
    fn of_inflated(app: &App, folder: &str, kustomization: &Value, chart: &Value) -> Option<Self> {
        let changes_names =
            ["namePrefix", "nameSuffix"].iter().any(|key| !text(kustomization, key).is_empty());
        let sources = app.application.spec.effective_sources();
        let is_source = |it: &ApplicationSource| {
            let is_plain = it
                .kustomize
                .as_ref()
                .is_none_or(|kustomize| kustomize.name_prefix.is_empty() && kustomize.name_suffix.is_empty());
            is_plain && it.path.trim_start_matches("./").trim_end_matches('/') == folder
        };
        let spaces = [text(kustomization, "namespace"), text(chart, "namespace")];
        let namespace = spaces.into_iter().find(|it| !it.is_empty())?;
        let name = Some(text(chart, "releaseName")).filter(|it| !it.is_empty())?;
        (!changes_names && sources.iter().any(is_source)).then(|| Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            scope: ObjectScope::Cluster(app.environment, app.cluster().into()),
            chart_name: text(chart, "name").to_owned(),
        })
    }

    fn of_chart(self, name: &str) -> Self {
        Self { chart_name: name.to_owned(), ..self }
    }
}

impl ChartUse {
    /// The last of its values that says something at a path such as `image.tag`.
    pub(crate) fn value(&self, path: &[&str]) -> Option<&Value> {
        self.values.iter().rev().find_map(|values| values.at(path))
    }

    /// All its values merged, as Helm does it: the later ones win.
    pub(crate) fn merged_values(&self) -> Value {
        let given = self.values.iter().filter(|values| !values.is_null());
        given.fold(Value::Null, merge_values)
    }

    /// Whether it keeps the chart's definitions out: by its values, or by who names it.
    pub(crate) fn leaves_out_definitions(&self) -> bool {
        !self.brings_definitions || known_charts::values_leave_out_crds(&self.merged_values())
    }

    /// The same, as text: numbers too.
    pub(crate) fn text(&self, path: &[&str]) -> Option<String> {
        match self.value(path)? {
            Value::String(text) => Some(text.to_string()),
            Value::Null => None,
            other => Some(other.to_string()),
        }
    }
}

/// Charts whose definitions are templates, and not files below `crds`: they are rendered like all else,
/// unless values say otherwise.
const OF_TEMPLATES: [&str; 9] = [
    "argo-cd",
    "argo-rollouts",
    "argo-workflows",
    "cloudnative-pg",
    "external-secrets",
    "keda",
    "kyverno",
    "longhorn",
    "rook-ceph",
];

/// All of them.
pub(crate) fn all(context: &Context<'_>) -> Vec<ChartUse> {
    let mut found = Vec::new();
    for app in context.survey.apps.iter().filter(|app| !app.is_rendered()) {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate().filter(|(_, it)| !it.chart.is_empty())
        {
            found.push(of_application(context, app, source, &field_paths::source(spec, at)));
        }
    }
    let objects = context.survey.objects.iter().enumerate();
    let releases = objects.filter(|(_, object)| object.key.kind == "HelmRelease");
    found.extend(releases.filter_map(|(at, object)| of_release(context, at, object)));
    let of_folders = sources_of_folders(context);
    for path in context.survey.files.paths() {
        match base_name(path) {
            "Chart.yaml" | "requirements.yaml" => of_chart(context, path, &of_folders, &mut found),
            name if FILE_NAMES.contains(&name) => of_kustomization(context, path, &mut found),
            _ => {}
        }
    }
    found
}

fn of_application(
    context: &Context<'_>,
    app: &App,
    source: &ApplicationSource,
    place: &FieldPath,
) -> ChartUse {
    let chart = source.chart.rsplit('/').next().unwrap_or_default();
    let release = Release::of_source(context, app, source, None);
    let (values, files) = apart(values_of(context, None, source));
    ChartUse {
        files,
        release: release.map(|release| release.of_chart(chart)),
        chart: chart.to_owned(),
        repository: format!("{}/{}", source.repo_url, source.chart),
        version: source.target_revision.clone(),
        values_at: own_values(app, source.helm.as_ref(), &values, place),
        values,
        parent: None,
        by: format!("Application {}", app.name()),
        span: context.survey.app_span(app, &place.key("chart")),
        app: Some(app.id),
        is_inflated: false,
        brings_definitions: !source.helm.as_ref().is_some_and(|helm| helm.skip_crds),
        has_hidden_values: false,
    }
}

/// Where the values stand that a source has as an object in its own text.
fn own_values(
    app: &App,
    helm: Option<&HelmSource>,
    values: &[Value],
    place: &FieldPath,
) -> Option<ValuesPlace> {
    helm?.values_object.as_ref()?;
    // Parameters come last.
    let index = values.len().checked_sub(2)?;
    let field = place.key("helm").key("valuesObject");
    Some(ValuesPlace { index, writer: ValuesWriter::Application(app.id, field) })
}

/// The deepest name of a parameter that Helm takes, in points.
const MAX_LEVELS: usize = 30;

/// The parameters of a source as values; the names of lists are left out, and those that Helm refuses.
fn parameters(source: &ApplicationSource) -> Value {
    let mut values = Value::Null;
    let all = source.helm.iter().flat_map(|helm| &helm.parameters);
    for parameter in all.filter(|it| it.name.matches('.').count() <= MAX_LEVELS) {
        let mut steps = parameter.name.split('.').rev();
        let last = steps.next().unwrap_or_default();
        let leaf = Value::from_iter([(last.to_owned(), Value::from(parameter.value.clone()))]);
        let tree = steps.fold(leaf, |below, step| Value::from_iter([(step.to_owned(), below)]));
        values = merge_values(values, &tree);
    }
    values
}

fn merge_values(mut into: Value, other: &Value) -> Value {
    match (&mut into, other) {
        (Value::Object(own), Value::Object(others)) => {
            for (key, value) in others {
                let before = own.get(key).cloned().unwrap_or_default();
                own.insert(key.clone(), merge_values(before, value));
            }
            into
        }
        _ => other.clone(),
    }
}

fn of_release(context: &Context<'_>, at: usize, release: &Object) -> Option<ChartUse> {
    let spec = release.value().get("spec")?;
    let chart = spec.at(&["chart", "spec"]);
    let (reference, name) = match chart {
        Some(chart) => (chart.get("sourceRef")?, text(chart, "chart")),
        None => (spec.get("chartRef")?, ""),
    };
    let (kind, named) = (text(reference, "kind"), text(reference, "name"));
    let mut sources = context.survey.objects.iter().filter(|it| it.key.kind == kind && it.key.name == named);
    let source = sources.next()?.value().get("spec")?;
    let repository = format!("{}/{name}", text(source, "url").trim_end_matches('/'));
    let version = match chart {
        Some(chart) => text(chart, "version").to_owned(),
        None => source
            .str_at(&["ref", "tag"])
            .or(source.str_at(&["ref", "semver"]))
            .unwrap_or_default()
            .to_owned(),
    };
    let place = field_paths::keys(if chart.is_some() {
        &["spec", "chart", "spec", "chart"]
    } else {
        &["spec", "chartRef", "name"]
    });
    let (values, has_hidden_values) = values_of_release(context, release);
    let of_spec = |key: &str| Some(text(spec, key)).filter(|it| !it.is_empty());
    let named = repository.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let target = of_spec("targetNamespace");
    // Flux docs, "Helm Releases": the target namespace is a part of the name.
    let prefix = target.map(|it| format!("{it}-")).unwrap_or_default();
    let called = || format!("{prefix}{}", release.key.name);
    let is_whole = !has_hidden_values && spec.get("postRenderers").is_none();
    let released = is_whole.then(|| Release {
        name: of_spec("releaseName").map_or_else(called, str::to_owned),
        namespace: target.unwrap_or(&release.key.namespace).to_owned(),
        scope: release.world(),
        chart_name: named.clone(),
    });
    Some(ChartUse {
        files: Vec::new(),
        release: released.filter(|it| !it.namespace.is_empty()),
        chart: repository.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned(),
        repository,
        version,
        values_at: spec.get("values").and_then(|_| {
            let index = values.len().checked_sub(1)?;
            Some(ValuesPlace { index, writer: ValuesWriter::Release(at) })
        }),
        parent: None,
        values,
        by: release.title(),
        span: context.survey.span(release, &place),
        app: None,
        is_inflated: false,
        brings_definitions: true,
        has_hidden_values,
    })
}

/// The values that a release of Flux is given, the weakest first, and whether some are out of reach that
/// say more than one thing. Those of `valuesFrom` come before its own, which are merged over them (Flux
/// docs, "Values references").
fn values_of_release(context: &Context<'_>, release: &Object) -> (Vec<Value>, bool) {
    let spec = &release.value()["spec"];
    let mut found = Vec::new();
    let mut has_hidden = false;
    for reference in list(spec, "valuesFrom") {
        let key = Some(text(reference, "valuesKey")).filter(|key| !key.is_empty()).unwrap_or("values.yaml");
        let (kind, name) = (text(reference, "kind"), text(reference, "name"));
        let is_it = |it: &&Object| {
            it.key.kind == kind
                && it.lives_with(release)
                && (it.key.name == name || is_generated(&it.key.name, name))
        };
        let made = context.survey.objects.iter().find(is_it);
        let values = made.and_then(|it| settings_text(it.value(), key));
        // A single value, of which the rest does not depend as a rule.
        let target = text(reference, "targetPath");
        if !target.is_empty() {
            has_hidden |= is_about_names(target);
            continue;
        }
        match values.and_then(|text| tiphys_yaml::from_yaml(&text).ok()) {
            Some(values) => found.push(values),
            None => has_hidden = true,
        }
    }
    found.extend(spec.get("values").cloned());
    (found, has_hidden)
}

/// Whether a path of a value says what objects are called, or which there are.
fn is_about_names(path: &str) -> bool {
    const WORDS: [&str; 5] = ["enabled", "fullnameoverride", "nameoverride", "port", "servicename"];
    let last = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    WORDS.contains(&last.as_str())
}

/// Whether a name is another with the hash that a generator of kustomize puts behind it.
fn is_generated(name: &str, base: &str) -> bool {
    const HASH: usize = 10;
    let hash = name.strip_prefix(base).and_then(|rest| rest.strip_prefix('-'));
    hash.is_some_and(|hash| hash.len() == HASH && hash.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// The dependencies of a chart that are not put beside it.
fn of_chart(context: &Context<'_>, path: &Arc<str>, of_folders: &Folders, found: &mut Vec<ChartUse>) {
    let files = &context.survey.files;
    let Some(chart) = context.survey.files.value(path) else { return };
    let folder = parent(path).unwrap_or_default();
    // What a chart inside of another one is given, the outer one says.
    let mut outer = folder.match_indices("charts/").map(|(at, _)| format!("{}Chart.yaml", &folder[..at]));
    if outer.any(|outer| files.contains(&outer)) {
        return;
    }
    let at = |name: &str| join(folder, name).unwrap_or_default();
    let sources = of_folders.get(folder).into_iter().flatten();
    let of_apps: Vec<Sourced> = sources.flat_map(|source| values_of(context, Some(folder), source)).collect();
    for dependency in list(&chart, "dependencies") {
        let (name, alias) = (text(dependency, "name"), text(dependency, "alias"));
        let vendored = at(&format!("charts/{name}"));
        let is_vendored = files
            .paths()
            .any(|it| it.strip_prefix(vendored.as_str()).is_some_and(|rest| rest.starts_with(['/', '-'])));
        let repository = text(dependency, "repository");
        if is_vendored || !repository.contains("://") || repository.starts_with("file:") {
            continue;
        }
        let own = ["values.yaml", "values.yml"].iter().filter_map(|name| sourced(context, at(name)));
        let given: Vec<Sourced> = own.chain(of_apps.iter().cloned()).collect();
        if is_switched_off(dependency, &given) {
            continue;
        }
        let key = if alias.is_empty() { name } else { alias };
        let of_key = |(values, file): &Sourced| {
            let global = values.get("global").map(|it| Value::from_iter([("global".to_owned(), it.clone())]));
            let below = file.as_ref().map(|(path, _)| (path.clone(), key.to_owned()));
            let own = values.get(key).map(|it| (it.clone(), below));
            [global.map(|it| (it, file.clone())), own].into_iter().flatten().collect::<Vec<_>>()
        };
        let (values, files) = apart(given.iter().flat_map(of_key).collect());
        let app = reader(context, path);
        let release = match of_folders.get(folder).map(Vec::as_slice) {
            Some([source]) => {
                app.and_then(|app| Release::of_source(context, context.survey.app(app), source, Some(folder)))
            }
            _ => None,
        };
        found.push(ChartUse {
            release: release.map(|release| release.of_chart(key)),
            chart: name.to_owned(),
            repository: format!("{}/{name}", repository.trim_end_matches('/')),
            version: text(dependency, "version").to_owned(),
            values,
            values_at: None,
            files,
            parent: Some(folder.to_owned()),
            by: format!("chart {}", if folder.is_empty() { text(&chart, "name") } else { folder }),
            span: line_of(context, path, name),
            app,
            is_inflated: false,
            brings_definitions: true,
            has_hidden_values: false,
        });
    }
}

/// Whether the values switch a dependency off: the first path of its condition that they have decides (Helm
/// docs, "Tags and Condition fields in dependencies").
fn is_switched_off(dependency: &Value, given: &[Sourced]) -> bool {
    let paths = text(dependency, "condition").split(',').map(str::trim).filter(|path| !path.is_empty());
    let decides = |path: &str| {
        let steps: Vec<&str> = path.split('.').collect();
        given.iter().rev().find_map(|(values, _)| values.at(&steps)?.as_bool())
    };
    paths.into_iter().find_map(decides) == Some(false)
}

/// The sources of Applications that are folders of a repository, by folder.
type Folders = HashMap<String, Vec<ApplicationSource>>;

fn sources_of_folders(context: &Context<'_>) -> Folders {
    let mut found = Folders::new();
    for app in &context.survey.apps {
        let sources = app.application.spec.effective_sources();
        for source in sources.into_iter().filter(|source| source.chart.is_empty()) {
            let folder = source.path.trim_start_matches("./").trim_end_matches('/').to_owned();
            found.entry(folder).or_default().push(source);
        }
    }
    found
}

/// The values that a source gives the chart of a folder, or one from elsewhere, whose own files nobody has.
fn values_of(context: &Context<'_>, folder: Option<&str>, source: &ApplicationSource) -> Vec<Sourced> {
    let Some(helm) = &source.helm else { return Vec::new() };
    let of_files = helm.value_files.iter().filter_map(|entry| sourced(context, values_path(folder, entry)?));
    let own = text_values::of_source(helm).chain([parameters(source)]);
    of_files.chain(own.map(|values| (values, None))).collect()
}

/// The values of a file, which are all of it.
fn sourced(context: &Context<'_>, path: String) -> Option<Sourced> {
    Some((values_in(context, &path)?, Some((path, String::new()))))
}

/// The values in a file, which are merged with others.
fn values_in(context: &Context<'_>, path: &str) -> Option<Value> {
    context.survey.files.value(path).map(|values| Value::clone(&values))
}

/// The file of this repository that an entry of `valueFiles` names.
fn values_path(folder: Option<&str>, entry: &str) -> Option<String> {
    let referred = entry.strip_prefix('$').and_then(|rest| rest.split_once('/'));
    // What is referred to by a name is a repository; nearly always this one.
    match referred {
        Some((_, path)) => Some(path.to_owned()),
        None => folder.and_then(|folder| join(folder, entry).ok()),
    }
}

/// The charts that a kustomization inflates.
fn of_kustomization(context: &Context<'_>, path: &Arc<str>, found: &mut Vec<ChartUse>) {
    let Some(kustomization) = context.survey.files.value(path) else { return };
    let folder = parent(path).unwrap_or_default();
    for chart in list(&kustomization, "helmCharts") {
        let name = text(chart, "name");
        let repository = text(chart, "repo");
        if repository.is_empty() {
            continue;
        }
        let additional = list(chart, "additionalValuesFiles").iter().filter_map(Value::as_str);
        let named =
            std::iter::once(text(chart, "valuesFile")).chain(additional).filter(|name| !name.is_empty());
        let in_files = named.filter_map(|name| sourced(context, join(folder, name).ok()?));
        let inline = chart.get("valuesInline").cloned().map(|values| (values, None));
        let (values, files) = apart(in_files.chain(inline).collect());
        let is_whole = is_whole_chart(context, folder, chart);
        let app = reader(context, path);
        let release = app
            .filter(|_| is_whole)
            .and_then(|app| Release::of_inflated(context.survey.app(app), folder, &kustomization, chart));
        found.push(ChartUse {
            files,
            release,
            chart: name.to_owned(),
            repository: format!("{}/{name}", repository.trim_end_matches('/')),
            version: text(chart, "version").to_owned(),
            values,
            values_at: None,
            parent: None,
            by: format!("kustomization {folder}"),
            span: line_of(context, path, name),
            app,
            is_inflated: true,
            brings_definitions: chart.get("includeCRDs") == Some(&Value::Bool(true))
                || OF_TEMPLATES.contains(&name),
            has_hidden_values: false,
        });
    }
}

/// Whether all files of values that a chart of a kustomization names are here.
fn is_whole_chart(context: &Context<'_>, folder: &str, chart: &Value) -> bool {
    let additional = list(chart, "additionalValuesFiles").iter().filter_map(Value::as_str);
    let mut named =
        std::iter::once(text(chart, "valuesFile")).chain(additional).filter(|name| !name.is_empty());
    named.all(|name| join(folder, name).is_ok_and(|path| context.survey.files.contains(&path)))
}

/// The first Application whose rendering read a file.
fn reader(context: &Context<'_>, path: &Arc<str>) -> Option<AppId> {
    context.survey.apps.iter().find(|app| app.read.contains(path)).map(|app| app.id)
}

/// The line of a file that names a chart.
fn line_of(context: &Context<'_>, path: &Arc<str>, name: &str) -> Span {
    let text = context.survey.files.text(path).unwrap_or_else(|| "".into());
    Lines::new(path, &text).span(name_in_list(&text, name).unwrap_or_default())
}

/// Where an item of a list says that this is its name; a chart may depend on one of its own name.
fn name_in_list(text: &str, name: &str) -> Option<Range<usize>> {
    let is_item = |line: &str| {
        let field = line.trim_start_matches([' ', '-']);
        let value = field.strip_prefix("name:").and_then(|value| value.split('#').next());
        let is_it = value.is_some_and(|value| value.trim().trim_matches(['"', '\'']) == name);
        is_it && line.starts_with([' ', '-'])
    };
    // `- {name: …}`, or a template.
    let is_like =
        |line: &str| !line.trim_start().starts_with('#') && line.contains("name:") && line.contains(name);
    line_that(text, is_item).or_else(|| line_that(text, is_like))
}

/// The first line of which something holds, without what it is indented by.
fn line_that(text: &str, holds: impl Fn(&str) -> bool) -> Option<Range<usize>> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if holds(line.trim_end()) {
            let indent = line.len() - line.trim_start().len();
            return Some(start + indent..start + line.trim_end().len());
        }
        start += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_found_by_the_item_that_names_it() {
        let text = "# name: redis\nname: redis\nlabels:\n  #  part/name: redis\n  app/name: redis\ndependencies:\n- version: 1\n  name: \"redis\" # ours\n";
        assert_eq!(&text[name_in_list(text, "redis").unwrap()], "name: \"redis\" # ours");
        let flow = "dependencies:\n# name: redis\n- {version: 1, name: redis}\n";
        assert_eq!(&flow[name_in_list(flow, "redis").unwrap()], "- {version: 1, name: redis}");
        assert_eq!(name_in_list(text, "valkey"), None);
    }
}
