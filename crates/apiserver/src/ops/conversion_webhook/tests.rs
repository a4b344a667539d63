use std::{net::SocketAddr, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tiphys_value::GroupVersionResource;

use super::*;

fn object(version: &str, metadata: Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Host", "metadata": metadata})
}

#[test]
fn only_labels_and_annotations_of_the_metadata_change() {
    let original = object("v1", json!({"name": "a", "uid": "u", "generation": 3, "labels": {"x": "1"}}));
    let answer = object("v2", json!({"name": "a", "uid": "u", "generation": 9, "annotations": {"y": "2"}}));
    let restored_one = restored(&original, answer, "example.com/v2", 0).unwrap();
    let expected = json!({"name": "a", "uid": "u", "generation": 3, "annotations": {"y": "2"}});
    assert_eq!(restored_one["metadata"], expected);
}

#[test]
fn what_is_no_conversion_is_told() {
    let original = object("v1", json!({"name": "a"}));
    let told = |answer: Value| restored(&original, answer, "example.com/v2", 0).unwrap_err();
    assert_eq!(
        told(object("v3", json!({"name": "a"}))),
        "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)"
    );
    assert_eq!(
        told(object("v2", json!({"name": "b"}))),
        "returned invalid object: must have the same name: a != b"
    );
    assert_eq!(
        told(object("v2", json!({"name": "a", "labels": {"x": 1}}))),
        "returned invalid metadata: metadata.labels[x] must be a string, but is int64 in converted object"
    );
    let answer = json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "response": {"uid": "u", "result": {"status": "Failed"}}});
    assert_eq!(verify(&answer, "v1", "u").unwrap_err(), "response.result.status was 'Failed', not 'Success'");
    assert_eq!(verify(&answer, "v1", "w").unwrap_err(), "expected response.uid=\"w\", got \"u\"");
}

/// `host` and `port` of v1 are `hostPort` in v2.
fn convert_host(object: &Value, wanted: &Value) -> Value {
    let mut object = object.clone();
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let fields = object.as_object_mut().unwrap();
    match wanted.as_str().unwrap() {
        "example.com/v1" => {
            let host_port = fields.remove("hostPort").unwrap();
            let (host, port) = host_port.as_str().unwrap().split_once(':').unwrap();
            fields.insert("host".into(), host.into());
            fields.insert("port".into(), port.into());
        }
        _ => {
            let joined = format!("{}:{}", text(&json!(fields), "host"), text(&json!(fields), "port"));
            fields.remove("host");
            fields.remove("port");
            fields.insert("hostPort".into(), joined.into());
        }
    }
    object["apiVersion"] = wanted.clone();
    object
}

fn answer(review: &Value) -> Value {
    let wanted = &review["request"]["desiredAPIVersion"];
    let objects = review["request"]["objects"].as_array().unwrap();
    let converted: Vec<Value> = objects.iter().map(|object| convert_host(object, wanted)).collect();
    json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response":
        {"uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": converted}})
}

/// Serves a converter over HTTPS; returns its address and the authority to trust.
async fn converter() -> (SocketAddr, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let identity = crate::tls::TlsIdentity::generate(address, std::net::Ipv4Addr::LOCALHOST).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::clone(&identity.server.config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service =
                    hyper::service::service_fn(async |request: http::Request<hyper::body::Incoming>| {
                        let body = request.into_body().collect().await?.to_bytes();
                        let review: Value = serde_json::from_slice(&body).unwrap();
                        let answer = Bytes::from(answer(&review).to_string());
                        Ok::<_, hyper::Error>(http::Response::new(Full::new(answer)))
                    });
                let served = hyper::server::conn::http1::Builder::new();
                let _ = served.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (address, identity.ca_pem)
}

fn definition(storage: &str, client_config: &Value) -> Value {
    let version = |name: &str, fields: &[&str]| {
        let properties: Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
        let selectable: Vec<Value> =
            fields.iter().map(|field| json!({"jsonPath": format!(".{field}")})).collect();
        json!({"name": name, "served": true, "storage": name == storage, "selectableFields": selectable,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}})
    };
    json!({"metadata": {"name": "hosts.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "hosts", "kind": "Host"},
        "versions": [version("v1", &["host", "port"]), version("v2", &["hostPort"])],
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client_config}}}})
}

fn hosts(version: &str) -> GroupVersionResource {
    GroupVersionResource::new("example.com", version, "hosts")
}

fn put_definition(client: &crate::Client, storage: &str, client_config: &Value) {
    let resource = GroupVersionResource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let wanted = definition(storage, client_config);
    match client.get(&resource, "", "hosts.example.com") {
        Err(_) => client.create(&resource, "", wanted).map(drop).unwrap(),
        Ok(_) => {
            let patch = super::super::Patch::merge(json!({"spec": wanted["spec"]}));
            client.patch(&resource, "", "hosts.example.com", None, &patch).map(drop).unwrap();
        }
    }
}

#[test]
fn every_reader_sees_its_own_version() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (address, ca) = runtime.block_on(converter());
    let url = format!("https://{address}/convert");
    let trusted = json!({"url": url, "caBundle": STANDARD.encode(&ca)});
    let server = ApiServer::new(crate::ApiServerOptions::default()).unwrap();
    let client = server.client("test");
    put_definition(&client, "v1", &trusted);
    let create = |version: &str, object: Value| client.create(&hosts(version), "default", object).unwrap();
    let made = create("v2", json!({"metadata": {"name": "a"}, "hostPort": "one:80"}));
    assert_eq!((made.api_version(), &made["hostPort"]), ("example.com/v2", &json!("one:80")));
    create("v1", json!({"metadata": {"name": "b"}, "host": "two", "port": "81"}));
    let stored = |name: &str| {
        let id = crate::ResourceId::new("example.com", "hosts");
        server.snapshot().get(&id, "default", name).unwrap().value().clone()
    };
    assert_eq!((stored("a").api_version(), &stored("a")["host"]), ("example.com/v1", &json!("one")));

    let old = client.get(&hosts("v1"), "default", "a").unwrap();
    assert_eq!((&old["host"], &old["port"], old.get("hostPort")), (&json!("one"), &json!("80"), None));
    assert_eq!(old.resource_version(), made.resource_version());
    let list = client.list(&hosts("v2"), Some("default"), &Default::default()).unwrap().items;
    assert_eq!(list.iter().map(|o| &o["hostPort"]).collect::<Vec<_>>(), ["one:80", "two:81"]);
    let selected = crate::ListOptions { field_selector: "hostPort=two:81".into(), ..Default::default() };
    assert_eq!(client.list(&hosts("v2"), None, &selected).unwrap().items.len(), 1);

    // A patch changes the version of the request, and a write brings the object to the storage version.
    let patch = super::super::Patch::merge(json!({"hostPort": "three:82"}));
    let patched = client.patch(&hosts("v2"), "default", "a", None, &patch).unwrap();
    assert_eq!(patched["hostPort"], "three:82");
    assert_eq!(stored("a")["host"], "three");
    put_definition(&client, "v2", &trusted);
    assert_eq!(stored("b").api_version(), "example.com/v1");
    let unchanged = client.get(&hosts("v1"), "default", "b").unwrap().value().clone();
    client.update(&hosts("v1"), unchanged).unwrap();
    assert_eq!((stored("b").api_version(), &stored("b")["hostPort"]), ("example.com/v2", &json!("two:81")));

    // Nobody vouches for the converter any more.
    put_definition(&client, "v2", &json!({"url": url, "caBundle": null}));
    let why = client.get(&hosts("v1"), "default", "b").unwrap_err();
    assert_eq!(
        (why.code(), why.message()),
        (500, format!("conversion webhook for example.com/v2, Kind=Host failed: Post \"{url}?timeout=30s\": tls: failed to verify certificate: x509: certificate signed by unknown authority").as_str())
    );
    assert!(client.get(&hosts("v2"), "default", "b").is_ok(), "nothing to convert");
    assert!(client.delete(&hosts("v1"), "default", "b", &Default::default()).is_err());
    runtime.shutdown_timeout(Duration::from_secs(1));
}

#[test]
fn a_watch_shows_its_own_version_until_that_fails() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (address, ca) = runtime.block_on(converter());
    let url = format!("https://{address}/convert");
    let server = ApiServer::new(crate::ApiServerOptions::default()).unwrap();
    let client = server.client("test");
    put_definition(&client, "v1", &json!({"url": url, "caBundle": STANDARD.encode(&ca)}));
    client
        .create(&hosts("v1"), "default", json!({"metadata": {"name": "a"}, "host": "one", "port": "80"}))
        .unwrap();
    runtime.block_on(async {
        use tower::ServiceExt;
        let request =
            http::Request::get("/apis/example.com/v2/hosts?watch=1").body(Full::new(Bytes::new())).unwrap();
        let mut body = server.service().oneshot(request).await.unwrap().into_body();
        let mut next = async || -> Value {
            let frame = tokio::time::timeout(Duration::from_secs(120), body.frame()).await.unwrap();
            serde_json::from_slice(&frame.unwrap().unwrap().into_data().unwrap()).unwrap()
        };
        assert_eq!(next().await["object"]["hostPort"], "one:80");
        client.delete(&hosts("v1"), "default", "a", &Default::default()).unwrap();
        let gone = next().await;
        assert_eq!((&gone["type"], &gone["object"]["hostPort"]), (&json!("DELETED"), &json!("one:80")));
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
}
