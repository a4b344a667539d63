//! An embedded API server as a process of its own, reached through the kubeconfig that it writes.

use std::{
    fs,
    path::Path,
    process::{Child, Command},
    time::{Duration, Instant},
};

use anyhow::bail;
use serde_json::Value;

/// How long it may take to start.
const READY: Duration = Duration::from_secs(120);

/// A running server; ended when dropped.
pub(super) struct EmbeddedServer {
    child: Child,
    /// Host and port.
    pub address: String,
    /// The bearer token of its administrator.
    pub token: String,
}

impl EmbeddedServer {
    /// Runs a command that writes the kubeconfig once it is ready.
    ///
    /// # Errors
    /// It cannot be run, ends, or is not ready in time.
    pub(super) fn start(mut command: Command, kubeconfig: &Path) -> anyhow::Result<Self> {
        let mut server = Self { child: command.spawn()?, address: String::new(), token: String::new() };
        let start = Instant::now();
        while !kubeconfig.exists() {
            if start.elapsed() > READY || server.child.try_wait()?.is_some() {
                bail!("the embedded server is not ready after {:?}", start.elapsed());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let config: Value = serde_json::from_str(&fs::read_to_string(kubeconfig)?)?;
        let text =
            |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        server.address = text("/clusters/0/cluster/server").trim_start_matches("https://").to_owned();
        server.token = text("/users/0/user/token");
        Ok(server)
    }

    /// The number of its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        // One that has ended already needs no end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
