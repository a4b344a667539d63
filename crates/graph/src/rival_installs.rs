//! What an Application and another tool of the repository install both (incident B1).

use std::collections::BTreeSet;

use tiphys_value::{ObjectExt, ResourceKey, Value};
use tiphys_vfs::is_below;

use crate::{
    App, Object, Survey,
    edges::pod_spec,
    tools::{Component, What, Writer},
};

/// What an Application installs, to be held against what other tools do.
pub struct Installed<'a> {
    survey: &'a Survey,
    app: &'a App,
    components: BTreeSet<&'static str>,
}

/// What an Application and a tool install both.
pub struct Shared<'a> {
    /// The well-known component that both install.
    pub component: Option<&'static Component>,
    /// The objects that the tool is known to write and the Application renders.
    pub objects: Vec<&'a Object>,
}

impl<'a> Installed<'a> {
    /// What an Application of a survey installs.
    pub fn of_app(survey: &'a Survey, app: &'a App) -> Self {
        Self { survey, app, components: components(survey, app) }
    }

    /// What a tool installs of it, too; nothing if the tool's file is for another environment.
    pub fn shared_with(&self, writer: &Writer) -> Option<Shared<'a>> {
        if is_of_another_environment(self.app, &writer.span.file) {
            return None;
        }
        let component = writer.component().filter(|it| self.components.contains(it.name));
        let is_written = |own: &ResourceKey| writer.objects().iter().any(|key| is_same(own, key, writer));
        let objects: Vec<_> =
            self.survey.objects_of(self.app.id).filter(|object| is_written(&object.key)).collect();
        (component.is_some() || !objects.is_empty()).then_some(Shared { component, objects })
    }
}

/// What an Application installs: by its charts and by the images that it runs.
fn components(survey: &Survey, app: &App) -> BTreeSet<&'static str> {
    let sources = app.application.spec.effective_sources();
    let charts = sources.iter().filter_map(|source| Component::of_chart(&source.chart));
    let mut found: BTreeSet<&'static str> = charts.map(|component| component.name).collect();
    for object in survey.objects_of(app.id) {
        let Some((spec, _)) = pod_spec(object.value()) else { continue };
        let containers = spec.get("containers").and_then(Value::as_array).into_iter().flatten();
        let images = containers.filter_map(|container| container.str_at(&["image"]));
        found.extend(images.filter_map(Component::of_image).map(|component| component.name));
    }
    found
}

/// Whether a file is for another environment than an Application: both say which, and it is not the same; or
/// the file is for trying things out, and the Application does not say that it is, too.
fn is_of_another_environment(app: &App, file: &str) -> bool {
    let of_file = environments_in(file);
    if of_file.is_empty() {
        return false;
    }
    let spec = &app.application.spec;
    let destination = &spec.destination;
    let sources = spec.effective_sources();
    let texts = [app.name(), &app.declared.location.file, &destination.namespace, &destination.name];
    let paths = sources.iter().flat_map(|it| {
        let values = it.helm.iter().flat_map(|helm| helm.value_files.iter().map(String::as_str));
        std::iter::once(it.path.as_str()).chain(values)
    });
    let of_app: BTreeSet<&str> = texts.into_iter().chain(paths).flat_map(environments_in).collect();
    let is_for_trials = of_file.iter().all(|it| matches!(*it, "dev" | "local"));
    of_file.is_disjoint(&of_app) && (is_for_trials || !of_app.is_empty())
}

/// The environments that a path or name speaks of, each by one word.
fn environments_in(text: &str) -> BTreeSet<&'static str> {
    let words = text.split(['/', '.', '-', '_']);
    words
        .filter_map(|word| match word {
            "dev" | "develop" | "development" => Some("dev"),
            "local" | "localhost" | "kind" | "k3d" | "minikube" => Some("local"),
            "qa" | "test" | "testing" | "uat" => Some("test"),
            "stage" | "staging" | "stg" => Some("staging"),
            "prod" | "production" | "prd" | "live" => Some("prod"),
            _ => None,
        })
        .collect()
}

/// Whether an object of an Application is the one that a tool writes.
fn is_same(own: &ResourceKey, written: &ResourceKey, writer: &Writer) -> bool {
    // Namespaces are declared everywhere, and Applications are handed over by whatever installs Argo CD.
    if matches!(own.kind.as_str(), "Namespace" | "Application" | "ApplicationSet" | "AppProject") {
        return false;
    }
    let namespace = match (written.namespace.as_str(), &writer.namespace) {
        ("", Some(named)) => named.as_str(),
        (namespace, _) => namespace,
    };
    is_kind(&own.kind, &written.kind)
        && own.name == written.name
        && (written.group.is_empty() || own.group == written.group)
        && (own.namespace.is_empty() || own.namespace == namespace)
}

/// Whether a tool applies the very file from which an Application renders an object, to begin with: both set
/// the same.
pub fn is_same_file(object: &Object, writer: &Writer) -> bool {
    let What::Path { path, .. } = &writer.what else { return false };
    let file = object.rendered.location.file.as_ref();
    file == path || is_below(file, path)
}

/// Whether a word of a command line, such as `deploy`, `deployments` or `deployment.apps`, means a kind.
fn is_kind(kind: &str, word: &str) -> bool {
    let word = word.split('.').next().unwrap_or(word).to_lowercase();
    let kind = kind.to_lowercase();
    let short = match word.as_str() {
        "cm" => "configmap",
        "deploy" => "deployment",
        "ds" => "daemonset",
        "ing" => "ingress",
        "sts" => "statefulset",
        "svc" => "service",
        word => word,
    };
    short == kind || short.strip_suffix('s') == Some(kind.as_str())
}
