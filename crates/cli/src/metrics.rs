//! The address at which measurements and liveness are asked for.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// What answers `/metrics`.
pub type Exposition = Arc<dyn Fn() -> String + Send + Sync>;

/// Serves `/metrics` and `/healthz` until the task is dropped; returns the address that it listens on.
///
/// # Errors
/// The address cannot be listened on.
pub async fn serve(address: SocketAddr, exposition: Exposition) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let bound = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let exposition = exposition.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let answer = answer(&request, &exposition);
                    async move { Ok::<_, Infallible>(answer) }
                });
                // Whoever hangs up early misses the rest.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    Ok(bound)
}

fn answer(request: &Request<Incoming>, exposition: &Exposition) -> Response<Full<Bytes>> {
    let (status, body) = match request.uri().path() {
        "/metrics" => (StatusCode::OK, exposition()),
        "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "/metrics and /healthz are here\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let text = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, text);
    response
}
