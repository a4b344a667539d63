//! Any request to the API gets an answer; nothing panics. The input is text: method, path with query, content
//! type and accepted type on lines of their own, then the body.
#![no_main]

use std::sync::LazyLock;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use libfuzzer_sys::fuzz_target;
use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tower::ServiceExt;

static SERVER: LazyLock<ApiServer> = LazyLock::new(|| {
    let options = ApiServerOptions { seed: Some(1), ..ApiServerOptions::default() };
    ApiServer::new(options).expect("a server in memory starts")
});

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.splitn(5, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let Ok(method) = Method::from_bytes(line()) else { return };
    let (path, kind, accepted, body) = (line(), line(), line(), line());
    let request =
        Request::builder().method(method).uri(path).header("content-type", kind).header("accept", accepted);
    let Ok(request) = request.body(Full::new(Bytes::copy_from_slice(body))) else { return };
    if path.windows(5).any(|window| window == b"watch") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let answer = SERVER.fork().service().oneshot(request).await.expect("infallible");
        let _ = answer.into_body().collect().await;
    });
});
