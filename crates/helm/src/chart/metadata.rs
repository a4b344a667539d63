//! `Chart.yaml`, `requirements.yaml` and their lock files.

use std::collections::BTreeMap;

use tiphys_gocompat::{strconv::quote, unicode::is_print};

use crate::semver::is_version;
use tiphys_value::{Map, Value};

use super::decode::{Field, is_field, mapping};

/// `Chart.yaml` (Helm documentation, "The Chart.yaml File").
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Name of the chart, or its alias once dependencies are processed.
    pub name: String,
    /// URL of the project.
    pub home: String,
    /// URLs of source code.
    pub sources: Vec<String>,
    /// SemVer 2 version.
    pub version: String,
    /// One sentence.
    pub description: String,
    /// Keywords.
    pub keywords: Vec<String>,
    /// People.
    pub maintainers: Vec<Maintainer>,
    /// URL of an icon.
    pub icon: String,
    /// `v1` or `v2`.
    pub api_version: String,
    /// Not used by Helm, shown to templates.
    pub condition: String,
    /// Not used by Helm, shown to templates.
    pub tags: String,
    /// Version of what the chart installs.
    pub app_version: String,
    /// Whether the chart is deprecated.
    pub deprecated: bool,
    /// Free annotations; `None` if the field is absent, which templates can tell.
    pub annotations: Option<BTreeMap<String, String>>,
    /// SemVer constraint on the cluster's version.
    pub kube_version: String,
    /// Charts that this one needs.
    pub dependencies: Vec<Dependency>,
    /// Whether `dependencies` is a list, be it empty; Helm looks into the charts below only then.
    pub names_dependencies: bool,
    /// `application`, `library` or empty.
    pub chart_type: String,
}

/// A maintainer in `Chart.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintainer {
    /// Name.
    pub name: String,
    /// Address.
    pub email: String,
    /// Page.
    pub url: String,
}

/// A dependency in `Chart.yaml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependency {
    /// Name of the chart, or its alias once dependencies are processed.
    pub name: String,
    /// SemVer constraint, or a version in lock files.
    pub version: String,
    /// Where to fetch it from.
    pub repository: String,
    /// Comma-separated paths in values; the first that is a boolean decides.
    pub condition: String,
    /// Tags by which `tags.<tag>` in values switches groups.
    pub tags: Vec<String>,
    /// Result of conditions and tags.
    pub enabled: bool,
    /// What to import from the subchart's values: names under `exports`, or `child`/`parent` pairs.
    pub import_values: Vec<Value>,
    /// Name to use instead of the chart's.
    pub alias: String,
    /// Whether the entry is `null`, which validation refuses.
    pub(crate) is_null: bool,
}

/// `Chart.lock`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lock {
    /// `sha256:` of the dependencies in `Chart.yaml` and of those here.
    pub digest: String,
    /// Exact versions.
    pub dependencies: Vec<Dependency>,
}

impl Metadata {
    /// Reads fields of a YAML text over those that are set.
    ///
    /// # Errors
    /// Go's text for a field of another type.
    pub(crate) fn read(&mut self, text: &[u8]) -> Result<(), String> {
        for (key, value) in &mapping(text, "v2.Metadata")? {
            self.read_field(key, value)?;
        }
        Ok(())
    }

    fn read_field(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let strings: [(&str, &mut String); 11] = [
            ("name", &mut self.name),
            ("home", &mut self.home),
            ("version", &mut self.version),
            ("description", &mut self.description),
            ("icon", &mut self.icon),
            ("apiVersion", &mut self.api_version),
            ("condition", &mut self.condition),
            ("tags", &mut self.tags),
            ("appVersion", &mut self.app_version),
            ("kubeVersion", &mut self.kube_version),
            ("type", &mut self.chart_type),
        ];
        for (name, target) in strings {
            if is_field(key, name) {
                return Field { path: &format!("Metadata.{name}") }.string(value, target);
            }
        }
        if is_field(key, "sources") {
            return Field { path: "Metadata.sources" }.strings(value, &mut self.sources);
        }
        if is_field(key, "keywords") {
            return Field { path: "Metadata.keywords" }.strings(value, &mut self.keywords);
        }
        if is_field(key, "deprecated") {
            return Field { path: "Metadata.deprecated" }.bool(value, &mut self.deprecated);
        }
        if is_field(key, "annotations") {
            return Field { path: "Metadata.annotations" }.string_map(value, &mut self.annotations);
        }
        if is_field(key, "maintainers") {
            return self.read_maintainers(value);
        }
        if is_field(key, "dependencies") {
            self.names_dependencies = value.is_array();
            return read_dependencies(value, "Metadata.dependencies", &mut self.dependencies);
        }
        Ok(())
    }

    fn read_maintainers(&mut self, value: &Value) -> Result<(), String> {
        let field = Field { path: "Metadata.maintainers" };
        let Some(items) = field.items(value, "[]*v2.Maintainer")? else { return Ok(()) };
        self.maintainers.clear();
        for item in items {
            let mut maintainer = Maintainer::default();
            for (key, value) in field.entries(item, "v2.Maintainer")?.into_iter().flatten() {
                for (name, target) in [
                    ("name", &mut maintainer.name),
                    ("email", &mut maintainer.email),
                    ("url", &mut maintainer.url),
                ] {
                    if is_field(key, name) {
                        Field { path: &format!("Maintainer.maintainers.{name}") }.string(value, target)?;
                    }
                }
            }
            self.maintainers.push(maintainer);
        }
        Ok(())
    }

    /// Cleans texts of control characters and checks the fields, as Helm's `Validate`.
    ///
    /// # Errors
    /// Helm's text, `validation: …`.
    pub(crate) fn validate(&mut self) -> Result<(), String> {
        for text in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ] {
            sanitize(text);
        }
        self.sources.iter_mut().chain(&mut self.keywords).for_each(sanitize);
        let fail = |text: String| Err(format!("validation: {text}"));
        if self.api_version.is_empty() {
            return fail("chart.metadata.apiVersion is required".to_owned());
        }
        if self.name.is_empty() {
            return fail("chart.metadata.name is required".to_owned());
        }
        if self.name == "." || self.name == ".." {
            return fail(format!("chart.metadata.name {} is not allowed", quote(&self.name)));
        }
        if self.name.contains('/') {
            return fail(format!("chart.metadata.name {} is invalid", quote(&self.name)));
        }
        if self.version.is_empty() {
            return fail("chart.metadata.version is required".to_owned());
        }
        if !is_version(&self.version) {
            return fail(format!("chart.metadata.version {} is invalid", quote(&self.version)));
        }
        if !matches!(self.chart_type.as_str(), "" | "application" | "library") {
            return fail("chart.metadata.type must be application or library".to_owned());
        }
        for person in &mut self.maintainers {
            [&mut person.name, &mut person.email, &mut person.url].into_iter().for_each(sanitize);
        }
        self.validate_dependencies()
    }

    fn validate_dependencies(&mut self) -> Result<(), String> {
        let mut seen = Vec::new();
        for dependency in &mut self.dependencies {
            if dependency.is_null {
                return Err("validation: dependencies must not contain empty or null nodes".to_owned());
            }
            dependency.sanitize();
            if !dependency.alias.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
                return Err(format!(
                    "validation: dependency {} has disallowed characters in the alias",
                    quote(&dependency.name)
                ));
            }
            let key = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            if seen.contains(key) {
                return Err(format!(
                    "validation: more than one dependency with name or alias {}",
                    quote(key)
                ));
            }
            seen.push(key.clone());
        }
        Ok(())
    }
}

impl Dependency {
    fn sanitize(&mut self) {
        for text in [&mut self.name, &mut self.version, &mut self.repository, &mut self.condition] {
            sanitize(text);
        }
        self.tags.iter_mut().for_each(sanitize);
    }

    fn read(map: &Map<String, Value>) -> Result<Self, String> {
        // Go names the innermost type, then the way from the outermost.
        const PATH: &str = "Dependency.dependencies";
        let mut read = Self::default();
        for (key, value) in map {
            for (name, target) in [
                ("name", &mut read.name),
                ("version", &mut read.version),
                ("repository", &mut read.repository),
                ("condition", &mut read.condition),
                ("alias", &mut read.alias),
            ] {
                if is_field(key, name) {
                    Field { path: &format!("{PATH}.{name}") }.string(value, target)?;
                }
            }
            if is_field(key, "tags") {
                Field { path: &format!("{PATH}.tags") }.strings(value, &mut read.tags)?;
            } else if is_field(key, "enabled") {
                Field { path: &format!("{PATH}.enabled") }.bool(value, &mut read.enabled)?;
            } else if is_field(key, "import-values") {
                let path = format!("{PATH}.import-values");
                let items = Field { path: &path }.items(value, "[]interface {}")?;
                read.import_values = items.unwrap_or_default().to_vec();
            }
        }
        Ok(read)
    }
}

fn read_dependencies(value: &Value, path: &str, target: &mut Vec<Dependency>) -> Result<(), String> {
    let field = Field { path };
    let Some(items) = field.items(value, "[]*v2.Dependency")? else { return Ok(()) };
    target.clear();
    for item in items {
        let entry = match field.entries(item, "v2.Dependency")? {
            Some(map) => Dependency::read(map)?,
            None => Dependency { is_null: true, ..Dependency::default() },
        };
        target.push(entry);
    }
    Ok(())
}

impl Lock {
    /// Reads a lock file.
    ///
    /// # Errors
    /// Go's text for a field of another type.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let mut lock = Self::default();
        for (key, value) in &mapping(text, "v2.Lock")? {
            if is_field(key, "digest") {
                Field { path: "Lock.digest" }.string(value, &mut lock.digest)?;
            } else if is_field(key, "dependencies") {
                read_dependencies(value, "Lock.dependencies", &mut lock.dependencies)?;
            }
        }
        Ok(lock)
    }
}

/// Spaces of any kind become blanks; what cannot be printed is dropped.
fn sanitize(text: &mut String) {
    if text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        return;
    }
    *text = text
        .chars()
        .filter(|c| c.is_whitespace() || is_print(*c))
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Metadata, String> {
        let mut metadata = Metadata::default();
        metadata.read(text.as_bytes())?;
        metadata.validate()?;
        Ok(metadata)
    }

    #[test]
    fn scalars_become_strings_and_field_names_have_any_case() {
        let metadata = read("apiversion: v2\nname: a\nversion: 1.10\nAppVersion: 7\n").unwrap();
        assert_eq!((&*metadata.version, &*metadata.app_version, &*metadata.api_version), ("1.1", "7", "v2"));
    }

    #[test]
    fn a_commit_that_yaml_takes_for_a_float_is_printed_as_helm_prints_it() {
        for (given, expected) in [
            ("31225e2", "3.1225e+06"),
            ("1e3", "1000"),
            ("12345678.0", "1.2345678e+07"),
            ("123_456.789", "123456.79"),
        ] {
            let metadata =
                read(&format!("apiVersion: v2\nname: a\nversion: 1.0.0\nappVersion: {given}\n")).unwrap();
            assert_eq!(&*metadata.app_version, expected, "{given}");
        }
    }

    #[test]
    fn marks_that_no_one_sees_are_dropped() {
        let name = "\"a\\e[31mx\\u202Ey\\u200Bz\\x9Bm\\u00ADs\\uE000 \\u2003é\"";
        let metadata = read(&format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n")).unwrap();
        assert_eq!(&*metadata.name, "a[31mxyzms  é");
    }

    #[test]
    fn faults_read_as_helms_do() {
        for (text, expected) in [
            ("apiVersion: v2\nversion: 1.0.0", "validation: chart.metadata.name is required"),
            ("apiVersion: v2\nname: a", "validation: chart.metadata.version is required"),
            (
                "apiVersion: v2\nname: a/b\nversion: 1.0.0",
                "validation: chart.metadata.name \"a/b\" is invalid",
            ),
            (
                "apiVersion: v2\nname: a\nversion: 1.0.0\ntype: x",
                "validation: chart.metadata.type must be application or library",
            ),
            (
                "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: b}, {name: c, alias: b}]",
                "validation: more than one dependency with name or alias \"b\"",
            ),
            (
                "name: {a: b}",
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into Go struct field Metadata.name of type string",
            ),
        ] {
            assert_eq!(read(text).map(|_| ()), Err(expected.to_owned()), "{text}");
        }
    }
}
