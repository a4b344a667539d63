//! # A file that is needed, and that its kustomization does not name
//!
//! A kustomization takes what it names. A Secret, a ServiceAccount, a Gateway, a chart repository or a
//! Namespace whose file lies beside it, and is not named, is never applied; what reads from it waits. The
//! rule speaks where something of the same cluster needs the object of such a file and nothing else makes it.
//!
//! People see: `HelmRepository.source.toolkit.fluxcd.io "charts" not found`, `secret "shop" not found`,
//! `namespaces "shop" not found`, `serviceaccount "shop" not found`.
//!
//! ## Bad
//! ```yaml
//! # kustomization.yaml, beside secret.yaml with the Secret that deployment.yaml reads
//! resources: [deployment.yaml]
//! ```
//! ## Good
//! ```yaml
//! resources: [deployment.yaml, secret.yaml]
//! ```
//! ## When to suppress
//! Where somebody applies the file by hand.

use std::collections::{BTreeMap, HashMap};

use tiphys_diag::Severity;
use tiphys_graph::{App, Object, ObjectScope, Survey};
use tiphys_kustomize::FILE_NAMES;
use tiphys_value::{Location, ObjectExt, Value};
use tiphys_vfs::{base_name, join, parent};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        made_secrets::made_secret,
        pods::{list, text},
        unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D3-needed-file",
    incident: "D3",
    severity: Severity::Warning,
    title: "a file that is needed, and that its kustomization does not name",
    page: page!("d3_needed_file.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey.flux.as_deref().unwrap_or(context.survey);
    let mut builders: BTreeMap<&str, &App> = BTreeMap::new();
    for app in &survey.apps {
        for path in app.read.iter().filter(|path| FILE_NAMES.contains(&base_name(path))) {
            builders.entry(path).or_insert(app);
        }
    }
    let mut by_scope: BTreeMap<ObjectScope, Needs<'_>> = BTreeMap::new();
    let mut found: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for (kustomization, app) in builders {
        let Some(scope) = survey.objects_of(app.id).next().map(Object::world) else { continue };
        for file in left_out(survey, kustomization) {
            let given = gives(survey, &file);
            if given.is_empty() {
                continue;
            }
            let needs = by_scope.entry(scope.clone()).or_insert_with(|| needs_in(survey, &scope));
            let need = given.iter().find_map(|it| need_for(survey, app, &scope, needs, it));
            let Some(need) = need.filter(|_| !is_named_by_script(survey, &file)) else { continue };
            let what = need.what.clone();
            found.entry(what).or_default().push(finding(survey, kustomization, &file, &need));
        }
    }
    // Of several files that give the same, one is applied by hand.
    found.into_values().filter(|all| all.len() == 1).flatten().for_each(|finding| report.add(finding));
}

/// The files with manifests beside a kustomization that nothing reads, and that it does not even speak of.
fn left_out(survey: &Survey, kustomization: &str) -> Vec<String> {
    let folder = parent(kustomization).unwrap_or_default();
    let text = survey.files.text(kustomization).unwrap_or_default();
    let entries = survey.files.tree().read_dir(folder).unwrap_or_default();
    let beside = entries.iter().filter_map(|entry| join(folder, &entry.name).ok());
    let is_manifest = |path: &String| {
        let name = base_name(path);
        (name.ends_with(".yaml") || name.ends_with(".yml"))
            && !FILE_NAMES.contains(&name)
            && !text.contains(name)
    };
    let is_unread = |path: &String| {
        survey.files.contains(path)
            && !survey.apps.iter().any(|app| app.read.contains(path.as_str()))
            && !unused_files::is_git_ignored(&survey.files, path)
            && !unused_files::is_in_unused_folder(path)
    };
    beside.filter(is_manifest).filter(is_unread).collect()
}

/// Whether a script applies a file, or makes it.
fn is_named_by_script(survey: &Survey, path: &str) -> bool {
    const ENDINGS: [&str; 5] = [".sh", "Makefile", "justfile", ".just", "Taskfile.yaml"];
    let (name, folder) = (base_name(path), base_name(parent(path).unwrap_or_default()));
    let is_only = survey.files.paths().filter(|it| base_name(it) == name).count() == 1;
    let full = format!("{folder}/{name}");
    let words = ["bootstrap", "manual"];
    words.iter().any(|word| path.split('/').any(|step| step == *word))
        || survey.files.ending(&ENDINGS).any(|script| {
            let text = survey.files.text(script).unwrap_or_default();
            text.contains(&full) || is_only && text.contains(name)
        })
}

/// What an object of a file gives others, by kind and name.
struct Given {
    kind: String,
    name: String,
    /// Its namespace, if the file says one.
    namespace: String,
}

fn gives(survey: &Survey, file: &str) -> Vec<Given> {
    let all = survey.files.text(file).unwrap_or_default();
    let documents =
        all.split("\n---").filter_map(|text| tiphys_yaml::from_yaml(text.trim_start_matches("---")).ok());
    let read = |object: Value| {
        object.str_at(&["metadata", "name"])?;
        object.str_at(&["apiVersion"])?;
        let kind = match object.str_at(&["kind"])? {
            // A Secret that anybody could read is often kept out on purpose, and applied by hand.
            "Secret" if object.get("sops").is_none() => return None,
            "SealedSecret" | "ExternalSecret" => "Secret",
            // To leave one of those out is how people put an application away.
            "Application" | "ApplicationSet" | "Kustomization" | "HelmRelease" => return None,
            kind => kind,
        };
        let name = made_secret(&object).unwrap_or(object.name());
        Some(Given { kind: kind.to_owned(), name: name.to_owned(), namespace: object.namespace().to_owned() })
    };
    documents.filter_map(read).collect()
}

/// Who needs an object.
struct Need<'a> {
    what: String,
    by: &'a Object,
}

/// What the objects of a cluster need, by kind and name, each with the first that does.
type Needs<'a> = HashMap<(&'a str, &'a str), &'a Object>;

fn needs_in<'a>(survey: &'a Survey, scope: &ObjectScope) -> Needs<'a> {
    let mut found = Needs::new();
    for object in survey.objects_in(scope) {
        let mut names = Vec::new();
        gather(object.value(), &mut names, 0);
        for name in names {
            found.entry(name).or_insert(object);
        }
        if survey.is_of_flux && !object.key.namespace.is_empty() {
            found.entry(("Namespace", &object.key.namespace)).or_insert(object);
        }
    }
    found
}

/// Who needs what a file gives, in the cluster of an Application, if nothing else makes it there.
fn need_for<'a>(
    survey: &'a Survey,
    app: &App,
    scope: &ObjectScope,
    needs: &Needs<'a>,
    given: &Given,
) -> Option<Need<'a>> {
    let by = needs.get(&(given.kind.as_str(), given.name.as_str()))?;
    let is_for_another = !matches!(given.kind.as_str(), "HelmRepository" | "OCIRepository" | "GitRepository")
        && !given.namespace.is_empty()
        && given.namespace != by.key.namespace;
    if is_for_another {
        return None;
    }
    // A chart that is not seen may make what is called after its release.
    let is_chart = |it: &App| {
        it.application
            .spec
            .effective_sources()
            .iter()
            .any(|source| source.helm.is_some() || !source.chart.is_empty())
    };
    let may_make = |it: &App| {
        let is_called_so = it.name() == given.name || given.name.starts_with(&format!("{}-", it.name()));
        !it.is_rendered() && is_called_so && is_chart(it)
    };
    let is_made = survey.objects_in(scope).any(|it| makes(it, given))
        || survey.apps.iter().any(|it| it.is_beside(app) && may_make(it));
    (!is_made).then(|| Need { what: format!("{}/{}", given.kind, given.name), by })
}

fn makes(object: &Object, given: &Given) -> bool {
    let is_vault = object.key.kind == "VaultStaticSecret";
    match made_secret(object.value()).or(is_vault.then_some(object.key.name.as_str())) {
        Some(secret) => given.kind == "Secret" && given.name == secret,
        None => given.kind == object.key.kind && given.name == object.key.name,
    }
}

/// The names that an object gives to others, by kind: those under a key that says the kind, and those beside
/// `kind`.
fn gather<'a>(value: &'a Value, found: &mut Vec<(&'a str, &'a str)>, depth: usize) {
    const MAX_DEPTH: usize = 40;
    if depth > MAX_DEPTH {
        return;
    }
    let Value::Object(map) = value else {
        value.as_array().into_iter().flatten().for_each(|item| gather(item, found, depth + 1));
        return;
    };
    let is_optional = |of: &Value| of.get("optional") == Some(&Value::Bool(true));
    let (kind, name) = (text(value, "kind"), text(value, "name"));
    if depth > 0 && !kind.is_empty() && !name.is_empty() && !is_optional(value) {
        found.push((kind, name));
    }
    for (key, below) in map.iter().filter(|(key, _)| depth > 0 || *key != "metadata") {
        if let Some(kind) = kind_of_key(key).filter(|_| !is_optional(value)) {
            let holders = std::slice::from_ref(below).iter().chain(below.as_array().into_iter().flatten());
            for holder in holders.filter(|it| !is_optional(it)) {
                let names = ["name", "secretName", "claimName"].map(|field| text(holder, field));
                let own = holder.as_str().into_iter().chain(names).filter(|name| !name.is_empty());
                found.extend(own.map(|name| (kind, name)));
            }
        }
        gather(below, found, depth + 1);
    }
}

/// The kind of what stands under a key.
fn kind_of_key(key: &str) -> Option<&'static str> {
    let small = key.to_ascii_lowercase();
    match small.as_str() {
        "secretkey" => None,
        _ if small.contains("store") => None,
        _ if small.contains("secret") => Some("Secret"),
        _ if small.contains("configmap") => Some("ConfigMap"),
        _ if small.contains("claim") => Some("PersistentVolumeClaim"),
        "serviceaccountname" => Some("ServiceAccount"),
        "parentrefs" => Some("Gateway"),
        "middlewares" => Some("Middleware"),
        "storageclassname" => Some("StorageClass"),
        "priorityclassname" => Some("PriorityClass"),
        "runtimeclassname" => Some("RuntimeClass"),
        "ingressclassname" => Some("IngressClass"),
        _ => None,
    }
}

fn finding(survey: &Survey, kustomization: &str, file: &str, need: &Need<'_>) -> Finding {
    let content = survey.files.value(kustomization);
    let count = content.map_or(0, |content| list(&content, "resources").len());
    let (name, what) = (base_name(file), &need.what);
    let diagnostic = RULE
        .diagnostic(format!("{} needs {what}, whose file {kustomization} does not name", need.by.title()))
        .at(survey.files.span(&Location::new(file, 1, 0)), "nothing applies this")
        .see(survey.files.span(&Location::new(kustomization, 1, 0)), format!("{count} others are named here"))
        .see(survey.start(need.by), format!("needs {what}"))
        .because("a kustomization takes what it names; of what else lies in its folder it takes no notice")
        .help(format!("add {name} to the resources"));
    let mut finding = Finding::new(RULE.incident, diagnostic).object(need.by.title()).likely();
    finding.app = survey.app_of(need.by).map(|app| app.name().to_owned());
    finding
}

#[cfg(test)]
mod tests {
    use tiphys_value::{Value, json};

    use super::gather;

    #[test]
    fn a_name_counts_only_where_the_kind_is_said() {
        let has = |object: &Value, kind: &str, name: &str| {
            let mut found = Vec::new();
            gather(object, &mut found, 0);
            found.contains(&(kind, name))
        };
        let pod = json!({"spec": {"containers": [{"envFrom": [{"secretRef": {"name": "shop"}}]}]}});
        assert!(has(&pod, "Secret", "shop") && !has(&pod, "ConfigMap", "shop"));
        let labels = json!({"metadata": {"labels": {"secret": "shop"}}, "spec": {"name": "shop"}});
        assert!(!has(&labels, "Secret", "shop"));
        let optional = json!({"spec": {"secretRef": {"name": "shop", "optional": true}}});
        assert!(!has(&optional, "Secret", "shop"));
        let source = json!({"spec": {"sourceRef": {"kind": "HelmRepository", "name": "charts"}}});
        assert!(has(&source, "HelmRepository", "charts"));
        let job = json!({"spec": {"template": {"spec": {"serviceAccountName": "loader"}}}});
        assert!(has(&job, "ServiceAccount", "loader"));
        let route = json!({"spec": {"parentRefs": [{"name": "inner", "namespace": "net"}]}});
        assert!(has(&route, "Gateway", "inner"));
        let pulled = json!({"spec": {"imagePullSecrets": [{"name": "pull"}], "existingClaim": "data"}});
        assert!(has(&pulled, "Secret", "pull") && has(&pulled, "PersistentVolumeClaim", "data"));
    }
}
