//! The embedded cluster: its API, and what its controllers make of manifests.

use std::{sync::LazyLock, time::Duration};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::Value;
use tiphys_apiserver::{ApiServer, ApiServerOptions, DeleteOptions, Patch};
use tiphys_value::{GroupVersionKind, GroupVersionResource, ObjectExt};
use tiphys_world::{Driver, Settings, VirtualClock};
use tower::ServiceExt;

use crate::input::text;

const MAX_OBJECTS: usize = 8;

static SERVER: LazyLock<ApiServer> = LazyLock::new(|| {
    let options = ApiServerOptions { seed: Some(1), ..ApiServerOptions::default() };
    ApiServer::new(options).expect("a server in memory starts")
});

/// Manifests are created in a cluster, time passes, they are applied again and deleted; the controllers come
/// to rest. The input: YAML documents.
pub fn cluster(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let documents = text.split("\n---\n").filter_map(|document| tiphys_yaml::from_yaml(document).ok());
    let clock = VirtualClock::starting_at(Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(500_000));
    let options = ApiServerOptions { clock: Some(clock.clone()), seed: Some(7), ..Default::default() };
    let server = ApiServer::new(options).expect("a server in memory starts");
    let mut driver = Driver::new(&server, Settings::default()).expect("an empty server takes nodes");
    let client = server.client("fuzz");
    driver.pass(&clock, Duration::from_secs(1));
    let mut made = Vec::new();
    for object in documents.take(MAX_OBJECTS) {
        let Some((resource, namespaced)) = resource(&server, &object) else { continue };
        let namespace = match (namespaced, object.namespace()) {
            (false, _) => String::new(),
            (true, "") => "default".to_owned(),
            (true, namespace) => namespace.to_owned(),
        };
        let name = object.name().to_owned();
        let _ = client.create(&resource, &namespace, object.clone());
        driver.pass(&clock, Duration::from_secs(30));
        made.push((resource, namespace, name, object));
    }
    for (resource, namespace, name, object) in &made {
        let patch = Patch::apply(object.clone(), true);
        let _ = client.patch(resource, namespace, name, None, &patch);
    }
    driver.pass(&clock, Duration::from_secs(600));
    for (resource, namespace, name, _) in &made {
        let _ = client.delete(resource, namespace, name, &DeleteOptions::default());
    }
    driver.pass(&clock, Duration::from_secs(600));
}

fn resource(server: &ApiServer, object: &Value) -> Option<(GroupVersionResource, bool)> {
    let (group, version) = object.api_version().split_once('/').unwrap_or(("", object.api_version()));
    let kind = GroupVersionKind::new(group, version, object.kind());
    let (id, namespaced) = server.resource_of_kind(&kind)?;
    Some((GroupVersionResource::new(id.group(), version, id.resource()), namespaced))
}

/// Any request to the API gets an answer. The input: method, path with query, content type and accepted type
/// on lines of their own, then the body.
pub fn request(bytes: &[u8]) {
    let mut lines = bytes.splitn(5, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let Ok(method) = Method::from_bytes(line()) else { return };
    let (path, kind, accepted, body) = (line(), line(), line(), line());
    // A watch has no end.
    if path.windows(5).any(|window| window == b"watch") {
        return;
    }
    let request =
        Request::builder().method(method).uri(path).header("content-type", kind).header("accept", accepted);
    let Ok(request) = request.body(Full::new(Bytes::copy_from_slice(body))) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let answer = SERVER.fork().service().oneshot(request).await.expect("infallible");
        let _ = answer.into_body().collect().await;
    });
}
