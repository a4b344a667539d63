//! Serving over TLS.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tiphys_tls::TlsError;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;

use super::stall_timeout::Stalling;
use crate::{ApiServer, tls::TlsIdentity};

/// How long a client may take for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);
/// Connections at one time; who comes beyond them is hung up on.
const CONNECTIONS: usize = 4096;

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A listener with its certificate: bound, but not yet served.
pub struct Serving {
    listener: TcpListener,
    address: SocketAddr,
    identity: TlsIdentity,
    server: ApiServer,
}

impl ApiServer {
    /// Listens on an address (port 0 picks a free one) with a certificate of its own.
    pub async fn bind(&self, address: SocketAddr) -> Result<Serving, ServeError> {
        let fail = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let identity = TlsIdentity::generate(address, self.snapshot().service_network().first())?;
        Ok(Serving { listener, address, identity, server: self.clone() })
    }
}

impl Serving {
    /// The address that is listened on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate of the authority that clients must trust, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.identity.ca_pem
    }

    /// Writes a kubeconfig for this listener.
    pub fn write_kubeconfig(&self, path: &std::path::Path) -> io::Result<()> {
        super::write_kubeconfig(path, self.address, self.ca_pem(), self.server.token())
    }

    /// Serves until the future is dropped; connections end with it.
    pub async fn run(self) {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.identity.server.config));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    // A connection that fails while it is accepted is the client's loss only.
                    let Ok((stream, _)) = accepted else {
                        tokio::task::yield_now().await;
                        continue;
                    };
                    if connections.len() >= CONNECTIONS {
                        continue;
                    }
                    connections.spawn(connection(acceptor.clone(), stream, self.server.clone()));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

async fn connection(acceptor: TlsAcceptor, stream: tokio::net::TcpStream, server: ApiServer) {
    // Small answers must not wait for more; failing to say so only costs time.
    let _ = stream.set_nodelay(true);
    let Ok(Ok(tls)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else { return };
    let service = TowerToHyperService::new(server.authenticated_service());
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    builder.http2().timer(TokioTimer::new());
    // How a connection ends is for the client to notice.
    let _ = builder.serve_connection_with_upgrades(TokioIo::new(Stalling::new(tls)), service).await;
}
