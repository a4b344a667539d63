//! What stands in manifest files: Applications, ApplicationSets, AppProjects, and every other object.

use std::{collections::HashMap, sync::Arc};
use tiphys_model::names;
use tiphys_render::{RenderError, manifest};

use tiphys_value::{ObjectExt, RenderLimits, RenderedObject, Value, origin_bytes, value_bytes};
use tiphys_vfs::FileTree as _;

use super::{Files, UnreadableFile};

const MANIFESTS: [&str; 3] = [".yaml", ".yml", ".json"];

/// What stands in the manifest files of a repository.
#[derive(Default)]
pub(super) struct Manifests {
    /// Every object, in the order of the files.
    pub objects: Vec<Arc<RenderedObject>>,
    /// The files that do not parse and are no templates.
    pub faults: Vec<UnreadableFile>,
    /// The same by file, for a survey to come.
    pub parsed: HashMap<Arc<str>, Arc<Parsed>>,
    /// The files that are not read, because those before them take all the memory that manifests may.
    pub left_out: Vec<Arc<str>>,
}

/// What one text says.
pub(super) struct Parsed {
    text: Arc<str>,
    objects: Vec<Arc<RenderedObject>>,
    fault: Option<UnreadableFile>,
    /// What the objects take in memory, about.
    bytes: u64,
}

/// What all manifest files may take in memory, in bytes: a third more than what the objects of one
/// Application may, so that both together stay below a gigabyte. By default some 16 MB of YAML or more; the
/// largest of 140 public repositories takes a third of it.
fn memory_of_all() -> u64 {
    let of_one = RenderLimits::current().memory;
    of_one.saturating_add(of_one / 3)
}

/// Reads the manifest files: those that hold `apiVersion` and `kind`. Texts that were parsed before are not
/// parsed again.
pub(super) fn read(files: &Files, kept: &HashMap<Arc<str>, Arc<Parsed>>) -> Manifests {
    read_within(files, kept, memory_of_all())
}

/// Reads manifest files as long as they take no more memory, in bytes, about.
fn read_within(files: &Files, kept: &HashMap<Arc<str>, Arc<Parsed>>, memory: u64) -> Manifests {
    let mut found = Manifests::default();
    let mut left = memory;
    for path in files.ending(&MANIFESTS) {
        let Some(text) = files.text(path) else {
            found.faults.extend(unreadable(files, path));
            continue;
        };
        let known = kept.get(path).filter(|parsed| Arc::ptr_eq(&parsed.text, &text) || parsed.text == text);
        let parsed = match known {
            Some(parsed) => parsed.clone(),
            None if !is_candidate(path, &text) => continue,
            None if left == 0 => {
                found.left_out.push(path.clone());
                continue;
            }
            None => Arc::new(parse(path, text)),
        };
        left = left.saturating_sub(parsed.bytes);
        found.objects.extend(parsed.objects.iter().cloned());
        found.faults.extend(parsed.fault.clone());
        found.parsed.insert(path.clone(), parsed);
    }
    found
}

fn parse(path: &str, text: Arc<str>) -> Parsed {
    let (objects, fault) = match manifest::parse_objects(path, &text, true) {
        Ok(objects) => (objects, None),
        // Templates of charts are no manifests.
        Err(_) if is_template(&text) => (Vec::new(), None),
        Err(error) => {
            // What parses but is no object is some other tool's file.
            let is_syntax = error.diagnostic().is_none_or(|diagnostic| diagnostic.rule != "no-object");
            let is_manifest = is_syntax && manifest::looks_like_manifest(&text) && !is_other_tools(&text);
            // Of a key that is set twice Argo CD takes the last.
            let objects = manifest::parse_objects_as_argo_cd(path, &text, true, &mut Vec::new());
            let ours = objects.unwrap_or_default().into_iter().filter(|it| is_of_argo_cd(&it.value));
            (ours.collect(), Some(UnreadableFile { file: path.to_owned(), error, is_manifest }))
        }
    };
    let objects: Vec<_> = objects.into_iter().filter(is_manifest).map(Arc::new).collect();
    let bytes = objects.iter().map(|it| value_bytes(&it.value) + origin_bytes(&it.value)).sum();
    Parsed { text, objects, fault, bytes }
}

/// Whether an object is an Application, an ApplicationSet or an AppProject.
fn is_of_argo_cd(object: &Value) -> bool {
    object.api_version() == names::API_VERSION
        && matches!(object.kind(), "Application" | "ApplicationSet" | "AppProject")
}

/// Whether a text that does not parse was meant to hold an Application, ApplicationSet or AppProject. What
/// names such a kind further in only speaks of one: a result of `kubectl get`, a list of test data.
pub fn was_to_declare(text: &str) -> bool {
    text.lines().any(|line| {
        let kind = line.strip_prefix("kind:").map(|kind| kind.trim().trim_matches(['"', '\'']));
        kind.is_some_and(|kind| kind.starts_with("Application") || kind.starts_with("AppProject"))
    })
}

/// Whether a text is none of YAML before something else has filled it in: an action of a template stands
/// where a key, an item or a value begins. In the texts of an ApplicationSet one may stand anywhere.
fn is_template(text: &str) -> bool {
    let begins = |before: &str| {
        let is_item = before.trim_matches([' ', '-']).is_empty();
        is_item || before.ends_with(": ") || before.trim_end().ends_with([',', '[', '{'])
    };
    let is_action = |line: &str| line.match_indices("{{").any(|(at, _)| begins(&line[..at]));
    text.contains("{%") || text.lines().any(is_action)
}

/// Whether a file lies among the templates of a chart.
pub(super) fn is_chart_template(files: &Files, path: &str) -> bool {
    const FOLDER: &str = "templates/";
    let mut charts = path.match_indices(FOLDER).map(|(at, _)| format!("{}Chart.yaml", &path[..at]));
    charts.any(|chart| files.tree().is_file(&chart))
}

/// Why a YAML file that is no text may hold a manifest nevertheless. What git-crypt keeps says nothing.
fn unreadable(files: &Files, path: &str) -> Option<UnreadableFile> {
    if path.ends_with(".json") {
        return None;
    }
    let error = match files.tree().read(path) {
        Ok(bytes) => {
            // Every other byte of UTF-16 is a zero where the text is ASCII.
            let plain: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
            let is_manifest =
                plain.windows(10).any(|at| at == b"apiVersion") && !plain.starts_with(b"GITCRYPT");
            if !is_manifest {
                return None;
            }
            format!("{path}: this is no UTF-8 text")
        }
        Err(error) => error.to_string(),
    };
    Some(UnreadableFile { file: path.to_owned(), error: RenderError::new(error), is_manifest: true })
}

/// Whether a text may hold manifests. Schemas and lock files in JSON are large and never do.
fn is_candidate(path: &str, text: &str) -> bool {
    const LARGEST_JSON: usize = 1 << 20;
    if path.ends_with(".json") && (text.len() > LARGEST_JSON || !text.contains("\"apiVersion\"")) {
        return false;
    }
    text.contains("apiVersion") && text.contains("kind")
}

/// API versions of the files of tools, which have a kind too but are not sent to a cluster.
const NOT_SENT: [&str; 7] = [
    "kustomize.config.k8s.io/",
    "builtin",
    "kind.x-k8s.io/",
    "skaffold/",
    "k3d.io/",
    "ctlptl.dev/",
    "config.kubernetes.io/",
];

/// Whether a text that does not parse is a tool's file.
fn is_other_tools(text: &str) -> bool {
    let mut versions = text.lines().filter_map(|line| line.strip_prefix("apiVersion:"));
    versions.any(|version| NOT_SENT.iter().any(|prefix| version.trim().starts_with(prefix)))
}

/// Whether an object is sent to a cluster.
fn is_manifest(object: &RenderedObject) -> bool {
    let api_version = object.value.api_version();
    !object.value.kind().is_empty() && !NOT_SENT.iter().any(|prefix| api_version.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc};

    use tiphys_vfs::MemTree;

    use super::{Files, is_template, read_within};

    #[test]
    fn what_is_over_the_memory_of_manifests_is_left_out_and_named() {
        let of_one = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
        let mut tree = MemTree::default();
        for name in ["a", "b", "c"] {
            tree.insert(&format!("{name}.yaml"), of_one(name).into_bytes()).unwrap();
        }
        let files = Files::list(Arc::new(tree), "");
        let names = |memory| {
            let found = read_within(&files, &HashMap::new(), memory);
            let left_out: Vec<String> = found.left_out.iter().map(ToString::to_string).collect();
            (found.objects.len(), left_out.join(" "))
        };
        assert_eq!(names(1), (1, "b.yaml c.yaml".to_owned()));
        assert_eq!(names(1 << 20), (3, String::new()));
    }

    #[test]
    fn a_template_is_told_from_the_texts_of_a_set() {
        assert!(is_template("name: {{ .Values.name }}") && is_template("- {{ x }}"));
        assert!(is_template("{{ if x }}\na: b") && is_template("{% if x %}"));
        let set = "name: shop-{{name}}\nimage: 'x:{{tag}}'\npath: apps/{{path}}\nnote: \"{{x}}\"";
        assert!(!is_template(set));
    }
}
