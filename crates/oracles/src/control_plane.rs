//! A real control plane without containers: kube-apiserver, etcd, kube-controller-manager,
//! kube-scheduler, and KWOK in the place of the kubelets. It shows what the real controllers make of
//! objects.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::{
    RealApiServer, StartError,
    api_server::{free_port, with_path},
    find,
};

/// The programs beside the API server.
const PROGRAMS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kwok"];
/// How long until the controllers have filled the first namespace.
const READY: Duration = Duration::from_secs(120);
/// The etcd of an operating system may be too old for lists that are streamed, and not every client does
/// without them where the API server offers them.
const NO_STREAMED_LISTS: [&str; 1] = ["--feature-gates=WatchList=false"];
/// Nobody else asks this API server: controllers need not hold back.
const RATE: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

/// The running programs; dropping it ends them.
pub struct RealControlPlane {
    api: RealApiServer,
    /// The process that plays the kubelet of each node.
    kubelets: BTreeMap<String, u32>,
}

impl RealControlPlane {
    /// The programs that it needs and that are not installed.
    pub fn missing() -> Vec<&'static str> {
        let all = ["etcd", "kube-apiserver", "kubectl"].into_iter().chain(PROGRAMS);
        all.filter(|name| find(name).is_err()).collect()
    }

    /// Starts everything and waits until the controllers work. `stages` are KWOK's: what kubelets do with nodes
    /// and pods, as YAML documents. Each of `nodes` has a kubelet of its own.
    ///
    /// A node whose kubelet is silent for eight seconds counts as unreachable.
    ///
    /// # Errors
    /// A program is missing, or does not come up.
    pub fn start(stages: &str, nodes: &[String]) -> Result<Self, StartError> {
        let mut api = RealApiServer::start_with_flags(&NO_STREAMED_LISTS)?;
        let folder = api.folder().to_owned();
        let kubeconfig = api.kubeconfig();
        api.run(controller_manager(&folder, &kubeconfig)?, "kube-controller-manager.log")?;
        api.run(scheduler(&folder, &kubeconfig)?, "kube-scheduler.log")?;
        fs::write(folder.join("kwok.yaml"), stages)?;
        let mut kubelets = BTreeMap::new();
        for node in nodes {
            api.run(kwok(&folder, &kubeconfig, node)?, &format!("kwok-{node}.log"))?;
            kubelets.extend(api.ids().last().map(|id| (node.clone(), *id)));
        }
        let mut plane = Self { api, kubelets };
        plane.wait_until_ready()?;
        Ok(plane)
    }

    /// Address and port of the API server.
    pub fn address(&self) -> String {
        self.api.address()
    }

    /// The administrator's bearer token.
    pub fn token(&self) -> &'static str {
        self.api.token()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.api.kubeconfig()
    }

    /// Silences the kubelet of a node, or lets it speak again.
    ///
    /// # Errors
    /// No kubelet of that node is played, or it cannot be told.
    pub fn silence(&self, node: &str, is_silent: bool) -> io::Result<()> {
        let id = self.kubelets.get(node).ok_or_else(|| io::Error::other(format!("no kubelet of {node}")))?;
        let signal = if is_silent { "-STOP" } else { "-CONT" };
        let status = Command::new("kill").arg(signal).arg(id.to_string()).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("kill {signal} {id}: {status}"))) }
    }

    fn wait_until_ready(&mut self) -> Result<(), StartError> {
        let kubectl = find("kubectl")?;
        let began = Instant::now();
        while began.elapsed() < READY {
            let mut asks = Command::new(&kubectl);
            asks.arg("--kubeconfig").arg(self.api.kubeconfig());
            asks.args(["get", "serviceaccount/default", "configmap/kube-root-ca.crt", "-n", "default"]);
            if asks.output()?.status.success() {
                return Ok(());
            }
            if let Some(why) = self.api.ended_program()? {
                return Err(StartError::NotReady(why));
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(StartError::NotReady(format!("no controller has filled the first namespace after {READY:?}")))
    }
}

/// The flags by which a program knows the API server, for itself and for those who ask it.
fn with_kubeconfig(command: &mut Command, kubeconfig: &Path) {
    for flag in ["--kubeconfig=", "--authentication-kubeconfig=", "--authorization-kubeconfig="] {
        command.arg(with_path(flag, kubeconfig));
    }
    command.args(["--leader-elect=false", "--bind-address=127.0.0.1"]).args(RATE);
}

fn controller_manager(folder: &Path, kubeconfig: &Path) -> Result<Command, StartError> {
    let mut command = Command::new(find("kube-controller-manager")?);
    with_kubeconfig(&mut command, kubeconfig);
    command.arg(port("--secure-port=")?).arg(with_path("--cert-dir=", &folder.join("manager-certs")));
    command.arg(with_path("--service-account-private-key-file=", &folder.join("sa.key")));
    command.arg(with_path("--root-ca-file=", &folder.join("certs/apiserver.crt")));
    command.arg("--controllers=*,-nodeipam");
    command.args(["--node-monitor-period=1s", "--node-monitor-grace-period=8s"]);
    command.args(["--pvclaimbinder-sync-period=5s", "--resource-quota-sync-period=10s"]);
    Ok(command)
}

fn scheduler(folder: &Path, kubeconfig: &Path) -> Result<Command, StartError> {
    let mut command = Command::new(find("kube-scheduler")?);
    with_kubeconfig(&mut command, kubeconfig);
    command.arg(port("--secure-port=")?).arg(with_path("--cert-dir=", &folder.join("scheduler-certs")));
    Ok(command)
}

fn kwok(folder: &Path, kubeconfig: &Path, node: &str) -> Result<Command, StartError> {
    let mut command = Command::new(find("kwok")?);
    command
        .arg(with_path("--kubeconfig=", kubeconfig))
        .arg(with_path("--config=", &folder.join("kwok.yaml")));
    command.arg(format!("--manage-single-node={node}"));
    command.arg("--node-lease-duration-seconds=4");
    Ok(command)
}

fn port(flag: &str) -> io::Result<String> {
    Ok(format!("{flag}{}", free_port()?))
}
