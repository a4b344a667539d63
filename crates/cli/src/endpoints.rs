//! The addresses at which the engine is asked for its measurements and its liveness, told of pushes, and answers in the place
//! of Argo CD's programs.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    body::{Body as _, Incoming},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tiphys_argocd::Programs;
use tiphys_controller::{Controller, WebhookError};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// What is told of a push is no larger, in bytes (argocd-cm, `webhook.maxPayloadSizeMB`, has this default).
const MAX_EVENT_BYTES: usize = 50 << 20;
/// So many are read at once, lest they fill the memory.
const EVENTS_AT_ONCE: usize = 4;
/// How long whoever tells of one may take.
const EVENT_LIMIT: Duration = Duration::from_secs(30);
/// How long the head of a request may take.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

struct Endpoints {
    controller: Arc<Controller>,
    events: Semaphore,
}

/// Serves `/metrics`, `/healthz` and `/api/webhook` until the runtime ends; returns the address that it listens on.
///
/// # Errors
/// The address cannot be listened on.
pub async fn serve(address: SocketAddr, controller: Arc<Controller>) -> anyhow::Result<SocketAddr> {
    let endpoints = Arc::new(Endpoints { controller, events: Semaphore::new(EVENTS_AT_ONCE) });
    listen(address, move |stream| {
        let endpoints = endpoints.clone();
        async move {
            let service = service_fn(move |request| {
                let endpoints = endpoints.clone();
                async move { Ok::<_, Infallible>(endpoints.answer(request).await) }
            });
            // Whoever hangs up early misses the rest.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_LIMIT)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        }
    })
    .await
}

/// Answers in the place of Argo CD's repo-server until the runtime ends; returns the address that it listens on.
///
/// # Errors
/// The address cannot be listened on.
pub async fn repo_server(address: SocketAddr, programs: Programs) -> anyhow::Result<SocketAddr> {
    listen(address, move |stream| {
        let programs = programs.clone();
        async move { programs.serve_repo_server(stream).await }
    })
    .await
}

/// The same in the place of Argo CD's Redis.
///
/// # Errors
/// The address cannot be listened on.
pub async fn redis(address: SocketAddr, programs: Programs) -> anyhow::Result<SocketAddr> {
    listen(address, move |stream| {
        let programs = programs.clone();
        async move { programs.serve_redis(stream).await }
    })
    .await
}

/// Serves every connection in a task of its own.
async fn listen<F: Future<Output = ()> + Send + 'static>(
    address: SocketAddr,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let bound = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    Ok(bound)
}

impl Endpoints {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, body) = match (request.uri().path(), request.method()) {
            ("/metrics", _) => (StatusCode::OK, self.controller.metrics()),
            ("/healthz", _) => (StatusCode::OK, "ok\n".to_owned()),
            ("/api/webhook", &Method::POST) => self.hear(request).await,
            ("/api/webhook", _) => (StatusCode::METHOD_NOT_ALLOWED, "events come by POST\n".to_owned()),
            _ => (StatusCode::NOT_FOUND, "/metrics, /healthz and /api/webhook are here\n".to_owned()),
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        let text = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(http::header::CONTENT_TYPE, text);
        response
    }

    async fn hear(&self, request: Request<Incoming>) -> (StatusCode, String) {
        let (head, body) = request.into_parts();
        let too_large = || {
            let said = format!("an event has at most {} MiB\n", MAX_EVENT_BYTES >> 20);
            (StatusCode::PAYLOAD_TOO_LARGE, said)
        };
        if body.size_hint().lower() > MAX_EVENT_BYTES as u64 {
            return too_large();
        }
        // It is closed by nobody.
        let _permit = self.events.acquire().await;
        let read = tokio::time::timeout(EVENT_LIMIT, Limited::new(body, MAX_EVENT_BYTES).collect());
        let body = match read.await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                return too_large();
            }
            Ok(Err(_)) => return (StatusCode::BAD_REQUEST, "the event breaks off\n".to_owned()),
            Err(_) => return (StatusCode::REQUEST_TIMEOUT, "the event does not come\n".to_owned()),
        };
        self.told(&head, &body)
    }

    fn told(&self, head: &Parts, body: &[u8]) -> (StatusCode, String) {
        let header = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
        match self.controller.heard(&header, body) {
            Ok(0) => (StatusCode::OK, "nothing here reads it\n".to_owned()),
            Ok(count) => {
                tracing::info!(count, "a push was told of: Applications and ApplicationSets are looked at");
                (StatusCode::OK, format!("{count} are looked at\n"))
            }
            Err(error) => {
                tracing::warn!(%error, "an event is not taken up");
                let status = match error {
                    WebhookError::Unproved => StatusCode::UNAUTHORIZED,
                    WebhookError::Unknown | WebhookError::Malformed => StatusCode::BAD_REQUEST,
                };
                (status, format!("{error}\n"))
            }
        }
    }
}
