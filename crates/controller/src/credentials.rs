//! Credentials of repositories, from the Secrets and ConfigMaps of the engine's namespace (Argo CD docs,
//! "Declarative Setup", "Repositories").

use std::collections::BTreeMap;

use tiphys_cluster::{Change, LiveCache};
use tiphys_identity::{Azure, AzureLogin, Google, Identity};
use tiphys_model::names;
use tiphys_source::{Access, DeclaredAccess, GithubApp};
use tiphys_value::{GroupKind, ObjectExt, ResourceKey, Value, json};

use crate::{clusters::secret_text, source_integrity};

/// The ConfigMap with certificate authorities by host.
const AUTHORITIES: &str = "argocd-tls-certs-cm";
/// The ConfigMap with the keys of hosts for `ssh`.
const KNOWN_HOSTS: &str = "argocd-ssh-known-hosts-cm";
/// The application that Azure DevOps is.
const AZURE_DEVOPS: &str = "499b84ac-1321-427f-aa17-267ca6975798";

/// What a Secret is for: one repository, or all below an address.
fn role(object: &Value) -> Option<bool> {
    if object.kind() != "Secret" {
        return None;
    }
    match object.at(&["metadata", "labels"])?.get(names::SECRET_TYPE)?.as_str()? {
        "repository" => Some(true),
        "repo-creds" => Some(false),
        _ => None,
    }
}

/// Whether a change is one of credentials.
pub(crate) fn is_changed_by(change: &Change, namespace: &str) -> bool {
    let key = &change.key;
    let is_config = key.kind == "ConfigMap"
        && key.group.is_empty()
        && [AUTHORITIES, KNOWN_HOSTS, source_integrity::KEYS].contains(&key.name.as_str());
    let mut states = [&change.old, &change.new].into_iter().flatten();
    key.namespace == namespace && (is_config || states.any(|object| role(object).is_some()))
}

/// Everything that is declared, in the order of the Secrets' names.
pub(crate) fn declared(cache: &LiveCache, namespace: &str) -> Vec<DeclaredAccess> {
    let config = |name: &str| cache.get(&ResourceKey::new("", "ConfigMap", namespace, name));
    let authorities = config(AUTHORITIES);
    let known_hosts = config(KNOWN_HOSTS);
    let known_hosts = known_hosts.as_ref().and_then(|map| map.str_at(&["data", "ssh_known_hosts"]));
    let secrets = cache.of_kind(&GroupKind::new("", "Secret"));
    let own = secrets.iter().filter(|secret| secret.namespace() == namespace);
    let mut all: Vec<DeclaredAccess> = own.filter_map(|secret| read(secret, known_hosts)).collect();
    let hosts = authorities.as_ref().and_then(|map| map.get("data")).and_then(Value::as_object);
    let hosts: Vec<(&String, &str)> =
        hosts.into_iter().flatten().filter_map(|(host, pem)| Some((host, pem.as_str()?))).collect();
    for entry in &mut all {
        let pem = hosts.iter().find(|(host, _)| host_of(&entry.url) == Some(host));
        entry.access.ca_pem = pem.map(|(_, pem)| (*pem).to_owned());
    }
    // Hosts without credentials are verified all the same.
    for (host, pem) in hosts {
        for scheme in ["https", "oci"] {
            let access = Access { ca_pem: Some(pem.to_owned()), ..Access::default() };
            let url = format!("{scheme}://{host}");
            all.push(DeclaredAccess { url, exact: false, project: String::new(), access });
        }
    }
    all
}

/// What a Secret of a repository with these fields would declare, with the authorities and keys of hosts that
/// are known.
pub(crate) fn of_fields(
    cache: &LiveCache,
    namespace: &str,
    fields: &BTreeMap<String, String>,
) -> Option<DeclaredAccess> {
    let secret = json!({"kind": "Secret", "metadata": {"labels": {names::SECRET_TYPE: "repository"}}, "stringData": fields});
    let config = |name: &str| cache.get(&ResourceKey::new("", "ConfigMap", namespace, name));
    let known_hosts = config(KNOWN_HOSTS);
    let known_hosts = known_hosts.as_ref().and_then(|map| map.str_at(&["data", "ssh_known_hosts"]));
    let mut entry = read(&secret, known_hosts)?;
    let authorities = config(AUTHORITIES);
    let pem = authorities.as_ref().and_then(|map| map.get("data")?.get(host_of(&entry.url)?)?.as_str());
    entry.access.ca_pem = pem.map(str::to_owned);
    // Whoever asks has it; no Application does.
    entry.project.clear();
    Some(entry)
}

fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Some(host.split_once(':').map_or(host, |(host, _)| host))
}

/// Reads one Secret.
fn read(secret: &Value, known_hosts: Option<&str>) -> Option<DeclaredAccess> {
    let exact = role(secret)?;
    let text = |key: &str| secret_text(secret, key).filter(|text| !text.is_empty());
    let is_on = |key: &str| text(key).as_deref() == Some("true");
    let url = text("url")?;
    let is_registry = is_on("enableOCI") || text("type").as_deref() == Some("oci");
    let url = if is_registry && !url.contains("://") { format!("oci://{url}") } else { url };
    let access = Access {
        username: text("username"),
        password: text("password"),
        bearer_token: text("bearerToken"),
        client_certificate_pem: text("tlsClientCertData"),
        client_key_pem: text("tlsClientCertKey"),
        insecure_skip_verify: is_on("insecure"),
        plain_http: is_on("insecureOCIForceHttp"),
        github_app: text("githubAppPrivateKey").map(|private_key| GithubApp {
            id: text("githubAppID").unwrap_or_default(),
            installation: text("githubAppInstallationID"),
            private_key,
            base_url: text("githubAppEnterpriseBaseUrl"),
        }),
        proxy: text("proxy"),
        no_proxy: text("noProxy"),
        ssh_private_key: text("sshPrivateKey"),
        known_hosts: text("sshPrivateKey").and(known_hosts).map(str::to_owned),
        // The older name of what `insecure` means for SSH.
        insecure_ignore_host_key: is_on("insecureIgnoreHostKey") || is_on("insecure"),
        identity: identity(&text),
        ..Access::default()
    };
    Some(DeclaredAccess { url, exact, project: text("project").unwrap_or_default(), access })
}

/// What a cloud knows the asker as. A user, a key or a GitHub App that the Secret has, too, goes first.
fn identity(text: &dyn Fn(&str) -> Option<String>) -> Option<Identity> {
    let others = ["username", "password", "bearerToken", "sshPrivateKey", "githubAppPrivateKey"];
    if others.iter().any(|key| text(key).is_some()) {
        return None;
    }
    if let Some(key) = text("gcpServiceAccountKey") {
        return Some(Identity::Google(Google::Key(key)));
    }
    if text("useAzureWorkloadIdentity").as_deref() == Some("true") {
        return Some(Identity::Azure(Azure::of_environment(AZURE_DEVOPS)));
    }
    // Argo CD itself writes the names of a template's keys otherwise than those of a repository's.
    let either = |of_repository: &str, of_template: &str| text(of_repository).or_else(|| text(of_template));
    Some(Identity::Azure(Azure {
        login: AzureLogin::Secret(text("azureServicePrincipalClientSecret")?),
        tenant: either("azureServicePrincipalTenantId", "azureServicePrincipalTenantID").unwrap_or_default(),
        client: either("azureServicePrincipalClientId", "azureServicePrincipalClientID").unwrap_or_default(),
        authority: text("azureActiveDirectoryEndpoint"),
        resource: AZURE_DEVOPS.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(kind: &str, data: Value) -> Value {
        json!({"kind": "Secret", "metadata": {"name": "s", "namespace": "argocd",
            "labels": {"argocd.argoproj.io/secret-type": kind}}, "stringData": data})
    }

    #[test]
    fn secrets_of_repositories_and_templates_are_read() {
        let own = read(
            &secret(
                "repository",
                json!({"url": "registry.example.com/charts", "type": "helm", "enableOCI": "true",
            "username": "u", "password": "p", "project": "team"}),
            ),
            None,
        )
        .expect("one");
        assert_eq!(
            (own.url.as_str(), own.exact, own.project.as_str()),
            ("oci://registry.example.com/charts", true, "team")
        );
        assert_eq!(own.access.password.as_deref(), Some("p"));
        let template = read(
            &secret("repo-creds", json!({"url": "git@git.example.com:acme", "sshPrivateKey": "k"})),
            Some("hosts"),
        );
        let template = template.expect("one");
        assert!(!template.exact && template.access.known_hosts.as_deref() == Some("hosts"));
        assert!(read(&secret("cluster", json!({"url": "x"})), None).is_none());
    }

    #[test]
    fn any_key_of_a_host_is_believed_under_either_name() {
        let insecure = |data: Value| {
            let access = read(&secret("repository", data), None).expect("one").access;
            (access.insecure_skip_verify, access.insecure_ignore_host_key)
        };
        let url = "ssh://git@git.example.com/acme";
        assert_eq!(insecure(json!({"url": url})), (false, false));
        assert_eq!(insecure(json!({"url": url, "insecure": "true"})), (true, true));
        assert_eq!(insecure(json!({"url": url, "insecureIgnoreHostKey": "true"})), (false, true));
        assert_eq!(insecure(json!({"url": url, "insecureIgnoreHostKey": "false"})), (false, false));
    }

    #[test]
    fn identities_of_clouds_are_read_behind_other_logins() {
        let identity = |data: Value| read(&secret("repo-creds", data), None).expect("one").access.identity;
        let url = "https://git.example.com";
        let key = Identity::Google(Google::Key("{}".into()));
        assert_eq!(identity(json!({"url": url, "gcpServiceAccountKey": "{}"})), Some(key));
        assert_eq!(identity(json!({"url": url, "gcpServiceAccountKey": "{}", "password": "p"})), None);
        let application = |tenant: &str, client: &str| {
            let Some(Identity::Azure(azure)) = identity(
                json!({"url": url, "azureServicePrincipalClientSecret": "s3cret",
                tenant: "acme", client: "tiphys", "azureActiveDirectoryEndpoint": "https://login.example.com"}),
            ) else {
                panic!("is an application")
            };
            assert!(!format!("{azure:?}").contains("s3cret"));
            (azure.login == AzureLogin::Secret("s3cret".into()), azure.tenant, azure.client, azure.authority)
        };
        let expected = (true, "acme".into(), "tiphys".into(), Some("https://login.example.com".into()));
        assert_eq!(application("azureServicePrincipalTenantId", "azureServicePrincipalClientId"), expected);
        assert_eq!(application("azureServicePrincipalTenantID", "azureServicePrincipalClientID"), expected);
        let workload = identity(json!({"url": url, "useAzureWorkloadIdentity": "true"}));
        assert!(matches!(workload, Some(Identity::Azure(azure)) if azure.resource == AZURE_DEVOPS));
        assert_eq!(identity(json!({"url": url, "useAzureWorkloadIdentity": "false"})), None);
    }
}
