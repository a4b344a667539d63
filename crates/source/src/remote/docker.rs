//! Registry credentials in the files that `docker login`, `podman login` and `helm registry login` write.

use std::path::PathBuf;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::remote::{Access, AccessTable};

/// Reads the usual files, as far as they exist, into an access table for `oci://` addresses: Helm's
/// registry configuration before podman's before Docker's. Credential helpers are programs and are not
/// run. Returns the table and, for each host that needs a helper, the helper's name.
pub fn registry_credentials(
    variable: impl Fn(&str) -> Option<String>,
) -> (AccessTable, Vec<(String, String)>) {
    let mut table = AccessTable::default();
    let mut helpers = Vec::new();
    // Of equal prefixes the table prefers the last.
    for path in candidate_files(&variable).into_iter().rev() {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
        read_config(&value, &mut table, &mut helpers);
    }
    (table, helpers)
}

fn candidate_files(variable: &impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let home = variable("HOME").map(PathBuf::from);
    let config =
        variable("XDG_CONFIG_HOME").map(PathBuf::from).or(home.as_ref().map(|home| home.join(".config")));
    let explicit = |name| variable(name).map(PathBuf::from);
    let mut files = Vec::new();
    files.extend(
        explicit("HELM_REGISTRY_CONFIG").or(config.as_ref().map(|c| c.join("helm/registry/config.json"))),
    );
    files.extend(
        explicit("REGISTRY_AUTH_FILE")
            .or(explicit("XDG_RUNTIME_DIR").map(|runtime| runtime.join("containers/auth.json"))),
    );
    files.extend(
        explicit("DOCKER_CONFIG")
            .or(home.map(|home| home.join(".docker")))
            .map(|folder| folder.join("config.json")),
    );
    files
}

fn read_config(value: &Value, table: &mut AccessTable, helpers: &mut Vec<(String, String)>) {
    for (host, entry) in value.get("auths").and_then(Value::as_object).into_iter().flatten() {
        if let Some(access) = read_auth(entry) {
            table.insert(&format!("oci://{}", registry_host(host)), access);
        }
    }
    for (host, helper) in value.get("credHelpers").and_then(Value::as_object).into_iter().flatten() {
        helpers.push((host.clone(), helper.as_str().unwrap_or_default().to_owned()));
    }
    if let Some(helper) = value.get("credsStore").and_then(Value::as_str) {
        helpers.push(("*".to_owned(), helper.to_owned()));
    }
}

/// Keys may be hosts, hosts with paths, or addresses as `https://index.docker.io/v1/`.
fn registry_host(key: &str) -> String {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let bare = bare.trim_end_matches('/');
    let bare = bare.strip_suffix("/v1").or_else(|| bare.strip_suffix("/v2")).unwrap_or(bare);
    if bare == "index.docker.io" { "docker.io".to_owned() } else { bare.to_owned() }
}

fn read_auth(entry: &Value) -> Option<Access> {
    let text =
        |key| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let mut access = Access { username: text("username"), password: text("password"), ..Access::default() };
    if let Some(decoded) = text("auth").and_then(|auth| STANDARD.decode(auth.trim()).ok())
        && let Ok(pair) = String::from_utf8(decoded)
        && let Some((user, password)) = pair.split_once(':')
    {
        access.username = Some(user.to_owned());
        access.password = Some(password.trim_end_matches('\0').to_owned());
    }
    access.bearer_token = text("registrytoken");
    (access.username.is_some() || access.bearer_token.is_some()).then_some(access)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helms_file_wins_over_dockers_and_helpers_are_named() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("has a parent")).expect("can be made");
            std::fs::write(path, text).expect("can be written");
        };
        let auth = |pair: &str| STANDARD.encode(pair);
        write(
            ".docker/config.json",
            &format!(
                r#"{{"auths":{{"registry.example.com":{{"auth":"{}"}},"https://index.docker.io/v1/":{{"auth":"{}"}}}},
                    "credHelpers":{{"gcr.example.com":"gcloud"}}}}"#,
                auth("docker:one"),
                auth("hub:two:parts")
            ),
        );
        write(
            ".config/helm/registry/config.json",
            &format!(r#"{{"auths":{{"registry.example.com":{{"auth":"{}"}}}}}}"#, auth("helm:three")),
        );
        let home = folder.path().to_str().expect("is text").to_owned();
        let (table, helpers) = registry_credentials(|name| (name == "HOME").then(|| home.clone()));
        let login = |url| {
            let access = table.lookup(url);
            (access.username.unwrap_or_default(), access.password.unwrap_or_default())
        };
        assert_eq!(login("oci://registry.example.com/team/app"), ("helm".into(), "three".into()));
        assert_eq!(login("oci://docker.io/library/app"), ("hub".into(), "two:parts".into()));
        assert_eq!(login("oci://other.example.com/app"), (String::new(), String::new()));
        assert_eq!(helpers, [("gcr.example.com".to_owned(), "gcloud".to_owned())]);
    }
}
