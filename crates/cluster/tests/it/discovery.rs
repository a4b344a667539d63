//! What a cluster serves, of API servers that tell it all at once and of those that do not.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use kube::client::Body;
use tiphys_cluster::Cluster;
use tiphys_value::{GroupVersionKind, Value, json};

/// A cluster that answers paths by these texts, and all others with 503.
fn cluster(answers: &'static [(&'static str, &'static str)]) -> Cluster {
    Cluster::new(tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let known = answers.iter().find(|(known, _)| *known == path);
        let (code, text) = known.map_or((503, "down"), |(_, text)| (200, *text));
        let response = Response::builder().status(code).body(Full::new(Bytes::from_static(text.as_bytes())));
        async move { Ok::<_, Infallible>(response.unwrap()) }
    }))
}

fn kinds(cluster: &Cluster) -> Value {
    let discovery = cluster.discovery();
    json!(discovery.kinds().map(|resource| resource.gvk.kind.as_str()).collect::<Vec<_>>())
}

const CORE: &str =
    r#"{"kind": "APIResourceList", "resources": [{"name": "pods", "kind": "Pod", "namespaced": true}]}"#;
const GROUPS: &str = r#"{"kind": "APIGroupList", "groups": [
    {"name": "shop", "versions": [{"groupVersion": "shop/v1", "version": "v1"}]},
    {"name": "away", "versions": [{"groupVersion": "away/v1", "version": "v1"}]}]}"#;
const SHOP: &str = r#"{"kind": "APIResourceList", "resources": [{"name": "orders", "kind": "Order"}]}"#;

#[tokio::test(start_paused = true)]
async fn servers_that_do_not_tell_all_at_once_are_asked_by_version() {
    let versions = r#"{"kind": "APIVersions", "versions": ["v1"]}"#;
    for api in [versions, r#"{"versions": ["v1"]}"#] {
        let answers =
            Vec::from([("/api", api), ("/api/v1", CORE), ("/apis", GROUPS), ("/apis/shop/v1", SHOP)]);
        let cluster = cluster(answers.leak());
        cluster.discover().await.unwrap();
        assert_eq!(kinds(&cluster), json!(["Pod", "Order"]), "a group that does not answer is left out");
    }
}

#[tokio::test]
async fn what_an_api_behind_another_served_before_is_not_taken_for_served() {
    let cluster = cluster(&[
        ("/api", r#"{"kind": "APIGroupDiscoveryList", "items": []}"#),
        (
            "/apis",
            r#"{"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "shop"}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                {"resource": "orders", "responseKind": {"kind": "Order"}, "scope": "Cluster", "verbs": ["list"]}]}]},
            {"metadata": {"name": "away"}, "versions": [{"version": "v1", "freshness": "Stale", "resources": [
                {"resource": "pods", "responseKind": {"kind": "Away"}, "scope": "Cluster", "verbs": ["list"]}]}]}]}"#,
        ),
    ]);
    cluster.discover().await.unwrap();
    assert_eq!(kinds(&cluster), json!(["Order"]));
    assert!(cluster.discovery().resource(&GroupVersionKind::new("away", "v1", "Away")).is_none());
}
