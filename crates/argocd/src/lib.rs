//! What Argo CD's own programs look for beside the objects of the API. `argocd --core` runs an API server in
//! its own process that asks two more programs of an installation: the repo-server, over gRPC, for what
//! sources are and render to, and the cache of the controller, over the protocol of Redis, for the objects of
//! Applications. Both are reached by forwarding a port to a Pod. Here the engine answers for them; nothing is
//! kept twice.
//!
//! Who may forward ports to the Pod may ask: there are no further logins, as with Argo CD's repo-server.
//! Repositories are read with what is declared for the project that the question names, and the values of
//! Secrets are masked in all answers.

mod cache;
mod repo_server;

use std::sync::Arc;

use tiphys_controller::Controller;
use tiphys_tls::{HTTP2, Identity, TlsError};
use tokio::io::{AsyncRead, AsyncWrite};

pub use repo_server::RepoServer;

/// The port of Argo CD's repo-server.
pub const REPO_SERVER_PORT: u16 = 8081;
/// The port of Argo CD's Redis.
pub const REDIS_PORT: u16 = 6379;

/// Answers in the place of Argo CD's programs. Cheap to clone.
#[derive(Clone)]
pub struct Programs {
    repo_server: RepoServer,
    cache: cache::Cache,
    identity: Identity,
}

impl Programs {
    /// Answers from an engine, with a certificate of its own: nobody verifies it, as in Argo CD's default.
    ///
    /// # Errors
    /// The certificate cannot be made.
    pub fn new(controller: Arc<Controller>) -> Result<Self, TlsError> {
        // Forwarded ports are loopback.
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let identity = Identity::self_signed("tiphys", names, HTTP2)?;
        Ok(Self {
            repo_server: RepoServer::new(controller.clone()),
            cache: cache::Cache::new(controller),
            identity,
        })
    }

    /// The certificate that the repo-server shows.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Serves a connection to the repo-server until the client ends it.
    pub async fn serve_repo_server(&self, connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        repo_server::serve(&self.repo_server, &self.identity, connection).await;
    }

    /// Serves a connection to Redis until the client ends it.
    pub async fn serve_redis(&self, connection: impl AsyncRead + AsyncWrite + Send) {
        // How a connection ends is for the client to notice.
        let _ = cache::serve(&self.cache, connection).await;
    }
}
