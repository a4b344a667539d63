//! A real kube-apiserver with etcd on loopback, for as long as a command needs it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, bail};
use serde_json::Value;

/// How long the server may take to become ready, in seconds.
const READY_SECONDS: u32 = 120;
const TOKEN: &str = "schema";
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What the server says about its kinds.
pub struct Documents {
    /// Version, such as `v1.36.1`.
    pub version: String,
    /// Aggregated discovery of the core group and of all others.
    pub discovery: Vec<Value>,
    /// All schemas of OpenAPI v3 by name.
    pub schemas: BTreeMap<String, Value>,
}

/// The running programs; dropping it ends them.
pub struct Server {
    programs: Vec<Child>,
    dir: PathBuf,
    url: String,
}

impl Server {
    /// Starts both and waits until the API server is ready.
    pub fn start() -> anyhow::Result<Self> {
        let dir = std::env::temp_dir().join(format!("tiphys-schema-{}", std::process::id()));
        fs::create_dir_all(&dir)?;
        let (client, peer, secure) = (free_port()?, free_port()?, free_port()?);
        let mut server =
            Self { programs: Vec::new(), url: format!("https://127.0.0.1:{secure}"), dir: dir.clone() };
        let etcd_url = format!("http://127.0.0.1:{client}");
        let mut etcd = Command::new(tiphys_oracles::find("etcd")?);
        etcd.arg("--data-dir").arg(dir.join("etcd"));
        etcd.arg(format!("--listen-client-urls={etcd_url}"))
            .arg(format!("--advertise-client-urls={etcd_url}"));
        etcd.arg(format!("--listen-peer-urls=http://127.0.0.1:{peer}"));
        server.spawn(etcd, "etcd.log")?;
        let key = dir.join("sa.key");
        let made = Command::new("openssl").args(["genrsa", "-out"]).arg(&key).arg("2048").output()?;
        anyhow::ensure!(made.status.success(), "openssl cannot make a key");
        fs::write(dir.join("tokens.csv"), format!("{TOKEN},admin,admin,system:masters\n"))?;
        let mut api = Command::new(tiphys_oracles::find("kube-apiserver")?);
        api.arg(format!("--etcd-servers={etcd_url}")).arg(format!("--secure-port={secure}"));
        api.args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--authorization-mode=RBAC"]);
        api.arg(with_path("--cert-dir=", &dir.join("certs")));
        api.arg(with_path("--token-auth-file=", &dir.join("tokens.csv")));
        api.arg(with_path("--service-account-key-file=", &key));
        api.arg(with_path("--service-account-signing-key-file=", &key));
        api.arg("--service-account-issuer=https://kubernetes.default.svc");
        api.arg("--service-cluster-ip-range=10.96.0.0/16");
        server.spawn(api, "kube-apiserver.log")?;
        server.wait_until_ready()?;
        Ok(server)
    }

    fn spawn(&mut self, mut command: Command, log: &str) -> anyhow::Result<()> {
        let log = File::create(self.dir.join(log))?;
        command.stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
        self.programs.push(command.spawn().with_context(|| format!("start {command:?}"))?);
        Ok(())
    }

    fn wait_until_ready(&self) -> anyhow::Result<()> {
        for _ in 0..READY_SECONDS {
            if self.get("/readyz", "*/*").is_ok_and(|body| body == "ok") {
                return Ok(());
            }
            thread::sleep(Duration::from_secs(1));
        }
        bail!("kube-apiserver is not ready after {READY_SECONDS} s; see {}", self.dir.display())
    }

    /// Address and port.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("https://")
    }

    /// The administrator's bearer token.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    fn get(&self, path: &str, accept: &str) -> anyhow::Result<String> {
        let output = Command::new("curl")
            .args(["--silent", "--insecure", "--fail", "--header"])
            .arg(format!("Authorization: Bearer {TOKEN}"))
            .args(["--header", &format!("Accept: {accept}")])
            .arg(format!("{}{path}", self.url))
            .output()
            .context("run curl")?;
        anyhow::ensure!(output.status.success(), "GET {path} failed");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn json(&self, path: &str, accept: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.get(path, accept)?)?)
    }

    /// Reads discovery and OpenAPI v3.
    pub fn documents(&self) -> anyhow::Result<Documents> {
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

impl Drop for Server {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().rev() {
            let _ = program.kill();
            let _ = program.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The pinned version of the API server: a build from module sources does not know its own.
fn pinned_version() -> anyhow::Result<String> {
    let pinned = tiphys_oracles::all().into_iter().find(|oracle| oracle.name == "kube-apiserver");
    let version = pinned.context("kube-apiserver is not pinned")?.version;
    Ok(format!("v{}", version.trim_start_matches('v')))
}

/// Where `go` keeps module sources.
pub fn module_cache() -> anyhow::Result<PathBuf> {
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output().context("run go")?;
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

fn with_path(flag: &str, path: &Path) -> String {
    format!("{flag}{}", path.display())
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
