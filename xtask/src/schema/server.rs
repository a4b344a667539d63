//! What a real kube-apiserver says about the kinds that it serves.

use std::{collections::BTreeMap, path::PathBuf, process::Command};

use anyhow::Context;
use serde_json::Value;
use tiphys_oracles::RealApiServer;

const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What the server says about its kinds.
pub(crate) struct Documents {
    /// Version, such as `v1.36.1`.
    pub version: String,
    /// Aggregated discovery of the core group and of all others.
    pub discovery: Vec<Value>,
    /// All schemas of OpenAPI v3 by name.
    pub schemas: BTreeMap<String, Value>,
}

/// The running programs; dropping it ends them.
pub(crate) struct Server {
    programs: RealApiServer,
    address: String,
}

impl Server {
    /// Starts both and waits until the API server is ready.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let programs = RealApiServer::start()?;
        let address = programs.address();
        Ok(Self { programs, address })
    }

    /// Address and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The administrator's bearer token.
    pub(crate) fn token(&self) -> &'static str {
        self.programs.token()
    }

    fn get(&self, path: &str, accept: &str) -> anyhow::Result<String> {
        let output = Command::new("curl")
            .args(["--silent", "--insecure", "--fail", "--header"])
            .arg(format!("Authorization: Bearer {}", self.token()))
            .args(["--header", &format!("Accept: {accept}")])
            .arg(format!("https://{}{path}", self.address))
            .output()
            .context("run curl")?;
        anyhow::ensure!(output.status.success(), "GET {path} failed");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// A JSON document of the server.
    pub(crate) fn json(&self, path: &str, accept: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.get(path, accept)?)?)
    }

    /// Reads discovery and OpenAPI v3.
    pub(crate) fn documents(&self) -> anyhow::Result<Documents> {
        let discovery = vec![self.json("/api", DISCOVERY)?, self.json("/apis", DISCOVERY)?];
        let index = self.json("/openapi/v3", "application/json")?;
        let mut schemas = BTreeMap::new();
        for path in index["paths"].as_object().into_iter().flat_map(|paths| paths.keys()) {
            let document = self.json(&format!("/openapi/v3/{path}"), "application/json")?;
            if let Some(found) = document["components"]["schemas"].as_object() {
                schemas.extend(found.iter().map(|(name, schema)| (name.clone(), schema.clone())));
            }
        }
        Ok(Documents { version: pinned_version()?, discovery, schemas })
    }
}

/// The pinned version of the API server: a build from module sources does not know its own.
fn pinned_version() -> anyhow::Result<String> {
    let pinned = tiphys_oracles::all().into_iter().find(|oracle| oracle.name == "kube-apiserver");
    let version = pinned.context("kube-apiserver is not pinned")?.version;
    Ok(format!("v{}", version.trim_start_matches('v')))
}

/// Where `go` keeps module sources.
pub(crate) fn module_cache() -> anyhow::Result<PathBuf> {
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output().context("run go")?;
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}
