//! The embedded cluster, served on loopback for as long as a command needs it.

use std::path::Path;

use anyhow::Context;
use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_world::{Driver, Settings};
use tokio::task::JoinHandle;

/// The running cluster; dropping it ends it.
pub(super) struct Twin {
    /// Its API.
    pub server: ApiServer,
    /// Address and port.
    pub address: String,
    tasks: Vec<JoinHandle<()>>,
}

impl Twin {
    /// Starts the API server alone, or with the world behind it; writes a kubeconfig if asked to.
    ///
    /// # Errors
    /// It cannot listen, or the kubeconfig not be written.
    pub(super) async fn start(with_world: bool, kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        let server = ApiServer::new(ApiServerOptions::default())?;
        let serving = server.bind(([127, 0, 0, 1], 0).into()).await?;
        if let Some(path) = kubeconfig {
            serving.write_kubeconfig(path).with_context(|| path.display().to_string())?;
        }
        let address = serving.address().to_string();
        let mut tasks = Vec::new();
        if with_world {
            let settings = Settings { root_ca: serving.ca_pem().to_owned(), ..Settings::default() };
            let driver = Driver::new(&server, settings).context("the world does not start")?;
            tasks.push(tokio::spawn(driver.run()));
        }
        tasks.push(tokio::spawn(serving.run()));
        Ok(Self { server, address, tasks })
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
