//! The cache of Argo CD's controller, which its API server reads through Redis. What the controller would put
//! there is answered from the engine when it is asked for; what an API server puts there itself is kept for
//! as long as it says.

mod commands;
mod entries;

use std::{io::Write as _, sync::Arc};

use flate2::{Compression, write::GzEncoder};
use parking_lot::Mutex;
use serde::Serialize;
use tiphys_controller::Controller;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

use commands::{Command, Reply, read_command};
use entries::Entries;

/// What the keys of Applications begin with.
const OF_ENGINE: &str = "app|";

/// The cache, as one installation has it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cache {
    controller: Arc<Controller>,
    entries: Arc<Mutex<Entries>>,
}

impl Cache {
    pub(crate) fn new(controller: Arc<Controller>) -> Self {
        Self { controller, entries: Arc::default() }
    }

    async fn answer(&self, command: Command) -> Reply {
        let entries = || self.entries.lock();
        match command {
            Command::Done => Reply::Ok,
            Command::Ping => Reply::Text("PONG"),
            Command::Get(key) => {
                let known = self.of_engine(&key).await;
                known.or_else(|| entries().get(&key)).map_or(Reply::Nothing, Reply::Bytes)
            }
            // Whoever reaches the cache must not tell others what an Application is (CVE-2024-31989).
            Command::Set { key, .. } | Command::Rename(_, key) if key.starts_with(OF_ENGINE) => {
                Reply::Error(format!("ERR {key}: the engine alone tells of Applications"))
            }
            Command::Set { key, value, lifetime, if_absent } => {
                match entries().set(key, value, lifetime, if_absent) {
                    Ok(true) => Reply::Ok,
                    Ok(false) => Reply::Nothing,
                    Err(full) => Reply::Error(full),
                }
            }
            Command::Delete(keys) => {
                let mut entries = entries();
                Reply::Number(keys.iter().filter(|key| entries.remove(key)).count())
            }
            Command::Rename(from, to) => match entries().rename(&from, to) {
                true => Reply::Ok,
                false => Reply::Error("ERR no such key".to_owned()),
            },
            // Nobody listens.
            Command::Publish => Reply::Number(0),
            Command::Refused(why) => Reply::Error(why),
        }
    }

    /// What the controller of Argo CD would have put under a key: `app|resources-tree|NAME|VERSION`, with
    /// `.gz` behind it if it is compressed.
    async fn of_engine(&self, key: &str) -> Option<Vec<u8>> {
        let (plain, is_compressed) = key.strip_suffix(".gz").map_or((key, false), |plain| (plain, true));
        let parts: Vec<&str> = plain.split('|').collect();
        let ["app", what, instance, _version] = parts.as_slice() else { return None };
        let app = self.controller.app_of(instance);
        match *what {
            "resources-tree" => encoded(&self.controller.resource_tree(&app).await?, is_compressed),
            "managed-resources" => encoded(&self.controller.managed_resources(&app).await?, is_compressed),
            _ => None,
        }
    }
}

fn encoded(value: &impl Serialize, is_compressed: bool) -> Option<Vec<u8>> {
    let text = serde_json::to_vec(value).ok()?;
    if !is_compressed {
        return Some(text);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&text).ok()?;
    encoder.finish().ok()
}

/// Serves one connection until the client ends it.
pub(crate) async fn serve(
    cache: &Cache,
    connection: impl AsyncRead + AsyncWrite + Send,
) -> std::io::Result<()> {
    let (reader, mut writer) = tokio::io::split(connection);
    let mut reader = BufReader::new(reader);
    while let Some(command) = read_command(&mut reader).await? {
        let reply = cache.answer(command).await;
        writer.write_all(&reply.bytes()).await?;
        writer.flush().await?;
    }
    Ok(())
}
