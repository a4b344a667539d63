//! Kustomizations over kustomizations: an Application in a file that overlays build on is none as it stands. What the
//! overlays render to is, and each overlay may be another environment.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_model::{Application, names, settings::RenderSettings};
use tiphys_value::{ObjectExt, Value, json};
use tiphys_vfs::{FileTree, join, parent};

use super::{Found, Repository, Scan, catalogue::render_one};

/// What a kustomization reads.
#[derive(Default)]
struct Reads {
    /// Files and folders whose objects it has.
    resources: Vec<String>,
    /// Files that change objects, and are none.
    patches: Vec<String>,
    /// Whether it may change what Applications say, or their names.
    is_changing: bool,
}

/// The kustomizations below a folder, by their folders.
#[derive(Default)]
struct Overlays(BTreeMap<String, Reads>);

impl Repository {
    /// Takes what overlays render in place of the files of their bases.
    pub(super) fn look_into_overlays(&mut self) {
        self.overlays.clear();
        if self.scan.applications.is_empty() && self.scan.sets.is_empty() {
            return;
        }
        let overlays = Overlays::read(self.tree.as_ref(), &self.scan.kustomizations);
        let patches = overlays.patches();
        self.scan.retain(|found| !patches.contains(found.file.as_str()));
        let tops = overlays.tops_over(&self.scan);
        self.render_overlays(&overlays, &tops);
        // The files may have had places in them to be filled in, where the address of the repository is now.
        self.adopt_addresses();
        let led_to = self.folders_of_applications();
        let is_led_to = |found: &Found| {
            let folder = parent(&found.file).unwrap_or_default();
            let by = led_to.get(folder);
            tops.contains(folder) && by.is_some_and(|by| by.iter().any(|file| *file != found.file))
        };
        if self.scan.declared().any(|found| !is_led_to(found)) {
            self.scan.retain(|found| !is_led_to(found));
        }
    }

    /// Puts what kustomizations render to in the place of the files that they read. Where one cannot be rendered here,
    /// its files stay that nothing changes on the way, and the others if there is nothing else.
    fn render_overlays(&mut self, overlays: &Overlays, tops: &BTreeSet<String>) {
        let settings = self.scan.render_settings();
        let (mut rendered, mut unrendered) = (BTreeSet::new(), BTreeSet::new());
        let mut faults = Vec::new();
        for top in tops {
            let (folders, files) = overlays.reach(top);
            self.overlays.extend(folders);
            match self.render_kustomization(top, &settings) {
                Ok(objects) => {
                    rendered.extend(files);
                    let file = file_of(top, &self.scan.kustomizations);
                    self.scan.take_rendered(&file, objects);
                }
                Err(why) => {
                    let (unchanged, changed): (BTreeSet<_>, BTreeSet<_>) = {
                        let unchanged = overlays.unchanged(top);
                        files.into_iter().partition(|file| unchanged.contains(file))
                    };
                    if self.scan.declared().any(|found| unchanged.contains(&found.file)) {
                        self.scan.faults.push(format!(
                            "the kustomization {top} cannot be rendered, so its Applications are taken from their files: {why}"
                        ));
                    }
                    if self.scan.declared().any(|found| changed.contains(&found.file)) {
                        faults
                            .push(format!("the Applications of the kustomization {top} are left out: {why}"));
                    }
                    unrendered.extend(changed);
                }
            }
        }
        self.scan.retain(|found| !rendered.contains(&found.file));
        if self.scan.declared().any(|found| !unrendered.contains(&found.file)) {
            self.scan.retain(|found| !unrendered.contains(&found.file));
            self.scan.faults.extend(faults);
        }
    }

    /// The objects of a kustomization as somebody would apply it by hand.
    fn render_kustomization(&self, folder: &str, settings: &RenderSettings) -> Result<Vec<Value>, String> {
        let path = if folder.is_empty() { "." } else { folder };
        let app = json!({
            "apiVersion": names::API_VERSION, "kind": "Application", "metadata": {"name": "overlay"},
            "spec": {"project": "default", "destination": {"server": names::IN_CLUSTER_SERVER},
                "source": {"repoURL": self.own, "path": path}},
        });
        let app = Application::from_value(&app).map_err(|error| error.to_string())?;
        let rendered = render_one(&app, &self.repositories, false, Some(settings), "");
        let rendered = rendered.map_err(|error| format!("{error:#}"))?;
        Ok(rendered.objects.into_iter().map(|object| object.value).collect())
    }

    /// The folders of this repository that Applications render, with the files that declare those.
    pub(super) fn folders_of_applications(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for found in &self.scan.applications {
            let Ok(app) = Application::from_value(&found.object) else { continue };
            // A source without a path is a chart, or lends its files to another one.
            for source in app.spec.effective_sources().iter().filter(|source| !source.path.is_empty()) {
                if self.repositories.is_given(&source.repo_url)
                    && let Ok(path) = tiphys_vfs::normalize(&source.path)
                {
                    folders.entry(path).or_default().insert(found.file.clone());
                }
            }
        }
        folders
    }
}

impl Scan {
    /// The Applications and ApplicationSets.
    pub(super) fn declared(&self) -> impl Iterator<Item = &Found> {
        self.applications.iter().chain(&self.sets)
    }

    /// Keeps only some of the Applications and ApplicationSets.
    pub(super) fn retain(&mut self, keep: impl Fn(&Found) -> bool) {
        self.applications.retain(&keep);
        self.sets.retain(&keep);
    }

    /// Takes Applications and ApplicationSets that a kustomization renders as if they stood in its file.
    fn take_rendered(&mut self, file: &str, objects: Vec<Value>) {
        for mut object in objects {
            if !matches!(object.kind(), "Application" | "ApplicationSet") {
                continue;
            }
            if let Some(annotations) =
                object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
            {
                annotations.remove(names::TRACKING_ID);
            }
            if let Some(list) = self.list_of(&object) {
                list.push(Found { file: file.to_owned(), line: 1, object });
            }
        }
    }
}

impl Overlays {
    fn read(tree: &dyn FileTree, files: &[String]) -> Self {
        let read = |file: &String| {
            let bytes = tree.read(file).ok()?;
            let content = tiphys_yaml::from_yaml(std::str::from_utf8(&bytes).ok()?).ok()?;
            let folder = parent(file).unwrap_or_default();
            Some((folder.to_owned(), reads(&content, folder)))
        };
        Self(files.iter().filter_map(read).collect())
    }

    /// The files that are patches, and nothing else.
    fn patches(&self) -> BTreeSet<&str> {
        let resources: BTreeSet<&str> =
            self.0.values().flat_map(|reads| &reads.resources).map(String::as_str).collect();
        let patches = self.0.values().flat_map(|reads| &reads.patches).map(String::as_str);
        patches.filter(|file| !resources.contains(file)).collect()
    }

    /// The kustomizations that no other builds on, over a base with a file that declares something that was found.
    fn tops_over(&self, scan: &Scan) -> BTreeSet<String> {
        let bases: BTreeSet<&str> =
            self.0.values().flat_map(|reads| &reads.resources).map(String::as_str).collect();
        let files: BTreeSet<&str> = scan.declared().map(|found| found.file.as_str()).collect();
        let declares = |folder: &str| {
            self.0
                .get(folder)
                .is_some_and(|reads| reads.resources.iter().any(|it| files.contains(it.as_str())))
        };
        let is_over = |top: &str| {
            let (folders, _) = self.reach(top);
            folders.iter().any(|folder| folder != top && declares(folder))
        };
        let tops = self.0.keys().filter(|folder| !bases.contains(folder.as_str()));
        tops.filter(|top| is_over(top)).cloned().collect()
    }

    /// The kustomizations that one builds on, itself included, and the files that they have.
    fn reach(&self, top: &str) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut folders, mut files) = (BTreeSet::new(), BTreeSet::new());
        let mut open = vec![top.to_owned()];
        while let Some(folder) = open.pop() {
            let Some(reads) = self.0.get(&folder) else {
                files.insert(folder);
                continue;
            };
            if folders.insert(folder) {
                open.extend(reads.resources.iter().cloned());
            }
        }
        (folders, files)
    }

    /// The files that a kustomization has as they stand: no kustomization on the way to them changes anything.
    fn unchanged(&self, top: &str) -> BTreeSet<String> {
        let (mut files, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open = vec![top.to_owned()];
        while let Some(folder) = open.pop() {
            match self.0.get(&folder) {
                Some(reads) if !reads.is_changing && seen.insert(folder.clone()) => {
                    open.extend(reads.resources.iter().cloned());
                }
                Some(_) => {}
                None => {
                    files.insert(folder);
                }
            }
        }
        files
    }
}

/// What a kustomization may have that leaves Applications as they are, but for labels, annotations and the namespace,
/// which is the engine's.
const NOT_CHANGING: [&str; 15] = [
    "apiVersion",
    "kind",
    "metadata",
    "namespace",
    "resources",
    "bases",
    "helmCharts",
    "helmGlobals",
    "configMapGenerator",
    "secretGenerator",
    "generatorOptions",
    "labels",
    "commonLabels",
    "commonAnnotations",
    "sortOptions",
];

/// The file that makes a folder a kustomization.
fn file_of(folder: &str, files: &[String]) -> String {
    let of = |file: &&String| parent(file).unwrap_or_default() == folder;
    files.iter().find(of).cloned().unwrap_or_default()
}

fn reads(content: &Value, folder: &str) -> Reads {
    let list = |key: &str| content.get(key).and_then(Value::as_array).into_iter().flatten();
    let path = |entry: &str| join(folder, entry).ok();
    let resources = ["resources", "bases", "components"].into_iter().flat_map(list).filter_map(Value::as_str);
    let merges = list("patchesStrategicMerge").filter_map(Value::as_str);
    let named =
        ["patches", "patchesJson6902"].into_iter().flat_map(list).filter_map(|it| it.str_at(&["path"]));
    let keys = content.as_object().into_iter().flat_map(|map| map.keys());
    Reads {
        is_changing: keys.into_iter().any(|key| !NOT_CHANGING.contains(&key.as_str())),
        resources: resources.filter_map(path).collect(),
        patches: merges.chain(named).filter_map(path).collect(),
    }
}
