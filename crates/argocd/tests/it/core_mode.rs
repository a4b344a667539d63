//! What `argocd --core` asks an engine for, asked as it does: gRPC over TLS, and the protocol of Redis.

use std::{io::Read as _, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, uri::PathAndQuery};
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sha2::{Digest as _, Sha256};
use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_argocd::{Programs, RepoServer};
use tiphys_cluster::Cluster;
use tiphys_controller::{Controller, Settings, crds};
use tiphys_source::{Repositories, WorkingTree};
use tiphys_value::{Value, json};
use tiphys_world::{Driver, Settings as World};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic::{Code, Status, client::Grpc};
use tonic_prost::ProstCodec;

const URL: &str = "https://git.example/team/fleet.git";
const PASSWORD: &str = "hunter2hunter2";

/// A repository with one Application, the cluster that it is in, and the engine that synced it.
struct Installation {
    controller: Arc<Controller>,
    _folder: tempfile::TempDir,
}

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

async fn installation() -> Installation {
    let folder = tempfile::tempdir().unwrap();
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}});
    write(folder.path(), "web/deployment.json", &deployment.to_string());
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "stringData": {"p": PASSWORD}});
    write(folder.path(), "web/secret.json", &secret.to_string());
    let server = ApiServer::new(ApiServerOptions { seed: Some(1), ..ApiServerOptions::default() }).unwrap();
    let driver = Driver::new(&server, World::default()).unwrap();
    tokio::spawn(driver.run());
    let cluster = Cluster::new(server.service());
    cluster.discover().await.unwrap();
    for definition in crds::definitions() {
        cluster.create(&definition, "test", false).await.unwrap();
    }
    cluster.discover().await.unwrap();
    for name in ["argocd", "web"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        cluster.create(&namespace, "test", false).await.unwrap();
    }
    let repositories = Repositories::new(None, false);
    repositories.give_working_tree(Arc::new(WorkingTree::open(folder.path()).unwrap()));
    repositories.add_address(URL);
    let settings = Settings { namespace: "argocd".to_owned(), ..Settings::default() };
    let controller = Controller::start(cluster.clone(), Arc::new(repositories), settings).await.unwrap();
    let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": "default", "namespace": "argocd"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}});
    cluster.create(&project, "test", false).await.unwrap();
    let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd"},
        "spec": {"project": "default", "source": {"repoURL": URL, "path": "web"}, "syncPolicy": {"automated": {}},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "web"}}});
    cluster.create(&app, "test", false).await.unwrap();
    let key = controller.app_of("web");
    let application = tiphys_value::ResourceKey::new("argoproj.io", "Application", &key.namespace, &key.name);
    let is_there = || {
        let app = controller.cache().get(&application);
        let healthy = |app: Arc<Value>| app.pointer("/status/health/status") == Some(&json!("Healthy"));
        app.is_some_and(healthy)
    };
    while !is_there() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Installation { controller: Arc::new(controller), _folder: folder }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Repository {
    #[prost(string, tag = "1")]
    repo: String,
    #[prost(string, tag = "11")]
    kind: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Source {
    #[prost(string, tag = "1")]
    repo_url: String,
    #[prost(string, tag = "2")]
    path: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Spec {
    #[prost(message, optional, tag = "1")]
    source: Option<Source>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Application {
    #[prost(message, optional, tag = "2")]
    spec: Option<Spec>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resolve {
    #[prost(message, optional, tag = "2")]
    app: Option<Application>,
    #[prost(string, tag = "3")]
    ambiguous_revision: String,
    #[prost(int64, tag = "4")]
    source_index: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resolved {
    #[prost(string, tag = "1")]
    revision: String,
    #[prost(string, tag = "2")]
    ambiguous_revision: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TestRepository {
    #[prost(message, optional, tag = "1")]
    repo: Option<Repository>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Generate {
    #[prost(string, tag = "2")]
    revision: String,
    #[prost(string, tag = "5")]
    app_name: String,
    #[prost(string, tag = "8")]
    namespace: String,
    #[prost(message, optional, tag = "10")]
    source: Option<Source>,
    #[prost(string, tag = "25")]
    project: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Generated {
    #[prost(string, repeated, tag = "1")]
    manifests: Vec<String>,
    #[prost(string, tag = "6")]
    source_type: String,
}

async fn call<Q, A>(server: &RepoServer, method: &'static str, request: Q) -> Result<A, Status>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let path = PathAndQuery::from_static(method);
    let codec = ProstCodec::<Q, A>::default();
    let answer = Grpc::new(server.clone()).unary(tonic::Request::new(request), path, codec).await;
    answer.map(tonic::Response::into_inner)
}

fn source(path: &str) -> Option<Source> {
    Some(Source { repo_url: URL.to_owned(), path: path.to_owned() })
}

#[tokio::test(start_paused = true)]
async fn the_repo_server_resolves_tests_and_renders() {
    let installation = installation().await;
    let server = RepoServer::new(installation.controller.clone());
    let repository = |repo: &str, kind: &str| TestRepository {
        repo: Some(Repository { repo: repo.to_owned(), kind: kind.to_owned() }),
    };
    let test = "/repository.RepoServerService/TestRepository";
    call::<_, ()>(&server, test, repository(URL, "git")).await.unwrap();
    let away =
        call::<_, ()>(&server, test, repository("https://git.example/other.git", "git")).await.unwrap_err();
    assert!(away.message().starts_with("error testing repository connectivity: "), "{away:?}");

    let spec = Some(Spec { source: source("web") });
    let request =
        Resolve { app: Some(Application { spec }), ambiguous_revision: "main".to_owned(), source_index: -1 };
    let resolved: Resolved =
        call(&server, "/repository.RepoServerService/ResolveRevision", request).await.unwrap();
    assert_eq!(resolved.ambiguous_revision, format!("main ({})", resolved.revision));

    let generate = "/repository.RepoServerService/GenerateManifest";
    let request = |path| Generate {
        revision: "main".to_owned(),
        app_name: "web".to_owned(),
        namespace: "web".to_owned(),
        source: source(path),
        project: "default".to_owned(),
    };
    let generated: Generated = call(&server, generate, request("web")).await.unwrap();
    assert_eq!((generated.manifests.len(), generated.source_type.as_str()), (2, "Directory"));
    assert!(generated.manifests.iter().all(|manifest| !manifest.contains(PASSWORD)), "Secrets are masked");
    let missing = call::<_, Generated>(&server, generate, request("nowhere")).await.unwrap_err();
    assert!(missing.message().contains("nowhere"), "{missing:?}");

    let other = "/repository.RepoServerService/GetGitFiles";
    let refused = call::<_, ()>(&server, other, repository(URL, "git")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(refused.message().contains(other), "what is not answered is named: {refused:?}");
}

#[derive(Clone, PartialEq, prost::Message)]
struct Streamed {
    #[prost(message, optional, tag = "1")]
    request: Option<Generate>,
    #[prost(message, optional, tag = "2")]
    metadata: Option<Metadata>,
    #[prost(message, optional, tag = "3")]
    chunk: Option<Chunk>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    checksum: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Chunk {
    #[prost(bytes = "vec", tag = "1")]
    chunk: Vec<u8>,
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(gzip);
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_cksum();
        builder.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

/// What an archive renders to if it is sent with a checksum.
async fn streamed(server: &RepoServer, archive: &[u8], checksum: String) -> Result<Generated, Status> {
    let request = Generate {
        revision: "main".to_owned(),
        app_name: "web".to_owned(),
        namespace: "web".to_owned(),
        source: source("web"),
        project: "default".to_owned(),
    };
    let mut messages = vec![
        Streamed { request: Some(request), ..Streamed::default() },
        Streamed { metadata: Some(Metadata { checksum }), ..Streamed::default() },
    ];
    let pieces = archive.chunks(100);
    messages.extend(
        pieces.map(|piece| Streamed { chunk: Some(Chunk { chunk: piece.to_vec() }), ..Streamed::default() }),
    );
    let path = PathAndQuery::from_static("/repository.RepoServerService/GenerateManifestWithFiles");
    let codec = ProstCodec::<Streamed, Generated>::default();
    let request = tonic::Request::new(futures::stream::iter(messages));
    Grpc::new(server.clone()).client_streaming(request, path, codec).await.map(tonic::Response::into_inner)
}

#[tokio::test(start_paused = true)]
async fn the_repo_server_renders_files_that_it_is_sent() {
    let installation = installation().await;
    let server = RepoServer::new(installation.controller.clone());
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: sent}}";
    let bytes = archive(&[("web/map.yaml", map), ("other/map.yaml", map)]);
    let checksum = format!("{:x}", Sha256::digest(&bytes));
    let generated = streamed(&server, &bytes, checksum.clone()).await.unwrap();
    assert_eq!(generated.manifests.len(), 1, "the path of the source counts, the repository does not");
    let object: Value = serde_json::from_str(&generated.manifests[0]).unwrap();
    assert_eq!(object["metadata"]["name"], json!("sent"));

    let wrong = streamed(&server, &bytes[..bytes.len() - 1], checksum).await.unwrap_err();
    assert!(wrong.message().contains("has the checksum"), "{wrong:?}");
    let bytes = b"no archive";
    let unreadable = streamed(&server, bytes, format!("{:x}", Sha256::digest(bytes))).await.unwrap_err();
    assert!(unreadable.message().contains("the archive that was sent"), "{unreadable:?}");
}

#[tokio::test(start_paused = true)]
async fn the_repo_server_speaks_http_2_over_tls() {
    let installation = installation().await;
    let programs = Programs::new(installation.controller.clone()).unwrap();
    let (client, server) = tokio::io::duplex(64 * 1024);
    let served = programs.clone();
    tokio::spawn(async move { served.serve_repo_server(server).await });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(programs.identity().certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let tls = connector.connect("localhost".try_into().unwrap(), client).await.unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tls)).await.unwrap();
    tokio::spawn(connection);
    let body = http_body_util::Full::new(Bytes::from_static(&[0, 0, 0, 0, 0]));
    let request = Request::post("https://localhost/repository.RepoServerService/TestRepository")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body)
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.headers().get("grpc-status").cloned();
    let trailers = response.into_body().collect().await.unwrap().trailers().cloned();
    let status = status.or_else(|| trailers?.get("grpc-status").cloned());
    assert_eq!(status.unwrap(), "3", "an empty request is an invalid argument");
}

/// What is answered to requests in the protocol of Redis; each is one line of words.
async fn redis(programs: &Programs, requests: &[&str]) -> Vec<u8> {
    let (mut client, server) = tokio::io::duplex(1024 * 1024);
    let programs = programs.clone();
    let served = tokio::spawn(async move { programs.serve_redis(server).await });
    for request in requests {
        let words: Vec<&str> = request.split(' ').collect();
        let words: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        let count = request.split(' ').count();
        client.write_all(format!("*{count}\r\n{words}").as_bytes()).await.unwrap();
    }
    client.shutdown().await.unwrap();
    let mut answers = Vec::new();
    client.read_to_end(&mut answers).await.unwrap();
    served.await.unwrap();
    answers
}

/// The text of an answer that is one.
fn bulk(answer: &[u8]) -> &[u8] {
    let begin = answer.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
    &answer[begin..answer.len() - 2]
}

#[tokio::test(start_paused = true)]
async fn the_cache_holds_what_the_engine_knows() {
    let installation = installation().await;
    let programs = Programs::new(installation.controller.clone()).unwrap();
    let answer = redis(&programs, &["GET app|resources-tree|web|1.8.3"]).await;
    let tree: Value = serde_json::from_slice(bulk(&answer)).unwrap();
    let nodes: Vec<(&str, bool)> = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["kind"].as_str().unwrap(), node.get("parentRefs").is_some()))
        .collect();
    assert_eq!(nodes, [("Secret", false), ("Deployment", false), ("ReplicaSet", true), ("Pod", true)]);
    let pod = &tree["nodes"][3];
    assert_eq!((&pod["images"], &pod["health"]["status"]), (&json!(["web:1"]), &json!("Healthy")));
    assert_eq!(pod["parentRefs"][0]["uid"], tree["nodes"][2]["uid"]);

    let answer = redis(&programs, &["GET app|managed-resources|web|1.8.3.gz"]).await;
    let mut text = String::new();
    flate2::read::GzDecoder::new(bulk(&answer)).read_to_string(&mut text).unwrap();
    assert!(!text.contains(PASSWORD) && !text.contains("aHVudGVyM"), "Secrets are masked");
    let managed: Value = serde_json::from_str(&text).unwrap();
    let kinds: Vec<&str> =
        managed.as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Secret", "Deployment"]);
    for one in managed.as_array().unwrap() {
        let state = |name: &str| -> Value { serde_json::from_str(one[name].as_str().unwrap()).unwrap() };
        assert_eq!(state("normalizedLiveState"), state("predictedLiveState"));
        assert!(one.get("modified").is_none() && state("liveState")["metadata"]["uid"].is_string());
    }
    let data = |name: &str| -> Value {
        let state: Value = serde_json::from_str(managed[0][name].as_str().unwrap()).unwrap();
        state["data"].clone()
    };
    assert_eq!(data("targetState"), data("liveState"), "equal values are masked alike");
}

#[tokio::test(start_paused = true)]
async fn the_cache_keeps_what_it_is_given() {
    let installation = installation().await;
    let programs = Programs::new(installation.controller.clone()).unwrap();
    let requests = [
        "HELLO 3",
        "SET repo|a v EX 60",
        "GET repo|a",
        "GET app|resources-tree|absent|1.8.3",
        "DEL repo|a",
        "GET repo|a",
    ];
    let answers = String::from_utf8(redis(&programs, &requests).await).unwrap();
    assert_eq!(answers, "-ERR unknown command 'HELLO'\r\n+OK\r\n$1\r\nv\r\n$-1\r\n:1\r\n$-1\r\n");
}

#[tokio::test(start_paused = true)]
async fn cve_2024_31989_what_is_put_into_the_cache_tells_nothing_of_applications() {
    let installation = installation().await;
    let programs = Programs::new(installation.controller.clone()).unwrap();
    let asked = "GET app|resources-tree|web|1.8.3";
    let before = redis(&programs, &[asked]).await;
    let requests = [
        "SET app|resources-tree|web|1.8.3 {}",
        "SET other {}",
        "RENAME other app|managed-resources|absent|1.8.3",
    ];
    let answers = String::from_utf8(redis(&programs, &requests).await).unwrap();
    let refused = |line: &&str| line.starts_with("-ERR app|");
    assert_eq!(answers.lines().filter(refused).count(), 2, "{answers}");
    assert_eq!(redis(&programs, &[asked]).await, before);
    assert_eq!(redis(&programs, &["GET app|managed-resources|absent|1.8.3"]).await, b"$-1\r\n");
}
