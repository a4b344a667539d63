//! A Kustomization or HelmRelease of Flux as the Application that renders the same.

use tiphys_model::names;
use tiphys_value::{ObjectExt, Value, json};
use tiphys_vfs::{join, normalize};

use crate::survey::{Files, names::AS_FLUX, names::THIS_REPOSITORY, settings_text};

use super::{generated, sources::Sources};

/// Where what Flux names is looked up.
pub(super) struct TranslationContext<'a> {
    pub files: &'a Files,
    /// Whether an address means this repository.
    pub is_given: &'a dyn Fn(&str) -> bool,
    /// The sources that are this repository.
    pub sources: &'a Sources,
    /// An object by kind, namespace and name; `None` if there is none, or nobody knows which of several is
    /// meant.
    pub find: &'a dyn Fn(&str, &str, &str) -> Option<Value>,
}

/// What an object of Flux's comes to.
pub(super) struct Translated {
    pub application: Value,
    /// Why nothing is rendered at all.
    pub unseen: Option<String>,
    /// Why what is rendered need not be all, or as it will be.
    pub open: Option<String>,
}

/// Whether an object makes Flux apply others.
pub(super) fn is_unit(object: &Value) -> bool {
    matches!(
        (object.api_version().split('/').next().unwrap_or_default(), object.kind()),
        ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("helm.toolkit.fluxcd.io", "HelmRelease")
    )
}

/// The Application of an object.
pub(super) fn translate(object: &Value, scope: &TranslationContext<'_>) -> Translated {
    let spec = &object["spec"];
    let mut open = None;
    let source = if object.kind() == "HelmRelease" {
        release(object, scope, &mut open)
    } else {
        kustomization(object, scope)
    };
    let given = spec["targetNamespace"].as_str().filter(|namespace| !namespace.is_empty());
    // A Kustomization puts nothing into its own namespace but what it is told to.
    let namespace = given.or(Some(object.namespace()).filter(|_| object.kind() == "HelmRelease"));
    let namespace = namespace.filter(|namespace| !namespace.contains("${")).unwrap_or_default();
    let cluster = spec.str_at(&["kubeConfig", "secretRef", "name"]).unwrap_or_default();
    let (source, unseen) = match source {
        Ok(source) => (source, None),
        Err(why) => (json!({"repoURL": THIS_REPOSITORY}), Some(why)),
    };
    let application = json!({
        "apiVersion": names::API_VERSION,
        "kind": "Application",
        "metadata": {"name": object.name()},
        "spec": {"project": "default", "destination": {"namespace": namespace, "name": cluster}, "source": source},
    });
    Translated { application, unseen, open }
}

/// The source of a Kustomization, or why it is not known.
fn kustomization(object: &Value, scope: &TranslationContext<'_>) -> Result<Value, String> {
    let spec = &object["spec"];
    let path = spec["path"].as_str().unwrap_or_default();
    if path.contains("${") {
        return Err(format!("the path {path} has still to be filled in"));
    }
    if spec.get("patchesStrategicMerge").is_some() || spec.get("patchesJson6902").is_some() {
        return Err("its patches are of an old kind".to_owned());
    }
    let mut folder = normalize(path.trim_start_matches('/')).map_err(|error| error.to_string())?;
    let mut source = repository(&spec["sourceRef"], object.namespace(), scope)?;
    if source["repoURL"] == THIS_REPOSITORY {
        folder = scope.sources.folder(object).unwrap_or(folder);
        if !folder.is_empty() && !scope.files.has_folder(&folder) {
            return Err(format!("there is no folder {folder}"));
        }
        let is_kustomization =
            |name: &&str| join(&folder, name).is_ok_and(|path| scope.files.contains(&path));
        if !tiphys_kustomize::FILE_NAMES.iter().any(is_kustomization) {
            let from = source_of(&spec["sourceRef"], object.namespace(), scope);
            let ignore = from.as_ref().and_then(|source| source.str_at(&["spec", "ignore"]));
            source["targetRevision"] = json!(generated::revision(scope.files, &folder, ignore));
        }
    }
    source["path"] = json!(if folder.is_empty() { "." } else { &folder });
    let mut options = json!({"version": AS_FLUX});
    for (from, to) in [
        ("targetNamespace", "namespace"),
        ("namePrefix", "namePrefix"),
        ("nameSuffix", "nameSuffix"),
        ("components", "components"),
        ("patches", "patches"),
    ] {
        if let Some(value) = spec.get(from) {
            options[to] = value.clone();
        }
    }
    if let Some(labels) = spec.at(&["commonMetadata", "labels"]) {
        options["commonLabels"] = labels.clone();
        options["labelWithoutSelector"] = json!(true);
        // Flux puts its labels over those that a kustomization gives.
        options["forceCommonLabels"] = json!(true);
    }
    source["kustomize"] = options;
    Ok(source)
}

/// The object that a reference in a namespace leads to, if it is known.
fn source_of(reference: &Value, near: &str, scope: &TranslationContext<'_>) -> Option<Value> {
    let text = |field: &str| reference[field].as_str();
    (scope.find)(text("kind")?, text("namespace").unwrap_or(near), text("name")?)
}

/// The repository that a reference to a source means.
fn repository(reference: &Value, near: &str, scope: &TranslationContext<'_>) -> Result<Value, String> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    if scope.sources.start(kind, name).is_some() {
        return Ok(json!({"repoURL": THIS_REPOSITORY}));
    }
    let found = source_of(reference, near, scope).filter(|_| kind == "GitRepository");
    let Some(found) = found else { return Err(format!("what {kind} {name} holds")) };
    let url = found.str_at(&["spec", "url"]).unwrap_or_default();
    if (scope.is_given)(url) {
        return Ok(json!({"repoURL": THIS_REPOSITORY}));
    }
    let revision =
        ["commit", "tag", "semver", "branch"].iter().find_map(|it| found.str_at(&["spec", "ref", it]));
    Ok(json!({"repoURL": url, "targetRevision": revision.unwrap_or("HEAD")}))
}

/// The source of a HelmRelease, or why it is not known.
fn release(
    object: &Value,
    scope: &TranslationContext<'_>,
    open: &mut Option<String>,
) -> Result<Value, String> {
    let spec = &object["spec"];
    if spec["postRenderers"].as_array().is_some_and(|it| !it.is_empty()) {
        return Err("what its postRenderers make".to_owned());
    }
    let mut source = match spec.get("chartRef") {
        Some(reference) => chart_of_reference(reference, object.namespace(), scope)?,
        None => chart(&spec["chart"]["spec"], object.namespace(), scope)?,
    };
    let target = spec["targetNamespace"].as_str();
    let usual =
        target.map_or_else(|| object.name().to_owned(), |target| format!("{target}-{}", object.name()));
    let name = spec["releaseName"].as_str().unwrap_or(&usual);
    source["helm"] = json!({"releaseName": name, "valuesObject": values(object, scope, open)});
    Ok(source)
}

/// The chart of a `chart.spec`.
fn chart(spec: &Value, near: &str, scope: &TranslationContext<'_>) -> Result<Value, String> {
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    let reference = &spec["sourceRef"];
    let (kind, name) =
        (reference["kind"].as_str().unwrap_or_default(), reference["name"].as_str().unwrap_or_default());
    if ["valuesFiles", "valuesFile"].iter().any(|field| spec.get(field).is_some()) {
        return Err("its values files".to_owned());
    }
    if kind != "HelmRepository" {
        let mut source = repository(reference, near, scope)?;
        source["path"] =
            json!(normalize(text("chart").trim_start_matches('/')).map_err(|it| it.to_string())?);
        return Ok(source);
    }
    let namespace = reference["namespace"].as_str().unwrap_or(near);
    let found = (scope.find)(kind, namespace, name).ok_or_else(|| format!("what {kind} {name} holds"))?;
    let url = found.str_at(&["spec", "url"]).unwrap_or_default();
    let version = if text("version").is_empty() { "*" } else { text("version") };
    Ok(
        json!({"repoURL": url.trim_start_matches("oci://"), "chart": text("chart"), "targetRevision": version}),
    )
}

/// The chart of a `chartRef`.
fn chart_of_reference(
    reference: &Value,
    near: &str,
    scope: &TranslationContext<'_>,
) -> Result<Value, String> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let namespace = reference["namespace"].as_str().unwrap_or(near);
    let why = || format!("what {kind} {name} holds");
    let found = (scope.find)(kind, namespace, name).filter(|_| kind == "OCIRepository").ok_or_else(why)?;
    let url = found.str_at(&["spec", "url"]).unwrap_or_default().trim_start_matches("oci://");
    let (registry, chart) = url.rsplit_once('/').ok_or_else(why)?;
    let version = ["tag", "semver"].iter().find_map(|it| found.str_at(&["spec", "ref", it])).unwrap_or("*");
    Ok(json!({"repoURL": registry, "chart": chart, "targetRevision": version}))
}

/// The values of a HelmRelease: those that it refers to in their order, then its own.
fn values(object: &Value, scope: &TranslationContext<'_>, open: &mut Option<String>) -> Value {
    let spec = &object["spec"];
    let mut values = json!({});
    for entry in spec["valuesFrom"].as_array().into_iter().flatten() {
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let key = entry["valuesKey"].as_str().unwrap_or("values.yaml");
        let found = (scope.find)(kind, object.namespace(), name)
            .filter(|it| text("targetPath").is_empty() && it.get("sops").is_none());
        let read = found.and_then(|it| tiphys_yaml::from_yaml(&settings_text(&it, key)?).ok());
        match read {
            Some(read) => values = merged(values, &read),
            None => *open = Some(format!("the values of {kind} {name}")),
        }
    }
    merged(values, &spec["values"])
}

/// Values with others merged over them, as Helm does it: maps are merged, and `null` takes a key away.
fn merged(values: Value, over: &Value) -> Value {
    match (values, over) {
        (Value::Object(mut own), Value::Object(others)) => {
            for (key, value) in others {
                let before = own.remove(key).unwrap_or_default();
                own.insert(key.clone(), merged(before, value));
            }
            Value::Object(own)
        }
        (values, Value::Null) => values,
        (_, over) => over.clone(),
    }
}
