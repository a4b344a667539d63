//! Which cluster the Applications are in.

use std::{
    net::{TcpStream, ToSocketAddrs},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use tiphys_cluster::{Cluster, Connection};
use tiphys_value::{GroupVersionKind, ObjectExt, json};

use crate::exit::WrongUse;

/// Where `tiphys up` writes its kubeconfig.
const TWIN: &str = ".tiphys/kubeconfig";
/// Where the cluster of a `tiphys up` says whose it is: namespace and name of a ConfigMap, and its key.
const NOTE: (&str, &str) = ("kube-public", "tiphys-up");
const NOTED: &str = "kubeconfig";
/// How long a running `tiphys up` takes to answer: it is on this machine.
const ANSWER: Duration = Duration::from_millis(500);

/// Which cluster.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct Target {
    /// Kubeconfig of the cluster that the Applications are in; by default that of a `tiphys up` running
    /// here (.tiphys/kubeconfig), else $KUBECONFIG, else ~/.kube/config.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of Applications that are named without one.
    #[arg(long, short = 'N', global = true, default_value = crate::ENGINE_NAMESPACE, value_name = "NAMESPACE")]
    pub app_namespace: String,
}

/// The cluster that was chosen.
pub struct Chosen {
    /// The connection.
    pub connection: Connection,
    /// The repository that a `tiphys up` serves, if the cluster is one's.
    pub repository: Option<Served>,
    /// The kubeconfig, if the cluster is a `tiphys up`'s.
    pub twin: Option<PathBuf>,
}

/// The repository that a `tiphys up` serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its folder.
    pub folder: PathBuf,
    /// Its Applications take the commits that they name, not the files as they are.
    pub by_revision: bool,
}

impl Target {
    /// Connects.
    ///
    /// # Errors
    /// There is no usable kubeconfig.
    pub async fn connect(&self) -> anyhow::Result<Chosen> {
        let twin = self.twin();
        let file = self.kubeconfig.as_deref().or(twin.as_deref());
        let connection = Cluster::connect(file, self.context.as_deref()).await;
        let connection = connection.map_err(|error| WrongUse(format!("{error}{}", self.advice(file))))?;
        let repository = file.and_then(served);
        let twin = file.filter(|file| repository.is_some() || file.ends_with(TWIN)).map(Path::to_path_buf);
        Ok(Chosen { connection, repository, twin })
    }

    /// What somebody may do who named no cluster, and for whom none was found.
    fn advice(&self, file: Option<&Path>) -> &'static str {
        match (file, &self.context) {
            (None, None) => {
                "; no `tiphys up` runs in this folder or above it: start one, or name a cluster with --kubeconfig"
            }
            _ => "",
        }
    }

    /// The kubeconfig of a `tiphys up` that runs in this folder or above, unless another one is asked for.
    fn twin(&self) -> Option<PathBuf> {
        if self.kubeconfig.is_some() || self.context.is_some() {
            return None;
        }
        let here = std::env::current_dir().ok()?;
        let file = here.ancestors().map(|folder| folder.join(TWIN)).find(|file| file.is_file())?;
        answers(&file).then_some(file)
    }
}

impl Chosen {
    /// Takes up what a `tiphys up` says of itself in its cluster, where the kubeconfig did not tell: a copy of it, or one
    /// that `KUBECONFIG` names.
    pub async fn ask_whose_it_is(&mut self) {
        if self.twin.is_some() {
            return;
        }
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        let Ok(resource) = self.connection.cluster.resource(&kind).await else { return };
        // Who may not read it has another cluster.
        let note = self.connection.cluster.get(&resource, NOTE.0, NOTE.1).await.ok().flatten();
        let Some(file) = note.as_ref().and_then(|note| note.str_at(&["data", NOTED])).map(PathBuf::from)
        else {
            return;
        };
        // A cluster may say much; what the file itself leads to is this one.
        if server(&file).as_deref() == Some(self.connection.address.trim_end_matches('/')) {
            self.repository = served(&file);
            self.twin = Some(file);
        }
    }
}

/// Says in the cluster of a `tiphys up` where its kubeconfig is.
///
/// # Errors
/// The cluster does not take it.
pub async fn note_in_cluster(cluster: &Cluster, kubeconfig: &Path) -> anyhow::Result<()> {
    let file = kubeconfig.canonicalize()?;
    let note = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": NOTE.0, "name": NOTE.1},
        "data": {NOTED: file.to_string_lossy()},
    });
    cluster.apply(&note, &crate::up::apply_options()).await?;
    Ok(())
}

/// The server of a kubeconfig of a `tiphys up`.
fn server(kubeconfig: &Path) -> Option<String> {
    let text = std::fs::read_to_string(kubeconfig).ok()?;
    let config = tiphys_yaml::from_yaml(&text).ok()?;
    let server = config.pointer("/clusters/0/cluster/server")?.as_str()?;
    Some(server.trim_end_matches('/').to_owned())
}

/// Whether the server of a kubeconfig can be reached.
pub fn answers(kubeconfig: &Path) -> bool {
    let address =
        || server(kubeconfig)?.strip_prefix("https://").and_then(|host| host.to_socket_addrs().ok()?.next());
    address().is_some_and(|address| TcpStream::connect_timeout(&address, ANSWER).is_ok())
}

/// The second line of the note where revisions count.
const BY_REVISION: &str = "by-revision";

/// What a `tiphys up` noted beside its kubeconfig.
fn served(kubeconfig: &Path) -> Option<Served> {
    let text = std::fs::read_to_string(kubeconfig.with_file_name("repository")).ok()?;
    let mut lines = text.lines();
    let folder = PathBuf::from(lines.next()?);
    let by_revision = lines.next() == Some(BY_REVISION);
    folder.is_dir().then_some(Served { folder, by_revision })
}

/// Notes what a `tiphys up` serves beside its kubeconfig, or that it serves no folder.
///
/// # Errors
/// The file cannot be written.
pub fn note_served(kubeconfig: &Path, served: Option<&Served>) -> anyhow::Result<()> {
    let file = kubeconfig.with_file_name("repository");
    let Some(Served { folder, by_revision }) = served else {
        // An earlier run's note must not stand for this one.
        let _ = std::fs::remove_file(&file);
        return Ok(());
    };
    let mark = if *by_revision { BY_REVISION } else { "as-it-is" };
    std::fs::write(&file, format!("{}\n{mark}\n", folder.display()))
        .with_context(|| format!("cannot write {}", file.display()))
}
