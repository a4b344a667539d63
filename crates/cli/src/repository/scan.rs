//! Finding the Applications and AppProjects that stand in files.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;
use tiphys_appset::ClusterInfo;
use tiphys_graph::put_away;
use tiphys_model::{
    Application, ApplicationSource, ArgoSettings, names,
    settings::{CONFIG_MAP, RenderSettings},
};
use tiphys_render::manifest;
use tiphys_value::{ObjectExt, Value, json};
use tiphys_vfs::{EntryKind, FileTree};

use super::catalogue::{Node, node_of};

/// Folders that hold no manifests of the repository's own.
const SKIPPED: [&str; 4] = [".git", ".tiphys", "node_modules", "target"];

/// An object of Argo CD's API in a file.
#[derive(Clone, Debug)]
pub struct Found {
    /// The file, in the tree.
    pub file: String,
    /// Line of its document.
    pub line: u32,
    /// The object.
    pub object: Value,
}

impl Found {
    /// Namespace (the engine's if there is none) and name.
    pub fn id(&self) -> (String, String) {
        let namespace = self.object.namespace();
        let namespace = if namespace.is_empty() { crate::ENGINE_NAMESPACE } else { namespace };
        (namespace.to_owned(), self.object.name().to_owned())
    }

    /// What it is, and which.
    pub fn node(&self) -> Node {
        node_of(&self.object)
    }

    /// `file:line`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Applications.
    pub applications: Vec<Found>,
    /// AppProjects.
    pub projects: Vec<Found>,
    /// ApplicationSets.
    pub sets: Vec<Found>,
    /// Secrets that declare clusters.
    pub clusters: Vec<Found>,
    /// Clusters that somebody tells of who knows more than the files.
    pub more_clusters: Vec<ClusterInfo>,
    /// Argo CD's settings (`argocd-cm`).
    pub settings: Vec<Found>,
    /// The kustomizations.
    pub(super) kustomizations: Vec<String>,
    /// The charts in whose templates Applications or ApplicationSets are declared that only Helm can read.
    pub(super) charts: BTreeSet<String>,
    /// Files that were meant to hold such objects and cannot be read, each with why.
    pub faults: Vec<String>,
    /// How many manifest files were looked at.
    pub files: usize,
    /// What else than `argocd-cm` says how kustomizations are built: values of Argo CD's chart, its operator's resource.
    build_options: BTreeSet<String>,
    /// Whether a kustomization inflates charts.
    inflates_charts: bool,
}

impl Scan {
    /// What the repository's own `argocd-cm` says of the renderers, if there is exactly one with data: of
    /// several nobody knows which holds where. What it does not say of kustomizations, see [`Self::build_options`].
    pub fn render_settings(&self) -> RenderSettings {
        let mut settings =
            ArgoSettings::from_objects(self.own_settings().map(|it| &it.object), None).rendering;
        if let Some(options) = self.build_options().filter(|_| settings.kustomize.build_options.is_empty()) {
            settings.kustomize.build_options = options;
        }
        settings
    }

    /// The only `argocd-cm` with data, but for those that documentation shows.
    pub fn own_settings(&self) -> Option<&Found> {
        let counts = |found: &&Found| {
            found.object.get("data").is_some() && !put_away::lies_below(&found.file, &["doc", "docs"])
        };
        let mut with_data = self.settings.iter().filter(counts);
        with_data.next().filter(|_| with_data.next().is_none())
    }

    /// How kustomizations are built where no `argocd-cm` tells: as values of Argo CD's chart or its operator's resource
    /// say, if they are of one mind; and where kustomizations inflate charts, somebody allowed that by other means.
    pub fn build_options(&self) -> Option<String> {
        match self.build_options.len() {
            1 => self.build_options.first().cloned(),
            _ => self.inflates_charts.then(|| "--enable-helm".to_owned()),
        }
    }

    /// The repositories that Applications name, and how many sources name each.
    pub fn source_urls(&self) -> BTreeMap<String, usize> {
        let mut urls = BTreeMap::new();
        for source in self.sources() {
            *urls.entry(source.repo_url).or_default() += 1;
        }
        urls
    }

    /// The folders of a repository that sources name.
    pub fn paths_of(&self, url: &str) -> Vec<String> {
        let sources = self.sources().filter(|source| source.repo_url == url);
        sources.map(|source| source.path).filter(|path| !path.is_empty() && !is_placeholder(path)).collect()
    }

    /// The revisions that sources of the given repository name.
    pub fn target_revisions(&self, repositories: &tiphys_source::Repositories) -> BTreeSet<String> {
        let ours = self.sources().filter(|source| repositories.is_given(&source.repo_url));
        ours.map(|source| source.target_revision).collect()
    }

    /// Whether something was found in a file.
    pub fn is_found_in(&self, file: &str) -> bool {
        let all = [&self.applications, &self.projects, &self.sets, &self.clusters, &self.settings];
        all.into_iter().flatten().any(|found| found.file == file)
    }

    /// How many sources name a folder that stands in a tree.
    pub fn sources_in(&self, tree: &dyn FileTree) -> usize {
        self.sources().filter(|source| !source.path.is_empty() && tree.is_dir(&source.path)).count()
    }

    /// The list that an object belongs to, if it is of concern.
    pub(super) fn list_of(&mut self, object: &Value) -> Option<&mut Vec<Found>> {
        let is_ours = object.api_version() == names::API_VERSION;
        match object.kind() {
            "Application" if is_ours => Some(&mut self.applications),
            "AppProject" if is_ours => Some(&mut self.projects),
            "ApplicationSet" if is_ours => Some(&mut self.sets),
            "Secret" if is_cluster(object) => Some(&mut self.clusters),
            "ConfigMap" if object.name() == CONFIG_MAP => Some(&mut self.settings),
            _ => None,
        }
    }

    /// Notes what a file that is no `argocd-cm` tells of how kustomizations are built.
    fn note_how_to_build(&mut self, file: &str, text: &str) {
        self.inflates_charts |=
            is_kustomization(file) && text.lines().any(|line| line.starts_with("helmCharts:"));
        let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        while let Some(line) = lines.next() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let key = key.trim().trim_matches(['"', '\'']);
            if !matches!(key, "kustomize.buildOptions" | "kustomizeBuildOptions") {
                continue;
            }
            let value = value.trim();
            let value = if value.is_empty() || value.starts_with(['|', '>']) {
                lines.next().unwrap_or_default().trim()
            } else {
                value
            };
            let value = value.split(" #").next().unwrap_or(value).trim().trim_matches(['"', '\'']);
            if value.starts_with('-') && !value.contains("{{") {
                self.build_options.insert(value.to_owned());
            }
        }
    }

    /// Takes over what was found elsewhere.
    fn take(&mut self, other: Self) {
        self.applications.extend(other.applications);
        self.projects.extend(other.projects);
        self.sets.extend(other.sets);
        self.clusters.extend(other.clusters);
        self.settings.extend(other.settings);
        self.faults.extend(other.faults);
    }

    fn sources(&self) -> impl Iterator<Item = tiphys_model::ApplicationSource> {
        let plain = self
            .applications
            .iter()
            .filter_map(|found| Application::from_value(&found.object).ok())
            .flat_map(|app| app.spec.effective_sources())
            .filter(|source| !source.path.is_empty());
        let generated = self.sets.iter().flat_map(|found| sources_of_set(&found.object));
        plain.chain(generated).filter(|source| !source.is_helm_repository() && !source.is_oci())
    }
}

/// What a set says of repositories before anything is generated: the folders that its Git generators look
/// through, and its template's sources as far as they are no templates.
fn sources_of_set(set: &Value) -> Vec<ApplicationSource> {
    let mut sources = Vec::new();
    git_sources(set.at(&["spec", "generators"]).unwrap_or(&Value::Null), 0, &mut sources);
    let template = json!({"spec": set.at(&["spec", "template", "spec"]).cloned().unwrap_or_default()});
    let template = Application::from_value(&template).map(|app| app.spec.effective_sources());
    let plain = |source: &ApplicationSource| {
        ![&source.repo_url, &source.path].into_iter().any(|text| text.contains("{{"))
    };
    sources.extend(template.unwrap_or_default().into_iter().filter(plain));
    sources
}

fn git_sources(generators: &Value, depth: usize, sources: &mut Vec<ApplicationSource>) {
    const MAX_DEPTH: usize = 16;
    match generators {
        Value::Array(list) if depth < MAX_DEPTH => {
            list.iter().for_each(|item| git_sources(item, depth + 1, sources));
        }
        Value::Object(map) if depth < MAX_DEPTH => {
            if let Some(git) = map.get("git") {
                let text = |key: &str| git.str_at(&[key]).unwrap_or_default().to_owned();
                let patterns =
                    ["directories", "files"].into_iter().filter_map(|key| git.get(key)?.as_array());
                let patterns =
                    patterns.flatten().filter(|rule| rule.get("exclude") != Some(&Value::Bool(true)));
                sources.extend(patterns.map(|rule| ApplicationSource {
                    repo_url: text("repoURL"),
                    target_revision: text("revision"),
                    path: fixed_part(rule.str_at(&["path"]).unwrap_or_default()).to_owned(),
                    ..ApplicationSource::default()
                }));
            }
            for key in ["matrix", "merge", "generators"] {
                map.get(key).into_iter().for_each(|child| git_sources(child, depth + 1, sources));
            }
        }
        _ => {}
    }
}

/// The folder of a pattern above its first wildcard or template.
fn fixed_part(pattern: &str) -> &str {
    let end = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    let fixed = &pattern[..end];
    if end == pattern.len() { fixed } else { fixed.rsplit_once('/').map_or("", |(folder, _)| folder) }
}

/// Looks through the manifest files below a folder.
pub fn scan(tree: &dyn FileTree, folder: &str) -> Scan {
    let mut scan = Scan::default();
    let mut templates = Scan::default();
    for (file, is_template) in files(tree, folder) {
        scan.files += 1;
        if !is_template && tiphys_kustomize::FILE_NAMES.contains(&tiphys_vfs::base_name(&file)) {
            scan.kustomizations.push(file.clone());
        }
        // What cannot be read is judged by whoever renders it.
        let Ok(bytes) = tree.read(&file) else { continue };
        let (says_how, defines) = (!is_template && may_say_how_to_build(&file, &bytes), may_define(&bytes));
        if !says_how && !defines {
            continue;
        }
        let Ok(text) = std::str::from_utf8(&bytes) else { continue };
        if says_how {
            scan.note_how_to_build(&file, text);
        }
        if !defines {
            continue;
        }
        match is_template {
            // It may parse as a manifest, and still be none.
            true if text.contains("{{") => scan.charts.extend(chart_of(&file).filter(|_| declares(text))),
            true => read(&mut templates, &file, text),
            false => read(&mut scan, &file, text),
        }
    }
    // Where nothing else declares an Application, the charts are rendered that do.
    if !scan.applications.is_empty() || !scan.sets.is_empty() {
        scan.take(templates);
    }
    scan
}

/// The chart that a file is a template of.
fn chart_of(file: &str) -> Option<String> {
    match file.starts_with("templates/") {
        true => Some(String::new()),
        false => Some(file.split_once("/templates/")?.0.to_owned()),
    }
}

/// Whether a line of a text begins an Application or ApplicationSet.
fn declares(text: &str) -> bool {
    text.contains("argoproj.io/") && text.lines().any(|line| line.starts_with("kind: Application"))
}

/// Other engines whose objects somebody may take for Applications: a mark of their files, and what they are called.
const OTHER_ENGINES: [(&str, &str); 5] = [
    ("toolkit.fluxcd.io/", "Flux"),
    ("fleet.cattle.io/", "Fleet"),
    ("apps.open-cluster-management.io/", "Open Cluster Management"),
    ("app.k8s.io/", "the Application controller of SIG Apps"),
    ("cd.jenkins.io/", "Jenkins X"),
];

/// How many files below a folder hold objects of other engines.
pub(super) fn of_other_engines(tree: &dyn FileTree, folder: &str) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for (file, _) in files(tree, folder) {
        let Ok(bytes) = tree.read(&file) else { continue };
        let Ok(text) = std::str::from_utf8(&bytes) else { continue };
        let versions: Vec<&str> = text.lines().filter(|line| line.starts_with("apiVersion:")).collect();
        for (mark, engine) in OTHER_ENGINES {
            if versions.iter().any(|line| line.contains(mark)) {
                *counts.entry(engine).or_default() += 1;
            }
        }
    }
    counts
}

/// Whether a file is a kustomization or mentions the flags of `kustomize build`.
fn may_say_how_to_build(file: &str, bytes: &[u8]) -> bool {
    is_kustomization(file)
        || memmem::find(bytes, b"ustomize.buildOptions").is_some()
        || memmem::find(bytes, b"ustomizeBuildOptions").is_some()
}

fn is_kustomization(file: &str) -> bool {
    file.rsplit('/').next().unwrap_or(file).starts_with("kustomization.y")
}

/// Whether a file may hold objects of Argo CD's API.
pub(super) fn may_define(bytes: &[u8]) -> bool {
    let marks = [b"argoproj.io/".as_slice(), CONFIG_MAP.as_bytes()];
    marks.into_iter().any(|mark| memmem::find(bytes, mark).is_some())
}

/// The manifest files below a folder, and whether each is a template of a chart.
fn files(tree: &dyn FileTree, folder: &str) -> Vec<(String, bool)> {
    if tree.is_file(folder) {
        let parent = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
        return vec![(folder.to_owned(), is_below_templates(tree, parent))];
    }
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), is_below_templates(tree, folder))];
    while let Some((folder, in_templates)) = folders.pop() {
        let Ok(entries) = tree.read_dir(&folder) else { continue };
        let is_chart = entries.iter().any(|entry| entry.name == "Chart.yaml");
        for entry in entries {
            let is_manifest = [".yaml", ".yml", ".json"].iter().any(|end| entry.name.ends_with(end));
            let is_template = in_templates || is_chart && entry.name == "templates";
            let skipped = entry.is_symlink || SKIPPED.contains(&entry.name.as_str());
            let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            match entry.kind {
                EntryKind::File if is_manifest => files.push((path, in_templates)),
                EntryKind::Dir if !skipped => folders.push((path, is_template)),
                EntryKind::File | EntryKind::Dir => {}
            }
        }
    }
    files.sort();
    files
}

/// Whether a folder lies in the templates of a chart.
fn is_below_templates(tree: &dyn FileTree, folder: &str) -> bool {
    let mut above = Some(folder).filter(|folder| !folder.is_empty());
    while let Some(folder) = above {
        let (parent, name) = folder.rsplit_once('/').unwrap_or(("", folder));
        let mark = if parent.is_empty() { "Chart.yaml".to_owned() } else { format!("{parent}/Chart.yaml") };
        if name == "templates" && tree.is_file(&mark) {
            return true;
        }
        above = Some(parent).filter(|parent| !parent.is_empty());
    }
    false
}

fn read(scan: &mut Scan, file: &str, text: &str) {
    // A key that is set twice is told of by whoever renders it.
    let objects = match manifest::parse_objects_as_argo_cd(file, text, false, &mut Vec::new()) {
        Ok(objects) => objects,
        // Templates of charts are no manifests.
        Err(_) if is_template(text) => return,
        Err(error) => {
            // What names such a kind further in only speaks of one: a result of `kubectl get`, a list of test data.
            let is_of_kind = |line: &str| {
                let kind = line.strip_prefix("kind:").map(|kind| kind.trim().trim_matches(['"', '\'']));
                kind.is_some_and(|kind| kind.starts_with("Application") || kind.starts_with("AppProject"))
            };
            if text.lines().any(is_of_kind) {
                scan.faults.push(error.full(false));
            }
            return;
        }
    };
    for object in objects {
        if is_placeholder(object.value.name()) {
            continue;
        }
        let Some(list) = scan.list_of(&object.value) else { continue };
        list.push(Found { file: file.to_owned(), line: object.location.line, object: object.value });
    }
}

/// Whether a text is none of YAML before something else has filled it in: an action of a template stands where a key, an
/// item or a value begins. In the texts of an ApplicationSet one may stand anywhere.
fn is_template(text: &str) -> bool {
    let begins = |before: &str| {
        let is_item = before.trim_matches([' ', '-']).is_empty();
        is_item || before.ends_with(": ") || before.trim_end().ends_with([',', '[', '{'])
    };
    text.lines().any(|line| line.match_indices("{{").any(|(at, _)| begins(&line[..at])))
}

/// Whether a name is one that some generator of files has still to fill in.
fn is_placeholder(name: &str) -> bool {
    let is_upper = |c: char| c.is_ascii_uppercase() || c == '_';
    name.contains("${")
        || name.contains("{{")
        || name.contains('<')
        || (name.starts_with("__") && name.chars().all(is_upper))
}

fn is_cluster(object: &Value) -> bool {
    let label = object.at(&["metadata", "labels"]).and_then(|labels| labels.get(names::SECRET_TYPE));
    label.and_then(Value::as_str) == Some("cluster")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_vfs::MemTree;

    const APP: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  destination: {}\n  project: default\n  source: {repoURL: https://git.example.com/x, path: manifests}\n";

    #[test]
    fn a_set_tells_its_repositories_by_generators_and_template() {
        let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  generators:\n  - matrix:\n      generators:\n      - git: {repoURL: https://git.example.com/x, revision: main, directories: [{path: 'apps/*/base'}, {path: apps/old, exclude: true}]}\n      - git: {repoURL: https://git.example.com/x, revision: main, files: [{path: 'envs/**/config.json'}]}\n  template:\n    metadata: {name: '{{name}}'}\n    spec: {project: p, destination: {}, source: {repoURL: https://git.example.com/y, path: fixed}}\n";
        let scan = scan(&MemTree::from_files([("set.yaml", set)]), "");
        assert_eq!(scan.sets.len(), 1);
        assert_eq!(scan.paths_of("https://git.example.com/x"), ["apps", "envs"]);
        assert_eq!(scan.paths_of("https://git.example.com/y"), ["fixed"]);
    }

    #[test]
    fn a_path_that_somebody_fills_in_says_nothing_of_a_repository() {
        let unfilled = APP.replace("path: manifests", "path: '${path}'");
        let scan = scan(&MemTree::from_files([("app.yaml", APP), ("aws/app.yaml", unfilled.as_str())]), "");
        assert_eq!(scan.applications.len(), 2);
        assert_eq!(scan.paths_of("https://git.example.com/x"), ["manifests"]);
    }

    #[test]
    fn settings_count_if_there_is_one() {
        let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata: {kustomize.buildOptions: --enable-helm}\n";
        let one = scan(&MemTree::from_files([("cm.yaml", settings)]), "");
        assert_eq!(one.render_settings().kustomize.build_options, "--enable-helm");
        let other = settings.replace("--enable-helm", "--load-restrictor LoadRestrictionsNone");
        let two = scan(&MemTree::from_files([("a/cm.yaml", settings), ("b/cm.yaml", other.as_str())]), "");
        assert_eq!(two.render_settings().kustomize.build_options, "");
        let shown = scan(&MemTree::from_files([("docs/cm.yaml", settings)]), "");
        assert_eq!(shown.render_settings().kustomize.build_options, "");
    }

    #[test]
    fn how_kustomizations_are_built_is_read_wherever_it_stands() {
        let options = |file: &str, text: &str| {
            scan(&MemTree::from_files([(file, text)]), "").render_settings().kustomize.build_options
        };
        let values = "configs:\n  cm:\n    # kustomize.buildOptions: --no\n    kustomize.buildOptions: \"--enable-helm --enable-exec\" # both\n";
        assert_eq!(options("argocd/values.yaml", values), "--enable-helm --enable-exec");
        let resource = "kind: ArgoCD\nspec:\n  kustomizeBuildOptions: >-\n    --enable-helm\n";
        assert_eq!(options("argocd.yaml", resource), "--enable-helm");
        assert_eq!(options("a/kustomization.yaml", "helmCharts:\n- name: x\n"), "--enable-helm");
        assert_eq!(options("a/kustomization.yaml", "resources: []\n"), "");
        let several = [
            ("one/values.yaml", "cm:\n  kustomize.buildOptions: --enable-exec\n"),
            ("two/values.yaml", "cm:\n  kustomize.buildOptions: --enable-helm --enable-exec\n"),
            ("a/kustomization.yaml", "helmCharts:\n- name: x\n"),
        ];
        let settings = scan(&MemTree::from_files(several), "").render_settings();
        assert_eq!(settings.kustomize.build_options, "--enable-helm");
    }

    #[test]
    fn templates_of_a_chart_alone_are_left_to_whoever_renders_it() {
        let tree = MemTree::from_files([
            ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
            ("chart/templates/a/app.yaml", APP),
        ]);
        for folder in ["", "chart", "chart/templates", "chart/templates/a"] {
            assert!(scan(&tree, folder).applications.is_empty(), "{folder}");
        }
    }

    #[test]
    fn finds_what_is_plain_and_passes_over_what_is_not() {
        let template = APP.replace("name: a", "name: {{ .Values.name }}");
        assert!(is_template(&template) && is_template("- {{ x }}") && is_template("{{ if x }}\na: b"));
        assert!(!is_template(
            "name: shop-{{name}}\nimage: 'x:{{tag}}'\npath: apps/{{path}}\nnote: \"{{x}}\""
        ));
        let quoted = APP.replace("name: a", "name: '{{ .Values.name }}'");
        let placeholder = APP.replace("name: a", "name: '${NAME}'");
        let broken = APP.replace("spec:", "spec: [");
        let tree = MemTree::from_files([
            ("root.yaml", APP),
            ("drafts/app.yaml", template.as_str()),
            ("drafts/skeleton.yaml", placeholder.as_str()),
            ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
            ("chart/templates/quoted.yaml", quoted.as_str()),
            ("chart/templates/plain.yaml", APP),
            ("broken.yaml", broken.as_str()),
            (
                "tests/data.yaml",
                "metadata:\n  ownerReferences:\n  - apiVersion: argoproj.io/v1alpha1\n    kind: ApplicationSet\n",
            ),
            ("node_modules/x/root.yaml", APP),
            ("notes.txt", APP),
        ]);
        let scan = scan(&tree, "");
        assert_eq!(scan.applications.len(), 2);
        assert_eq!(scan.applications[0].place(), "root.yaml:1");
        assert_eq!(scan.applications[1].place(), "chart/templates/plain.yaml:1");
        assert_eq!(scan.faults.len(), 1, "{:?}", scan.faults);
        assert_eq!(scan.source_urls().into_keys().collect::<Vec<_>>(), ["https://git.example.com/x"]);
    }
}
