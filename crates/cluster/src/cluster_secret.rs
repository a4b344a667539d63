//! How a declared cluster is reached (Argo CD docs, "Declarative Setup", "Clusters"): the JSON of a cluster
//! Secret's `config`, turned into a connection. Programs that would fetch credentials are not run: those of
//! the clouds are known for what they do, and others are refused.

use std::{collections::BTreeMap, fmt, time::Duration};

use kube::{
    client::ClientBuilder,
    config::{Config, KubeConfigOptions, Kubeconfig},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tiphys_diag::chain;
use tiphys_identity::{Aws, Identity};
use tower::{buffer::BufferLayer, filter::AsyncFilterLayer};

use crate::{Cluster, ClusterError, token_auth::Bearer};

/// How long a cluster may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How many requests of one connection may wait for another to be sent.
const REQUESTS_AT_ONCE: usize = 1024;

/// How the address of a proxy may begin.
const PROXIES: [&str; 3] = ["http://", "https://", "socks5://"];

/// Address and credentials of a declared cluster. Never shows the credentials.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Access {
    server: String,
    config: SecretConfig,
    /// Whose tokens are sent.
    identity: Option<Identity>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("server", &self.server).finish_non_exhaustive()
    }
}

/// `config` of a cluster Secret. What is base64 in it is handed on as it is.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SecretConfig {
    username: String,
    password: String,
    bearer_token: String,
    tls_client_config: Option<TlsConfig>,
    #[serde(rename = "awsAuthConfig")]
    aws: Option<AwsConfig>,
    #[serde(rename = "execProviderConfig")]
    exec: Option<ExecConfig>,
    proxy_url: String,
    disable_compression: bool,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TlsConfig {
    insecure: bool,
    server_name: String,
    ca_data: Option<String>,
    cert_data: Option<String>,
    key_data: Option<String>,
}

/// `awsAuthConfig`.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AwsConfig {
    cluster_name: String,
    #[serde(rename = "roleARN")]
    role_arn: String,
    profile: String,
}

/// `execProviderConfig`: a program that would be run for a token.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct ExecConfig {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

impl SecretConfig {
    /// Whose tokens are sent, if the credentials are none of their own.
    fn identity(&self) -> Result<Option<Identity>, ClusterError> {
        let fail = |field: &str, why: String| {
            ClusterError::Config(format!("config of the cluster Secret has {field}: {why}"))
        };
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        if let Some(aws) = &self.aws {
            if aws.cluster_name.is_empty() {
                return Err(fail("awsAuthConfig", "clusterName is missing".into()));
            }
            let (role, profile) = (text(&aws.role_arn), text(&aws.profile));
            return Ok(Some(Identity::Aws(Aws {
                cluster: aws.cluster_name.clone(),
                role,
                profile,
                region: None,
            })));
        }
        let Some(exec) = &self.exec else { return Ok(None) };
        match tiphys_identity::of_exec(&exec.command, &exec.args, &exec.env) {
            Some(identity) => {
                identity.map(Some).map_err(|error| fail("execProviderConfig", error.to_string()))
            }
            None => Err(fail(
                "execProviderConfig",
                format!(
                    "Tiphys runs no programs of others, and {:?} with its arguments is none that it knows how to stand in for; use a bearer token or a client certificate",
                    exec.command
                ),
            )),
        }
    }
}

impl Access {
    /// Reads the `config` of a cluster Secret; an empty one has no credentials.
    ///
    /// # Errors
    /// It is not what it should be, or asks for a program to be run that is not known. The text holds nothing
    /// of the Secret's values.
    pub fn parse(server: &str, config: &str) -> Result<Self, ClusterError> {
        let fail = |why: String| Err(ClusterError::Config(why));
        let config: SecretConfig =
            match serde_json::from_str(if config.trim().is_empty() { "{}" } else { config }) {
                Ok(config) => config,
                // The error itself may quote a value.
                Err(error) => {
                    let (line, column) = (error.line(), error.column());
                    return fail(format!(
                        "config of the cluster Secret is not valid at line {line}, column {column}"
                    ));
                }
            };
        let identity = config.identity()?;
        let proxy = &config.proxy_url;
        // The client's own text would tell the login that may be in it.
        if !proxy.is_empty() && !PROXIES.iter().any(|scheme| proxy.starts_with(scheme)) {
            return fail(format!("proxyUrl is none of {}", PROXIES.join(", ")));
        }
        Ok(Self { server: server.to_owned(), config, identity })
    }

    /// The address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Opens a connection; no request is made yet. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// The address, a certificate, a key or the proxy cannot be used.
    pub async fn open(&self) -> Result<Cluster, ClusterError> {
        let fail = |error: &dyn std::error::Error| ClusterError::Config(chain(error));
        let read: Kubeconfig = serde_json::from_value(self.kubeconfig())
            .map_err(|_| ClusterError::Config("config of the cluster Secret cannot be used".into()))?;
        let options = KubeConfigOptions::default();
        let mut config =
            Config::from_custom_kubeconfig(read, &options).await.map_err(|error| fail(&error))?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.default_retry = false;
        let builder = ClientBuilder::try_from(config).map_err(|error| fail(&error))?;
        let client = match &self.identity {
            None => builder.build(),
            Some(identity) => {
                // A request waits for its token with a service of its own.
                let shared = builder.with_layer(&BufferLayer::new(REQUESTS_AT_ONCE));
                shared.with_layer(&AsyncFilterLayer::new(Bearer::new(identity.clone()))).build()
            }
        };
        Ok(Cluster::from_client(client))
    }

    /// The same as a kubeconfig has it.
    fn kubeconfig(&self) -> Value {
        let config = &self.config;
        let tls = config.tls_client_config.clone().unwrap_or_default();
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        // client-go takes no authority where nothing is verified.
        let authority = tls.ca_data.filter(|data| !tls.insecure && !data.is_empty());
        let cluster = json!({
            "server": self.server, "insecure-skip-tls-verify": tls.insecure, "tls-server-name": text(&tls.server_name),
            "certificate-authority-data": authority, "proxy-url": text(&config.proxy_url),
            "disable-compression": config.disable_compression,
        });
        let user = json!({
            "username": text(&config.username), "password": text(&config.password), "token": text(&config.bearer_token),
            "client-certificate-data": tls.cert_data, "client-key-data": tls.key_data,
        });
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "declared",
            "clusters": [{"name": "declared", "cluster": without_nulls(cluster)}],
            "users": [{"name": "declared", "user": without_nulls(user)}],
            "contexts": [{"name": "declared", "context": {"cluster": "declared", "user": "declared"}}],
        })
    }
}

fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        map.retain(|_, value| !value.is_null());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_credential_finds_its_place() {
        let config = r#"{"username": "u", "password": "p", "bearerToken": "t", "disableCompression": true,
            "tlsClientConfig": {"insecure": false, "serverName": "api", "caData": "Q0E=", "certData": "Q0U=", "keyData": "S0U="}}"#;
        let made = Access::parse("https://a", config).expect("valid").kubeconfig();
        let cluster = &made["clusters"][0]["cluster"];
        assert_eq!(
            (cluster["server"].as_str(), cluster["tls-server-name"].as_str()),
            (Some("https://a"), Some("api"))
        );
        assert_eq!(cluster["certificate-authority-data"], "Q0E=");
        let user = &made["users"][0]["user"];
        assert_eq!(
            user,
            &json!({"username": "u", "password": "p", "token": "t",
            "client-certificate-data": "Q0U=", "client-key-data": "S0U="})
        );
    }

    #[tokio::test]
    async fn proxies_of_the_usual_kinds_can_be_used() {
        let open = async |proxy: &str| {
            let config = format!(r#"{{"proxyUrl": "{proxy}"}}"#);
            Access::parse("https://a", &config)
                .expect("valid")
                .open()
                .await
                .err()
                .map(|error| error.to_string())
        };
        for proxy in ["http://proxy:3128", "https://proxy", "socks5://proxy:1080"] {
            assert_eq!(open(proxy).await, None, "{proxy}");
        }
        let malformed = open("http://u:s3cret @proxy").await.expect("is none");
        assert!(!malformed.contains("s3cret"), "{malformed}");
        let refused = Access::parse("https://a", r#"{"proxyUrl": "ftp://u:s3cret@proxy"}"#);
        let refused = refused.expect_err("is none").to_string();
        assert!(refused.contains("proxyUrl is none of") && !refused.contains("s3cret"), "{refused}");
    }

    #[test]
    fn what_is_not_verified_needs_no_authority() {
        let config = r#"{"tlsClientConfig": {"insecure": true, "caData": "Q0E="}}"#;
        let made = Access::parse("https://a", config).expect("valid").kubeconfig();
        assert_eq!(made["clusters"][0]["cluster"]["insecure-skip-tls-verify"], true);
        assert!(made["clusters"][0]["cluster"].get("certificate-authority-data").is_none());
    }

    #[test]
    fn programs_are_refused_by_name_and_values_are_not_told() {
        let exec = Access::parse("https://a", r#"{"execProviderConfig": {"command": "vault"}}"#);
        let reason = exec.expect_err("refused").to_string();
        assert!(reason.contains("execProviderConfig") && reason.contains("\"vault\""), "{reason}");
        let aws = Access::parse("https://a", r#"{"awsAuthConfig": {"roleARN": "r"}}"#);
        assert!(aws.expect_err("refused").to_string().contains("awsAuthConfig: clusterName is missing"));
        let odd =
            Access::parse("https://a", r#"{"bearerToken": ["s3cret"]}"#).expect_err("not valid").to_string();
        assert!(odd.contains("line 1") && !odd.contains("s3cret"), "{odd}");
        let access = Access::parse("https://a", r#"{"bearerToken": "s3cret"}"#).expect("valid");
        assert!(!format!("{access:?}").contains("s3cret"));
    }

    #[test]
    fn identities_of_clouds_are_read() {
        let of = |config: &str| Access::parse("https://a", config).expect("valid").identity;
        let shop = Aws { cluster: "shop".into(), role: Some("r".into()), ..Aws::default() };
        let declared = of(r#"{"awsAuthConfig": {"clusterName": "shop", "roleARN": "r", "profile": ""}}"#);
        assert_eq!(declared, Some(Identity::Aws(shop.clone())));
        let exec = r#"{"execProviderConfig": {"command": "argocd-k8s-auth", "args": ["aws", "--cluster-name", "shop", "--role-arn", "r"]}}"#;
        assert_eq!(of(exec), Some(Identity::Aws(shop)));
        assert_eq!(of("{}"), None);
    }
}
