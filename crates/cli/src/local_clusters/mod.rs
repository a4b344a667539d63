//! The embedded clusters that run on this machine: where `tiphys up` and `tiphys twin` note them, and how
//! other commands find the one of a folder.
//!
//! The notes lie in a folder of the user's own and never in a working tree: whoever wrote a repository must
//! not decide which cluster is spoken to, nor what a kubeconfig executes.

mod kubeconfig;
mod private;

use std::{
    fs,
    net::{TcpStream, ToSocketAddrs as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tiphys_apiserver::Serving;

use crate::exit::WrongUse;

/// How long a cluster on this machine takes to answer.
const ANSWER: Duration = Duration::from_millis(500);
/// The note of a cluster, in the folder of the cluster.
const NOTE: &str = "cluster.json";
/// The kubeconfig, beside the note.
const KUBECONFIG: &str = "kubeconfig";

/// The repository that a cluster runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Served {
    /// Its folder.
    pub folder: PathBuf,
    /// Its Applications take the commits that they name, not the files as they are.
    pub by_revision: bool,
}

/// What is noted of a running cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    /// The process that runs it.
    process: u32,
    /// The address of its API, `https://…`.
    server: String,
    /// Commands in or below one of these folders mean it.
    folders: Vec<PathBuf>,
    /// The repository that it runs, if that is a folder.
    served: Option<Served>,
}

/// A cluster that runs on this machine.
#[derive(Clone, Debug)]
pub(crate) struct LocalCluster {
    folder: PathBuf,
    note: Note,
}

impl LocalCluster {
    /// Its kubeconfig, which holds an address of this machine and a token, and nothing that could be
    /// executed.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join(KUBECONFIG)
    }

    /// The repository that it runs, if that is a folder that is still there.
    pub(crate) fn served(&self) -> Option<&Served> {
        self.note.served.as_ref().filter(|served| served.folder.is_dir())
    }

    /// The one that runs for a folder or for the nearest folder above; none if no cluster runs there.
    ///
    /// # Errors
    /// Several run there, or what is noted cannot be trusted.
    pub(crate) fn of_folder(folder: &Path) -> anyhow::Result<Option<Self>> {
        let Ok(folder) = folder.canonicalize() else { return Ok(None) };
        let depth = |cluster: &Self| {
            let above = cluster.note.folders.iter().filter(|above| folder.starts_with(above));
            above.map(|above| above.components().count()).max()
        };
        let mut found: Vec<(usize, Self)> = Vec::new();
        for cluster in all()? {
            if let Some(depth) = depth(&cluster) {
                found.push((depth, cluster));
            }
        }
        found.retain(|(_, cluster)| answers(&cluster.note.server));
        let nearest = found.iter().map(|(depth, _)| *depth).max();
        found.retain(|(depth, _)| Some(*depth) == nearest);
        match found.as_slice() {
            [] => Ok(None),
            [(_, only)] => {
                kubeconfig::refuse_unsafe(&only.kubeconfig(), &only.note.server)?;
                Ok(Some(only.clone()))
            }
            several => Err(WrongUse(choose_one(&folder, several)).into()),
        }
    }

    /// The one whose API has an address.
    pub(crate) fn at_server(server: &str) -> Option<Self> {
        let server = server.trim_end_matches('/');
        all().ok()?.into_iter().find(|cluster| cluster.note.server == server)
    }
}

fn choose_one(folder: &Path, several: &[(usize, LocalCluster)]) -> String {
    let lines = several.iter().map(|(_, cluster)| {
        format!("\n  {} (process {})", cluster.kubeconfig().display(), cluster.note.process)
    });
    format!(
        "{} clusters run for {}; name the kubeconfig of one with --kubeconfig:{}",
        several.len(),
        folder.display(),
        lines.collect::<String>()
    )
}

/// What a cluster is started for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Purpose {
    /// The folder or address of the repository; empty for a cluster without one.
    pub place: String,
    /// What tells it from others of the same place.
    pub environment: String,
    /// The repository, if it is a folder.
    pub served: Option<Served>,
}

/// The place where a cluster is noted while it runs; dropping it takes the note away.
#[derive(Debug)]
pub(crate) struct Registration {
    folder: PathBuf,
    purpose: Purpose,
    folders: Vec<PathBuf>,
    /// Another place that the user named for the kubeconfig.
    named: Option<PathBuf>,
}

impl Registration {
    /// Takes the place of a cluster that is about to start, with the kubeconfig also in a file that the user
    /// named.
    ///
    /// # Errors
    /// One runs there already, the file holds somebody else's kubeconfig, or the user's folder cannot be
    /// used.
    pub(crate) fn open(purpose: Purpose, named: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(file) = named {
            kubeconfig::refuse_foreign(file)?;
        }
        remove_ended();
        let here = std::env::current_dir().and_then(|here| here.canonicalize());
        let here = here.context("the working folder cannot be read")?;
        let place = Path::new(&purpose.place).canonicalize().unwrap_or_else(|_| here.join(&purpose.place));
        let folder = private::folder()?.join(key(&place, &purpose, named));
        if let Some(running) = read(&folder).filter(|running| answers(&running.note.server)) {
            return Err(WrongUse(format!(
                "a cluster for this folder runs already: process {}, kubeconfig {}; end it, or choose another \
                 environment or another file with --kubeconfig",
                running.note.process,
                running.kubeconfig().display()
            ))
            .into());
        }
        let mut folders = vec![here];
        folders.extend(purpose.served.as_ref().and_then(|served| served.folder.canonicalize().ok()));
        folders.dedup();
        Ok(Self { folder, purpose, folders, named: named.map(Path::to_path_buf) })
    }

    /// Where the kubeconfig is: what a person is told.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.named.clone().unwrap_or_else(|| self.folder.join(KUBECONFIG))
    }

    /// Writes the kubeconfig of a cluster that listens, and the note by which commands find it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn note(&self, serving: &Serving) -> anyhow::Result<()> {
        private::create(&self.folder)?;
        self.write_kubeconfig(serving, None)?;
        let note = Note {
            process: std::process::id(),
            server: format!("https://{}", serving.address()),
            folders: self.folders.clone(),
            served: self.purpose.served.clone(),
        };
        private::write(&self.folder.join(NOTE), &serde_json::to_vec_pretty(&note)?)
    }

    /// Writes the kubeconfig of a cluster beside the first one, by its name.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn note_beside(&self, serving: &Serving, name: &str) -> anyhow::Result<()> {
        self.write_kubeconfig(serving, Some(name))
    }

    fn write_kubeconfig(&self, serving: &Serving, beside: Option<&str>) -> anyhow::Result<()> {
        let own = self.folder.join(KUBECONFIG);
        for file in [Some(&own), self.named.as_ref()].into_iter().flatten() {
            let file = beside.map_or_else(|| file.clone(), |name| kubeconfig_beside(file, name));
            let written = serving.write_kubeconfig(&file);
            written.with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Another process may have taken the place meanwhile; its note stays.
        if read(&self.folder).is_some_and(|cluster| cluster.note.process == std::process::id()) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Where the kubeconfig of a cluster beside the first, whose kubeconfig is given, is.
pub(crate) fn kubeconfig_beside(first: &Path, name: &str) -> PathBuf {
    let mut path = first.to_path_buf().into_os_string();
    path.push(format!(".{name}"));
    path.into()
}

/// Whether the server of a kubeconfig can be reached.
pub(crate) fn kubeconfig_answers(file: &Path) -> bool {
    kubeconfig::server(file).is_some_and(|server| answers(&server))
}

fn answers(server: &str) -> bool {
    let address = || server.strip_prefix("https://")?.to_socket_addrs().ok()?.next();
    address().is_some_and(|address| TcpStream::connect_timeout(&address, ANSWER).is_ok())
}

/// The name of the folder of a cluster: readable, and different for what must not share one.
fn key(place: &Path, purpose: &Purpose, named: Option<&Path>) -> String {
    let mut digest = Sha256::new();
    digest.update(place.as_os_str().as_encoded_bytes());
    digest.update([0]);
    digest.update(&purpose.environment);
    digest.update([0]);
    digest.update(named.map(|file| file.as_os_str().as_encoded_bytes()).unwrap_or_default());
    let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = name.chars().take(32).map(plain).collect();
    format!("{name}-{digest}")
}

/// The clusters that are noted, whether they still run or not.
fn all() -> anyhow::Result<Vec<LocalCluster>> {
    let folder = match private::existing_folder()? {
        Some(folder) => folder,
        None => return Ok(Vec::new()),
    };
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    Ok(folders.iter().filter_map(|folder| read(folder)).collect())
}

/// What is noted in a folder; a note that another version wrote differently counts as none.
fn read(folder: &Path) -> Option<LocalCluster> {
    let note = serde_json::from_slice(&fs::read(folder.join(NOTE)).ok()?).ok()?;
    Some(LocalCluster { folder: folder.to_path_buf(), note })
}

/// Takes away what processes left that were killed.
fn remove_ended() {
    for cluster in all().unwrap_or_default() {
        if !answers(&cluster.note.server) {
            let _ = fs::remove_dir_all(&cluster.folder);
        }
    }
}
