//! Forwarding of ports to pods (Kubernetes API, `pods/portforward`): streams of SPDY/3.1 in an upgraded
//! connection. No program runs in a pod here; what answers at a port is for a
//! [`PodBackend`](crate::PodBackend) to say.

mod headers;
mod spdy;
mod streams;

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::{ResponseBody, context::Context};
pub(super) use streams::Target;

/// The protocol that `Upgrade` names.
const PROTOCOL: &str = "SPDY/3.1";
/// What is spoken inside.
const STREAMS: &str = "portforward.k8s.io";

/// The connection that a request wants to be turned into a forward, if it does.
pub(super) fn requested_upgrade(context: &Context<'_>) -> Option<OnUpgrade> {
    let wants = *context.method == Method::POST && context.header("upgrade").eq_ignore_ascii_case(PROTOCOL);
    context.upgrade.filter(|_| wants).cloned()
}

/// Agrees, and serves the streams that the client opens.
pub(super) fn begin(upgrade: OnUpgrade, target: Target) -> Response<ResponseBody> {
    tokio::spawn(async move {
        if let Ok(connection) = upgrade.await {
            // How it ends is for the client to notice.
            let _ = streams::serve(TokioIo::new(connection), target).await;
        }
    });
    let mut response = Response::new(ResponseBody::full(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, header::HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, header::HeaderValue::from_static(PROTOCOL));
    headers.insert("x-stream-protocol-version", header::HeaderValue::from_static(STREAMS));
    response
}
