//! The state folder: every commit goes to a writer thread, which puts what has queued up into one
//! transaction and syncs it to disk. A write is acknowledged once its transaction is on disk.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use redb::{Database, ReadOnlyDatabase, ReadableDatabase, ReadableTable, TableDefinition};
use tiphys_value::Value;
use tokio::sync::watch;

use super::{Object, ResourceId};

/// `group\0resource\0key` to the object's JSON.
const OBJECTS: TableDefinition<&str, &[u8]> = TableDefinition::new("objects");
/// Format version and newest revision.
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// The format that this program writes.
const FORMAT: u64 = 1;
/// The database file in the state folder.
const FILE: &str = "cluster.redb";
/// The file beside it with the number of the process that opened it last.
const HOLDER: &str = "cluster.redb.holder";

/// Why a state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The folder cannot be made.
    #[error("cannot create the state folder {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The folder was written by a newer program.
    #[error(
        "the state folder {} has format {found}, this program knows format {FORMAT}: \
         it was written by a newer version of tiphys", folder.display()
    )]
    TooNew {
        /// The folder.
        folder: PathBuf,
        /// Its format.
        found: u64,
    },
    /// The cluster in the folder gives Services other addresses than it was asked to.
    #[error(
        "the cluster in the state folder has the service network {was}, not {asked}: its Services keep their \
         addresses; start it without --service-cluster-ip-range, or with another state folder"
    )]
    Network {
        /// Its network.
        was: super::ServiceNetwork,
        /// The one that was asked for.
        asked: super::ServiceNetwork,
    },
    /// An entry cannot be read back.
    #[error("the state folder holds an unreadable object at {key:?}: {source}")]
    Corrupt {
        /// Where.
        key: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The database is there and holds nothing, as after a crash or a full disk: a new cluster in its place
    /// would hide that.
    #[error(
        "the state file {} is empty: what was in it is lost. Take it out of the way to begin a new cluster", file.display()
    )]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// The database is damaged.
    #[error("the state folder {} is damaged: {why}. Put a copy in its place, or begin with another folder", folder.display())]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// What the database found.
        why: String,
    },
    /// Another process has the cluster in the folder.
    #[error(
        "the state folder {} is used by {}: end that, or take another folder",
        folder.display(),
        by.map_or_else(|| "another process".to_owned(), |by| format!("process {by}"))
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The number of that process, if it left it there.
        by: Option<u32>,
    },
    /// The database failed.
    #[error("state database: {0}")]
    Database(Box<redb::Error>),
    /// The writer is gone after an earlier failure.
    #[error("the state folder cannot be written any more: {0}")]
    WriterStopped(String),
}

impl<E: Into<redb::Error>> From<E> for StateError {
    fn from(error: E) -> Self {
        Self::Database(Box::new(error.into()))
    }
}

/// One change on its way to disk.
pub(super) struct Record {
    key: String,
    revision: u64,
    /// `None` removes the key.
    object: Option<Arc<Object>>,
}

impl Record {
    pub(super) fn new(resource: &ResourceId, key: &str, revision: u64, object: Option<Arc<Object>>) -> Self {
        let key = format!("{}\0{}\0{key}", resource.group(), resource.resource());
        Self { key, revision, object }
    }
}

/// The writer's end that the store holds.
pub(super) struct Journal {
    queue: Option<Sender<Record>>,
    written: watch::Receiver<Result<u64, String>>,
    writer: Option<JoinHandle<()>>,
    newest: u64,
}

/// What a state folder holds: resource, key and object.
type Stored = Vec<(ResourceId, String, Object)>;

impl Journal {
    /// Opens a folder, making it if need be, and reads everything in it.
    pub(super) fn open(folder: &Path) -> Result<(Self, Stored), StateError> {
        let fail = |source| StateError::Folder { folder: folder.to_owned(), source };
        file_permissions::make_folder(folder, FILE).map_err(fail)?;
        let file = folder.join(FILE);
        match std::fs::metadata(&file) {
            Ok(found) if found.len() == 0 => return Err(StateError::Empty { file }),
            Ok(_) => file_permissions::keep_file(&file).map_err(fail)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => begin(&file, folder)?,
            Err(error) => return Err(fail(error)),
        }
        // The database's library panics at some damages.
        let open = || {
            refuse_newer(&file, folder)?;
            let database = Database::open(&file)?;
            // Only for a message: without it the folder is as good.
            let _ = file_permissions::replace_file(&folder.join(HOLDER), &std::process::id().to_string());
            Self::open_database(database, folder)
        };
        let opened = tiphys_diag::catch_panic("the state", open).unwrap_or_else(|panicked| {
            Err(StateError::Damaged { folder: folder.to_owned(), why: panicked.reason })
        });
        opened.map_err(|error| match error {
            StateError::Database(cause) if matches!(*cause, redb::Error::DatabaseAlreadyOpen) => {
                StateError::InUse { folder: folder.to_owned(), by: holder(folder) }
            }
            other => other,
        })
    }

    /// Opens a database that stands for a folder.
    fn open_database(database: Database, folder: &Path) -> Result<(Self, Stored), StateError> {
        let newest = prepare(&database, folder)?;
        let stored = read_all(&database)?;
        let (queue, records) = channel();
        let (report, written) = watch::channel(Ok(newest));
        let writer = std::thread::spawn(move || write_batches(&database, &records, &report));
        Ok((Self { queue: Some(queue), written, writer: Some(writer), newest }, stored))
    }

    /// The newest revision that was on disk when the folder was opened.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Queues a change. A writer that stopped is reported by [`Self::durable`].
    pub(super) fn append(&self, record: Record) {
        if let Some(queue) = &self.queue {
            let _ = queue.send(record);
        }
    }

    /// Waits until a revision is on disk.
    pub(super) async fn durable(&self, revision: u64) -> Result<(), StateError> {
        let mut written = self.written.clone();
        let reached = written.wait_for(|state| state.as_ref().map_or(true, |at| *at >= revision)).await;
        match reached.as_deref() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(why)) => Err(StateError::WriterStopped(why.clone())),
            Err(_) => Err(StateError::WriterStopped("the writer ended".into())),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has already been reported to everyone who waited for it.
            let _ = writer.join();
        }
    }
}

/// The process that opened a folder last.
fn holder(folder: &Path) -> Option<u32> {
    std::fs::read_to_string(folder.join(HOLDER)).ok()?.trim().parse().ok()
}

/// Makes a database under another name first: whoever is killed meanwhile leaves no empty one behind.
fn begin(file: &Path, folder: &Path) -> Result<(), StateError> {
    let fail = |source| StateError::Folder { folder: folder.to_owned(), source };
    let new = folder.join(format!("{FILE}.new"));
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let handle = file_permissions::create_file(&new).map_err(fail)?;
    let database = Database::builder().create_file(handle)?;
    prepare(&database, folder)?;
    drop(database);
    std::fs::rename(&new, file).map_err(fail)
}

/// Refuses a newer format before the file is opened for writing, which may already shorten it. What a write
/// left unfinished cannot be read so; it is judged once it is repaired.
fn refuse_newer(file: &Path, folder: &Path) -> Result<(), StateError> {
    let Ok(database) = ReadOnlyDatabase::open(file) else { return Ok(()) };
    let Ok(meta) = database.begin_read()?.open_table(META) else { return Ok(()) };
    match meta.get("format")?.map(|guard| guard.value()) {
        Some(found) if found != FORMAT => Err(StateError::TooNew { folder: folder.to_owned(), found }),
        _ => Ok(()),
    }
}

/// Checks the format, writes it into a new database, and returns the newest revision.
fn prepare(database: &Database, folder: &Path) -> Result<u64, StateError> {
    let transaction = database.begin_write()?;
    let newest = {
        let mut meta = transaction.open_table(META)?;
        transaction.open_table(OBJECTS)?;
        let found = meta.get("format")?.map(|guard| guard.value());
        match found {
            Some(FORMAT) => {}
            None => {
                meta.insert("format", FORMAT)?;
            }
            Some(found) => return Err(StateError::TooNew { folder: folder.to_owned(), found }),
        }
        meta.get("revision")?.map_or(0, |guard| guard.value())
    };
    transaction.commit()?;
    Ok(newest)
}

fn read_all(database: &Database) -> Result<Stored, StateError> {
    let transaction = database.begin_read()?;
    let table = transaction.open_table(OBJECTS)?;
    let mut stored = Vec::new();
    for entry in table.iter()? {
        let (key, bytes) = entry?;
        let mut parts = key.value().splitn(3, '\0');
        let (Some(group), Some(resource), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let value: Value = serde_json::from_slice(bytes.value())
            .map_err(|source| StateError::Corrupt { key: key.value().to_owned(), source })?;
        if !value.is_object() {
            let source = serde::de::Error::custom("it is no object");
            return Err(StateError::Corrupt { key: key.value().to_owned(), source });
        }
        let revision =
            value["metadata"]["resourceVersion"].as_str().and_then(|r| r.parse().ok()).unwrap_or(0);
        stored.push((ResourceId::new(group, resource), name.to_owned(), Object::stamped(value, revision)));
    }
    Ok(stored)
}

fn write_batches(
    database: &Database,
    records: &Receiver<Record>,
    report: &watch::Sender<Result<u64, String>>,
) {
    while let Ok(first) = records.recv() {
        let mut batch = vec![first];
        batch.extend(records.try_iter().take(4095));
        let newest = batch.last().map_or(0, |record| record.revision);
        match write_batch(database, &batch, newest) {
            Ok(()) => drop(report.send_replace(Ok(newest))),
            Err(error) => {
                drop(report.send_replace(Err(error.to_string())));
                return;
            }
        }
    }
}

fn write_batch(database: &Database, batch: &[Record], newest: u64) -> Result<(), StateError> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for record in batch {
            match &record.object {
                Some(object) => objects.insert(record.key.as_str(), object.json().as_ref())?,
                None => objects.remove(record.key.as_str())?,
            };
        }
        transaction.open_table(META)?.insert("revision", newest)?;
    }
    transaction.commit()?;
    Ok(())
}

mod file_permissions;
#[cfg(test)]
mod tests;
