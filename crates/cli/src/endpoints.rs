//! The addresses at which the engine is asked for its measurements and its liveness, told of pushes, and
//! answers in the place of Argo CD's programs.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Body as _, Incoming},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tiphys_argocd::Programs;
use tiphys_controller::{Controller, WebhookError};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};

/// What is told of a push is no larger, in bytes (argocd-cm, `webhook.maxPayloadSizeMB`, has this default).
const MAX_EVENT_BYTES: usize = 50 << 20;
/// What all that are being read together may take, in KiB. It is claimed as it comes, so that who sends
/// nothing holds nothing.
const EVENTS_KIB: usize = 3 * (MAX_EVENT_BYTES >> 10);
/// How long whoever tells of one may take, and may be silent in between.
const EVENT_LIMIT: Duration = Duration::from_secs(30);
const SILENCE_LIMIT: Duration = Duration::from_secs(5);
/// Connections at one time, and of one address. Who comes beyond them is hung up on at once.
const CONNECTIONS: usize = 2048;
const CONNECTIONS_OF_ONE: usize = 256;
/// How long the head of a request may take.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// The engine, once it works: a replica that starts, or waits for an engine that shares nothing, has none.
pub(crate) type Engine = Arc<OnceLock<Arc<Controller>>>;

struct Endpoints {
    engine: Engine,
    /// KiB that events may still take.
    events: Semaphore,
}

/// Serves `/metrics`, `/healthz`, `/readyz` and `/api/webhook` until the runtime ends; returns the address
/// that it listens on.
///
/// Without an engine it is well, has nothing measured, and takes up no event.
///
/// # Errors
/// The address cannot be listened on.
pub(crate) async fn serve(address: SocketAddr, engine: Engine) -> anyhow::Result<SocketAddr> {
    let endpoints = Arc::new(Endpoints { engine, events: Semaphore::new(EVENTS_KIB) });
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

/// Answers in the place of Argo CD's repo-server until the runtime ends; returns the address that it listens
/// on.
///
/// # Errors
/// The address cannot be listened on.
pub(crate) async fn repo_server(address: SocketAddr, programs: Programs) -> anyhow::Result<SocketAddr> {
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
pub(crate) async fn redis(address: SocketAddr, programs: Programs) -> anyhow::Result<SocketAddr> {
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
        let open = Arc::new(Connections::default());
        loop {
            let Ok((stream, peer)) = listener.accept().await else {
                // Such as too many open files: other connections go on, and some of them end.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Some(counted) = open.clone().enter(peer.ip()) else { continue };
            let serving = serve(stream);
            tokio::spawn(async move {
                serving.await;
                drop(counted);
            });
        }
    });
    Ok(bound)
}

/// Connections that are open, by the address that they come from.
#[derive(Default)]
struct Connections(Mutex<HashMap<IpAddr, usize>>);

impl Connections {
    /// Counts a connection until what is returned is dropped; `None` if there are too many.
    fn enter(self: Arc<Self>, from: IpAddr) -> Option<Connection> {
        let mut open = self.0.lock();
        if open.values().sum::<usize>() >= CONNECTIONS {
            return None;
        }
        let own = open.entry(from).or_default();
        if *own >= CONNECTIONS_OF_ONE {
            return None;
        }
        *own += 1;
        drop(open);
        Some(Connection { all: self, from })
    }
}

struct Connection {
    all: Arc<Connections>,
    from: IpAddr,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.all.0.lock();
        if let Some(own) = open.get_mut(&self.from) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.from);
            }
        }
    }
}

/// Why an event could not be read.
enum Unread {
    TooLarge,
    Broken,
    Late,
}

/// Reads a body; the room that it takes is claimed as it comes, and given back when what is returned is
/// dropped.
async fn read_event<'s>(
    mut body: Incoming,
    room: &'s Semaphore,
) -> Result<(Vec<u8>, Option<SemaphorePermit<'s>>), Unread> {
    let until = Instant::now() + EVENT_LIMIT;
    let (mut read, mut claimed): (Vec<u8>, Option<SemaphorePermit<'s>>) = (Vec::new(), None);
    loop {
        let next = until.min(Instant::now() + SILENCE_LIMIT);
        let frame = match timeout_at(next, body.frame()).await {
            Err(_) => return Err(Unread::Late),
            Ok(None) => return Ok((read, claimed)),
            Ok(Some(Err(_))) => return Err(Unread::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > MAX_EVENT_BYTES {
            return Err(Unread::TooLarge);
        }
        let kib = u32::try_from(data.len().div_ceil(1024)).unwrap_or(u32::MAX);
        let Ok(Ok(more)) = timeout_at(until, room.acquire_many(kib)).await else { return Err(Unread::Late) };
        match &mut claimed {
            Some(claimed) => claimed.merge(more),
            none => *none = Some(more),
        }
        read.extend_from_slice(&data);
    }
}

impl Endpoints {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (status, body) = match (request.uri().path(), request.method()) {
            ("/metrics", _) => {
                (StatusCode::OK, self.engine.get().map(|engine| engine.metrics()).unwrap_or_default())
            }
            ("/healthz", _) => (StatusCode::OK, "ok\n".to_owned()),
            // Ready is who answers for the engine: a replica that starts stands by, and is ready too.
            ("/readyz", _) => (StatusCode::OK, self.readiness().to_owned()),
            ("/api/webhook", &Method::POST) => self.hear(request).await,
            ("/api/webhook", _) => (StatusCode::METHOD_NOT_ALLOWED, "events come by POST\n".to_owned()),
            _ => {
                (StatusCode::NOT_FOUND, "/metrics, /healthz, /readyz and /api/webhook are here\n".to_owned())
            }
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        let text = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(http::header::CONTENT_TYPE, text);
        response
    }

    fn readiness(&self) -> &'static str {
        match self.engine.get() {
            Some(_) => "ok: works\n",
            None => "ok: starts\n",
        }
    }

    async fn hear(&self, request: Request<Incoming>) -> (StatusCode, String) {
        let (head, body) = request.into_parts();
        let header = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
        let Some(controller) = self.engine.get() else {
            let why = "this replica starts: another one takes up events\n";
            return (StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
        };
        // Before anything of the body is read, which anybody may make as long as they like.
        if let Err(error) = controller.may_tell(&header) {
            return refused(error);
        }
        let too_large = || {
            let said = format!("an event has at most {} MiB\n", MAX_EVENT_BYTES >> 20);
            (StatusCode::PAYLOAD_TOO_LARGE, said)
        };
        if body.size_hint().lower() > MAX_EVENT_BYTES as u64 {
            return too_large();
        }
        match read_event(body, &self.events).await {
            Ok((body, _claimed)) => handle_event(controller, &head, &body),
            Err(Unread::TooLarge) => too_large(),
            Err(Unread::Broken) => (StatusCode::BAD_REQUEST, "the event breaks off\n".to_owned()),
            Err(Unread::Late) => (StatusCode::REQUEST_TIMEOUT, "the event does not come\n".to_owned()),
        }
    }
}

fn handle_event(controller: &Controller, head: &Parts, body: &[u8]) -> (StatusCode, String) {
    let header = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
    match controller.heard(&header, body) {
        Ok(0) => (StatusCode::OK, "nothing here reads it\n".to_owned()),
        Ok(count) => {
            tracing::info!(
                count,
                "a webhook announced a push: Applications and ApplicationSets are refreshed"
            );
            (StatusCode::OK, format!("{count} are looked at\n"))
        }
        Err(error) => refused(error),
    }
}

fn refused(error: WebhookError) -> (StatusCode, String) {
    tracing::warn!(%error, "an event is not taken up");
    let status = match error {
        WebhookError::Unproved => StatusCode::UNAUTHORIZED,
        WebhookError::Unknown | WebhookError::Malformed => StatusCode::BAD_REQUEST,
    };
    (status, format!("{error}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_all_connections() {
        let open = Arc::new(Connections::default());
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut held: Vec<_> = (0..CONNECTIONS_OF_ONE).filter_map(|_| open.clone().enter(one)).collect();
        assert_eq!(held.len(), CONNECTIONS_OF_ONE);
        assert!(open.clone().enter(one).is_none());
        assert!(open.clone().enter(other).is_some());
        held.pop();
        assert!(open.enter(one).is_some(), "who hangs up makes room");
    }
}
