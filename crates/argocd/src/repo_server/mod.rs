//! Argo CD's repo-server: the calls of `repository.RepoServerService` that its API server makes for the
//! command line. What other programs of Argo CD call is refused by name.

mod handlers;
mod messages;
mod source;
mod streamed;

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body as HttpBody;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    service::TowerToHyperService,
};
use tiphys_controller::Controller;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tonic::{Status, Streaming, body::Body, server::Grpc};
use tonic_prost::ProstCodec;
use tower::Service;

use tiphys_tls::Identity;

/// Most bytes of a request (Argo CD, `ARGOCD_GRPC_MAX_SIZE_MB`, has this default).
const MAX_REQUEST: usize = 100 << 20;
/// How long a client may take for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// What every path of the service begins with.
const SERVICE: &str = "/repository.RepoServerService/";

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The service, for an HTTP/2 server. Cheap to clone.
#[derive(Clone)]
pub struct RepoServer {
    controller: Arc<Controller>,
}

impl RepoServer {
    /// Answers from an engine.
    pub fn new(controller: Arc<Controller>) -> Self {
        Self { controller }
    }

    async fn answer<B>(self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError> + Send,
    {
        let path = request.uri().path().to_owned();
        match path.strip_prefix(SERVICE).unwrap_or_default() {
            "GenerateManifest" => self.unary(request, handlers::generate_manifest).await,
            "GenerateManifestWithFiles" => self.client_streaming(request, streamed::generate_manifest).await,
            "ResolveRevision" => self.unary(request, handlers::resolve_revision).await,
            "TestRepository" => self.unary(request, handlers::test_repository).await,
            _ => Status::unimplemented(format!(
                "{path}: Tiphys answers GenerateManifest, GenerateManifestWithFiles, ResolveRevision and TestRepository in \
                 the place of a repo-server"
            ))
            .into_http(),
        }
    }

    /// One call with one answer.
    async fn unary<B, Q, A, F>(
        self,
        request: Request<B>,
        call: impl Fn(Arc<Controller>, Q) -> F + Clone + Send + 'static,
    ) -> Response<Body>
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError> + Send,
        Q: prost::Message + Default + 'static,
        A: prost::Message + 'static,
        F: Future<Output = Result<A, Status>> + Send + 'static,
    {
        let service = tower::service_fn(move |request: tonic::Request<Q>| {
            let called = call(self.controller.clone(), request.into_inner());
            async move { called.await.map(tonic::Response::new) }
        });
        Grpc::new(ProstCodec::<A, Q>::default())
            .max_decoding_message_size(MAX_REQUEST)
            .unary(service, request)
            .await
    }

    /// One call of several messages with one answer.
    async fn client_streaming<B, Q, A, F>(
        self,
        request: Request<B>,
        call: impl Fn(Arc<Controller>, Streaming<Q>) -> F + Clone + Send + 'static,
    ) -> Response<Body>
    where
        B: HttpBody + Send + 'static,
        B::Error: Into<BoxError> + Send,
        Q: prost::Message + Default + 'static,
        A: prost::Message + 'static,
        F: Future<Output = Result<A, Status>> + Send + 'static,
    {
        let service = tower::service_fn(move |request: tonic::Request<Streaming<Q>>| {
            let called = call(self.controller.clone(), request.into_inner());
            async move { called.await.map(tonic::Response::new) }
        });
        Grpc::new(ProstCodec::<A, Q>::default())
            .max_decoding_message_size(MAX_REQUEST)
            .client_streaming(service, request)
            .await
    }
}

impl<B> Service<Request<B>> for RepoServer
where
    B: HttpBody + Send + 'static,
    B::Error: Into<BoxError> + Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.answer(request).await) })
    }
}

/// Serves one connection.
pub(crate) async fn serve(
    server: &RepoServer,
    identity: &Identity,
    connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let acceptor = TlsAcceptor::from(identity.config.clone());
    let Ok(Ok(tls)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(connection)).await else { return };
    let service = TowerToHyperService::new(server.clone());
    // How a connection ends is for the client to notice.
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(tls), service)
        .await;
}
