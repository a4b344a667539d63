//! Forwarding of ports to pods. Nothing listens in a pod here, so that a connection can be had and nothing sent
//! through it: clients that only prepare a forward, as Argo CD's command line does at every start, can go on.

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{ResponseBody, context::Context};

/// The protocol that `Upgrade` names.
const PROTOCOL: &str = "SPDY/3.1";
/// What is spoken inside.
const STREAMS: &str = "portforward.k8s.io";
/// The first four bytes of a SPDY frame that asks whether the other side is there.
const PING: [u8; 4] = [0x80, 0x03, 0x00, 0x06];
/// Bytes before the content of a SPDY frame.
const HEAD: usize = 8;

/// The connection that a request wants to be turned into a forward, if it does.
pub(super) fn asked(context: &Context<'_>) -> Option<OnUpgrade> {
    let wants = *context.method == Method::POST && context.header("upgrade").eq_ignore_ascii_case(PROTOCOL);
    context.upgrade.filter(|_| wants).cloned()
}

/// Agrees, and keeps the connection until the client sends something through it.
pub(super) fn begin(upgrade: OnUpgrade) -> Response<ResponseBody> {
    tokio::spawn(async move {
        if let Ok(connection) = upgrade.await {
            // How it ends is for the client to notice.
            let _ = keep(TokioIo::new(connection)).await;
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

/// Answers pings, and nothing else.
async fn keep(mut connection: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    let mut ping = [0; HEAD + 4];
    loop {
        connection.read_exact(&mut ping[..HEAD]).await?;
        if ping[..4] != PING || ping[4..HEAD] != [0, 0, 0, 4] {
            return Ok(());
        }
        connection.read_exact(&mut ping[HEAD..]).await?;
        connection.write_all(&ping).await?;
        connection.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pings_are_answered_and_streams_end_the_connection() {
        let (mut client, server) = tokio::io::duplex(64);
        let kept = tokio::spawn(keep(server));
        let ping = [0x80, 0x03, 0x00, 0x06, 0, 0, 0, 4, 0, 0, 0, 1];
        for _ in 0..2 {
            client.write_all(&ping).await.expect("is open");
            let mut answer = [0; 12];
            client.read_exact(&mut answer).await.expect("answers");
            assert_eq!(answer, ping);
        }
        client.write_all(&[0x80, 0x03, 0x00, 0x01, 0, 0, 0, 10]).await.expect("is open");
        assert_eq!(client.read(&mut [0; 12]).await.expect("ends"), 0);
        assert!(kept.await.expect("no panic").is_ok());
    }
}
