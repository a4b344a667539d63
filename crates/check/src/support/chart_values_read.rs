//! What the templates of a chart of this repository read of its values.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use regex::Regex;
use tiphys_graph::Files;
use tiphys_value::{ObjectExt, Value};

use super::pods::{list, text};

/// A path of values: `.Values.image.tag`.
static PATHS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\.Values((?:\.[A-Za-z0-9_]+)*)").ok());
/// A named template that is defined, or called.
static NAMED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"\b(define|block|include|template)\s+(\(?[^\s)}]+)"#).ok());

/// The values of a chart that its templates read.
pub(crate) struct Reads {
    /// Paths such as `image.tag`; what is below one of them is read as a whole.
    paths: BTreeSet<String>,
    /// The chart's own values.
    defaults: Arc<Value>,
    /// Keys that are for dependencies, or for all charts.
    handed_on: BTreeSet<String>,
}

impl Reads {
    /// What the chart of a folder reads; `None` if that cannot be told: it hands on all values, calls what it
    /// does not define, or has no templates.
    pub(crate) fn from_chart(files: &Files, folder: &str) -> Option<Self> {
        let chart = files.value(&format!("{folder}/Chart.yaml"))?;
        let below = format!("{folder}/");
        let of_charts = format!("{folder}/charts/");
        let own = || {
            let paths = files.paths();
            paths.filter(|path| path.starts_with(&below) && !path.starts_with(&of_charts))
        };
        let templates = format!("{folder}/templates/");
        let mut paths = BTreeSet::new();
        let (mut defined, mut called) = (BTreeSet::new(), BTreeSet::new());
        for path in own() {
            // Values may have templates in them, and files that templates render.
            let content = files.text(path)?;
            let is_template = path.starts_with(&templates);
            for found in PATHS.as_ref()?.captures_iter(&content) {
                match found.get(1).map_or("", |it| it.as_str().trim_start_matches('.')) {
                    "" if is_template => return None,
                    "" => {}
                    path => drop(paths.insert(path.to_owned())),
                }
            }
            if is_template {
                names(&content, &mut defined, &mut called)?;
            }
        }
        if paths.is_empty() || !called.is_subset(&defined) {
            return None;
        }
        let defaults = files.value(&format!("{folder}/values.yaml")).unwrap_or_default();
        let mut handed_on: BTreeSet<String> = ["global", "tags"].map(str::to_owned).into();
        for dependency in list(&chart, "dependencies") {
            handed_on.extend([text(dependency, "name"), text(dependency, "alias")].map(str::to_owned));
            let conditions = text(dependency, "condition").split(',');
            handed_on.extend(conditions.filter_map(|it| it.trim().split('.').next()).map(str::to_owned));
        }
        let vendored = files.paths().filter_map(|path| path.strip_prefix(&of_charts)?.split('/').next());
        handed_on.extend(vendored.map(str::to_owned));
        Some(Self { paths, defaults, handed_on })
    }

    /// Whether a value is read: itself, as part of what stands above it, or something below it.
    pub(crate) fn reads_value(&self, path: &[&str]) -> bool {
        self.is_whole(path) || self.is_above(path)
    }

    /// Whether a value is read as it is, itself or as part of what stands above it.
    pub(crate) fn is_whole(&self, path: &[&str]) -> bool {
        (1..=path.len()).any(|end| self.paths.contains(&path[..end].join(".")))
            || path.first().is_some_and(|first| self.handed_on.contains(*first))
    }

    /// Whether something below a value is read.
    fn is_above(&self, path: &[&str]) -> bool {
        let start = format!("{}.", path.join("."));
        self.paths.range(start.clone()..).next().is_some_and(|next| next.starts_with(&start))
    }

    /// Whether the chart's own values have one.
    pub(crate) fn has_default(&self, path: &[&str]) -> bool {
        self.default_of(path).is_some()
    }

    /// What the chart's own values have at a path.
    pub(crate) fn default_of(&self, path: &[&str]) -> Option<&Value> {
        self.defaults.at(path)
    }

    /// The keys that are read just below a path.
    pub(crate) fn keys_below(&self, path: &[&str]) -> BTreeSet<&str> {
        let start = if path.is_empty() { String::new() } else { format!("{}.", path.join(".")) };
        let below = self.paths.iter().filter_map(|it| it.strip_prefix(&start));
        below.filter_map(|rest| rest.split('.').next()).collect()
    }
}

/// The names that a template defines and calls; `None` if one is put together when it is rendered.
fn names(text: &str, defined: &mut BTreeSet<String>, called: &mut BTreeSet<String>) -> Option<()> {
    for found in NAMED.as_ref()?.captures_iter(text) {
        let (word, name) = (&found[1], &found[2]);
        let Some(name) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
            // `include (print $.Template.BasePath "/configmap.yaml") .`, and words of a comment.
            let is_computed = name.starts_with(['(', '$']) && word == "include";
            let rest = &text[found.get(0).map_or(0, |it| it.start())..];
            let line = rest.lines().next().unwrap_or_default();
            if is_computed && !line.contains("Template.BasePath") {
                return None;
            }
            continue;
        };
        if matches!(word, "define" | "block") { &mut *defined } else { &mut *called }.insert(name.to_owned());
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tiphys_graph::Files;
    use tiphys_vfs::MemTree;

    use super::Reads;

    fn reads(template: &str) -> Option<Reads> {
        let files = [
            ("web/Chart.yaml", "name: web\nversion: 1.0.0\ndependencies: [{name: db}]\n"),
            ("web/values.yaml", "image: {tag: x}\nold: 1\n"),
            ("web/templates/a.yaml", template),
        ];
        Reads::from_chart(&Files::list(Arc::new(MemTree::from_files(files)), ""), "web")
    }

    #[test]
    fn what_templates_read_is_known() {
        let reads =
            reads("{{ .Values.image.tag }} {{- with $.Values.pod }}{{ .x }}{{ end }}\n").expect("told");
        assert!(
            reads.reads_value(&["image"])
                && reads.reads_value(&["image", "tag"])
                && reads.reads_value(&["pod", "x", "y"])
        );
        assert!(reads.reads_value(&["db", "user"]) && reads.reads_value(&["global"]));
        assert!(
            !reads.reads_value(&["image", "name"])
                && !reads.reads_value(&["old"])
                && reads.has_default(&["old"])
        );
        assert_eq!(reads.keys_below(&["image"]).into_iter().collect::<Vec<_>>(), ["tag"]);
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        assert!(reads("{{ toYaml .Values }}").is_none());
        assert!(reads("{{ .Values.a }}{{ include \"common.labels\" . }}").is_none());
        assert!(reads("{{ .Values.a }}{{ include (printf \"%s.x\" .Chart.Name) . }}").is_none());
        let checksum = "{{ .Values.a }}{{ include (print $.Template.BasePath \"/b.yaml\") . }}";
        assert!(reads(checksum).is_some());
    }
}
