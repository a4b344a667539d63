//! What of an installation's settings counts here, and what does not.

use tiphys_controller::{declared_cluster, secret_text};
use tiphys_model::{ArgoSettings, names};
use tiphys_value::{ObjectExt, Value};

use super::{
    installation::Installation,
    plan::{Finding, Verdict},
};

/// The rows of the page about differences that settings may concern.
#[cfg(test)]
pub(super) const SUBJECTS: [&str; 9] =
    [FLAGS, UNREADABLE, LUA, UPDATES, FUNCTIONS, EXEC, LFS, PROXIES, PLUGINS];

const FLAGS: &str = "flags of the controller in `argocd-cmd-params-cm` that mean nothing here";
const UNREADABLE: &str = "a setting of `argocd-cm` that cannot be read";
const LUA: &str = "a user's health Lua for Application";
const UPDATES: &str = "`resource.ignoreResourceUpdates`";
const FUNCTIONS: &str = "KRM functions and exec plugins of kustomizations";
const EXEC: &str = "clusters of Secrets: `execProviderConfig`";
const LFS: &str = "files kept by Git LFS";
const PROXIES: &str = "credentials of repositories: proxies for ssh";
const PLUGINS: &str = "config management plugins";

/// The key of `argocd-cm` in which older versions of Argo CD have their plugins.
const OWN_PLUGINS: &str = "configManagementPlugins";

/// What is said of the settings of an installation.
pub(super) fn findings(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    let config = installation.config_map("argocd-cm");
    let params = installation.config_map("argocd-cmd-params-cm");
    of_settings(&ArgoSettings::from_objects(config, params), &mut found);
    of_config(config, &mut found);
    let has_data = |name: &str| {
        let data = installation.config_map(name).and_then(|map| map.get("data")?.as_object());
        data.is_some_and(|data| !data.is_empty())
    };
    if has_data("argocd-rbac-cm") {
        found.push(unused(
            "argocd-rbac-cm",
            "nobody signs in here: who may do what is Kubernetes' own RBAC",
            "give people rights on Applications by Roles; docs/rights.md has examples",
        ));
    }
    if has_data("argocd-notifications-cm") {
        found.push(unused(
            "argocd-notifications-cm",
            "sends no notifications; Events and metrics tell of the same",
            "keep Argo CD's notifications controller, which reads Applications alone",
        ));
    }
    installation.workloads.iter().for_each(|workload| of_plugins(workload, &mut found));
    installation.secrets.iter().for_each(|secret| of_secret(secret, &mut found));
    found
}

fn unused(used: &str, tiphys: &str, todo: &str) -> Finding {
    Finding {
        verdict: Verdict::NotSupported,
        subject: "settings without effect here".to_owned(),
        used: used.to_owned(),
        argocd: String::new(),
        tiphys: tiphys.to_owned(),
        todo: todo.to_owned(),
    }
}

fn of_settings(settings: &ArgoSettings, found: &mut Vec<Finding>) {
    // Plugins have a finding of their own, with what to do.
    let keys: Vec<&str> =
        settings.unused.iter().map(String::as_str).filter(|key| *key != OWN_PLUGINS).collect();
    if !keys.is_empty() {
        let keys = keys.join(", ");
        found.push(unused(
            &format!("argocd-cm: {keys}"),
            "reads none of it: it is about Argo CD's web server, sign-on or notifications",
            "keep Argo CD's server for them, as long as you need it",
        ));
    }
    if !settings.unused_params.is_empty() {
        let keys = settings.unused_params.join(", ");
        found.push(Finding::about(Verdict::Differs, FLAGS, &format!("argocd-cmd-params-cm: {keys}"), ""));
    }
    for fault in &settings.faults {
        let used = format!("{}: {}", fault.key, fault.message);
        found.push(Finding::about(Verdict::Differs, UNREADABLE, &used, "correct it, or take it out"));
    }
}

fn of_config(config: Option<&Value>, found: &mut Vec<Finding>) {
    let data = config.and_then(|config| config.get("data")?.as_object());
    for (key, value) in data.into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if key == "resource.customizations.health.argoproj.io_Application" {
            found.push(Finding::about(Verdict::Differs, LUA, key, "it is built in: you may take it out"));
        }
        if key.starts_with("resource.customizations.ignoreResourceUpdates") {
            found.push(Finding::about(Verdict::Differs, UPDATES, key, ""));
        }
        if key.starts_with("kustomize.buildOptions")
            && (text.contains("--enable-exec") || text.contains("--enable-alpha-plugins"))
        {
            let todo = "allow each function: tiphys controller --allow-function NAME=COMMAND";
            found.push(Finding::about(Verdict::NotSupported, FUNCTIONS, &format!("{key}: {text}"), todo));
        }
        if key == OWN_PLUGINS && !text.trim().is_empty() {
            let todo = "allow each plugin: tiphys controller --allow-plugin NAME=COMMAND";
            found.push(Finding::about(Verdict::NotSupported, PLUGINS, key, todo));
        }
    }
}

/// Plugins that run beside the repo-server.
fn of_plugins(workload: &Value, found: &mut Vec<Finding>) {
    let containers = workload.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array);
    for container in containers.into_iter().flatten() {
        let command = container.get("command").map(Value::to_string).unwrap_or_default();
        if command.contains("argocd-cmp-server") {
            let name = container.str_at(&["name"]).unwrap_or_default();
            let todo = "allow it: tiphys controller --allow-plugin FILE, with its ConfigManagementPlugin";
            let used = format!("container {name} of {}", workload.name());
            found.push(Finding::about(Verdict::NotSupported, PLUGINS, &used, todo));
        }
    }
}

/// What the Secret of a repository or cluster asks for. Nothing of what is secret is told.
fn of_secret(secret: &Value, found: &mut Vec<Finding>) {
    let kind = secret.label(names::SECRET_TYPE).unwrap_or_default();
    if kind == "cluster" {
        let config = secret_text(secret, "config").unwrap_or_default();
        let config: Value = serde_json::from_str(&config).unwrap_or_default();
        if let Some(command) = config.str_at(&["execProviderConfig", "command"]) {
            let name = declared_cluster(secret).name;
            found.push(Finding::about(Verdict::Differs, EXEC, &format!("cluster {name}: {command}"), ""));
        }
        return;
    }
    let is_set = |field: &str| secret_text(secret, field).is_some_and(|text| !text.is_empty());
    if secret_text(secret, "enableLfs").as_deref() == Some("true") {
        let todo = "keep what an Application reads outside of Git LFS";
        found.push(Finding::about(Verdict::NotSupported, LFS, &format!("Secret {}", secret.name()), todo));
    }
    if is_set("sshPrivateKey") && is_set("proxy") {
        let todo = "use https, or a way to the host without a proxy";
        found.push(Finding::about(
            Verdict::NotSupported,
            PROXIES,
            &format!("Secret {}", secret.name()),
            todo,
        ));
    }
}
