//! Destinations that Secrets declare: two embedded API servers behind HTTPS, in real time.

use std::sync::{Arc, Mutex};

use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_cluster::Cluster;
use tiphys_controller::Destinations;
use tiphys_value::{ObjectExt, Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::stage::{APPLICATION, CONFIG_MAP, ENGINE, Stage, application, condition, config_map, is_green};

/// A cluster of its own behind HTTPS.
struct Remote {
    cluster: Cluster,
    address: String,
    ca: String,
    token: String,
    serving: JoinHandle<()>,
    world: JoinHandle<()>,
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.serving.abort();
        self.world.abort();
    }
}

impl Remote {
    async fn new() -> Self {
        let server = ApiServer::new(ApiServerOptions::default()).unwrap();
        let driver = tiphys_world::Driver::new(&server, tiphys_world::Settings::default()).unwrap();
        let world = tokio::spawn(driver.run());
        let serving = server.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (address, ca) = (format!("https://{}", serving.address()), serving.ca_pem().to_owned());
        let token = server.token().to_owned();
        let cluster = Cluster::new(server.service());
        cluster.discover().await.unwrap();
        Self { cluster, address, ca, token, serving: tokio::spawn(serving.run()), world }
    }

    async fn config_map(&self, namespace: &str, name: &str) -> Option<Value> {
        let kind = tiphys_value::GroupVersionKind::new("", "v1", "ConfigMap");
        let resource = self.cluster.resource(&kind).await.unwrap();
        self.cluster.get(&resource, namespace, name).await.unwrap()
    }

    /// `config` of a cluster Secret.
    fn config(&self, token: &str, tls: Value) -> String {
        json!({"bearerToken": token, "tlsClientConfig": tls}).to_string()
    }

    fn verified(&self) -> Value {
        json!({"caData": data_encoding::BASE64.encode(self.ca.as_bytes()), "serverName": "kubernetes.default.svc"})
    }
}

fn secret(name: &str, server: &str, config: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("cluster-{name}"), "namespace": ENGINE,
        "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "stringData": {"name": name, "server": server, "config": config}})
}

fn app_on(name: &str, destination: Value) -> Value {
    let mut app = application(name, "app");
    app["spec"]["destination"] = destination;
    app["spec"]["destination"]["namespace"] = name.into();
    app
}

async fn stage() -> Stage {
    Stage::with(&[("app/a.yaml", &config_map("a", "1"))], |settings| {
        settings.destinations = Destinations::InCluster;
        settings.clock = tiphys_model::Clock::default();
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_go_to_the_clusters_that_secrets_declare_and_a_broken_one_harms_no_other() {
    let (east, west) = (Remote::new().await, Remote::new().await);
    let stage = stage().await;
    stage.apply(secret("east", &east.address, &east.config(&east.token, east.verified()))).await;
    let insecure = west.config(&west.token, json!({"insecure": true}));
    stage.apply(secret("west", &format!("{}/", west.address), &insecure)).await;
    // One whose certificate is not of the authority that is trusted, and one that wants a program.
    let fooled =
        json!({"caData": data_encoding::BASE64.encode(east.ca.as_bytes()), "serverName": "kubernetes"});
    let broken = Remote::new().await;
    stage.apply(secret("broken", &broken.address, &broken.config(&broken.token, fooled))).await;
    let exec = json!({"execProviderConfig": {"command": "cloud-auth"}}).to_string();
    stage.apply(secret("cloud", "https://cloud.example.com", &exec)).await;
    stage.apply(app_on("by-name", json!({"name": "east"}))).await;
    stage.apply(app_on("by-address", json!({"server": west.address}))).await;
    stage.apply(app_on("at-home", json!({"name": "in-cluster"}))).await;
    stage.apply(app_on("on-broken", json!({"name": "broken"}))).await;
    stage.apply(app_on("on-cloud", json!({"name": "cloud"}))).await;
    stage.apply(app_on("nowhere", json!({"name": "north"}))).await;
    for app in ["by-name", "by-address", "at-home"] {
        stage.until_green(app).await;
    }
    assert!(east.config_map("by-name", "a").await.is_some());
    assert!(west.config_map("by-address", "a").await.is_some());
    assert!(stage.get(CONFIG_MAP, "at-home", "a").await.is_some());
    assert!(stage.get(CONFIG_MAP, "by-name", "a").await.is_none());
    let faults = [
        ("on-broken", "ComparisonError", "cannot be reached"),
        ("on-cloud", "ComparisonError", "runs no programs of others, and \"cloud-auth\""),
        ("nowhere", "InvalidSpecError", "there is no cluster \"north\""),
    ];
    for (app, kind, text) in faults {
        let seen = stage.until_app(app, |app| condition(app, kind).is_some()).await;
        assert!(condition(&seen, kind).unwrap().contains(text), "{seen:#}");
        assert_eq!(seen["status"]["sync"]["status"], "Unknown");
    }
    let metrics = stage.engine.as_ref().unwrap().metrics();
    let status = |server: &str, value: u8| {
        let row = metrics
            .lines()
            .find(|line| line.starts_with("argocd_cluster_connection_status") && line.contains(server));
        assert!(row.is_some_and(|row| row.ends_with(&format!(" {value}"))), "{server}: {metrics}");
    };
    status(&east.address, 1);
    status(&broken.address, 0);
    // Drift on a remote cluster is healed there.
    let kind = tiphys_value::GroupVersionKind::new("", "v1", "ConfigMap");
    let resource = east.cluster.resource(&kind).await.unwrap();
    east.cluster
        .delete(&resource, ("by-name", "a"), tiphys_cluster::Propagation::Background, "", false)
        .await
        .unwrap();
    stage.until_app("by-name", |app| app.pointer("/status/tiphys/reverted").is_some()).await;
    stage.until_green("by-name").await;
    assert!(east.config_map("by-name", "a").await.is_some());
    // Deletion takes along what is there.
    stage.delete(APPLICATION, ENGINE, "by-name").await;
    stage.until_gone(APPLICATION, ENGINE, "by-name").await;
    assert!(east.config_map("by-name", "a").await.is_none());
    // Without its Secret a cluster is no cluster; nobody waits for it for ever.
    stage.delete(("v1", "Secret"), ENGINE, "cluster-broken").await;
    stage.until_app("on-broken", |app| condition(app, "InvalidSpecError").is_some()).await;
    stage.delete(APPLICATION, ENGINE, "on-broken").await;
    stage.until_gone(APPLICATION, ENGINE, "on-broken").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_reaches_the_cluster_that_a_destination_means() {
    let (home, east) = (Remote::new().await, Remote::new().await);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "where", "namespace": "default"}});
    east.cluster.create(&object, "test", false).await.unwrap();
    let secrets = [
        json!({"kind": "Secret", "metadata": {"name": "other"}}),
        secret("east", &east.address, &east.config(&east.token, east.verified())),
    ];
    let open = async |destination: Value| {
        let destination: tiphys_model::Destination = serde_json::from_value(destination).unwrap();
        tiphys_controller::open_destination(&home.cluster, &secrets, &destination).await
    };
    let kind = tiphys_value::GroupVersionKind::new("", "v1", "ConfigMap");
    let destinations = [
        (json!({"name": "east"}), true),
        (json!({"server": east.address}), true),
        (json!({"name": "in-cluster"}), false),
    ];
    for (destination, is_east) in destinations {
        let cluster = open(destination.clone()).await.unwrap();
        let resource = cluster.discovery().resource(&kind).cloned().expect("known at once");
        let found = cluster.get(&resource, "default", "where").await.unwrap();
        assert_eq!(found.is_some(), is_east, "{destination}");
    }
    let error = open(json!({"name": "north"})).await.err().expect("there is none").to_string();
    assert!(error.contains("there is no cluster \"north\"; known are in-cluster, east"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_that_change_are_taken_up_and_never_told() {
    let east = Remote::new().await;
    let stage = stage().await;
    stage.apply(secret("east", &east.address, &east.config("wr0ng-t0ken", east.verified()))).await;
    stage.apply(app_on("app", json!({"name": "east"}))).await;
    let refused = stage.until_app("app", |app| condition(app, "ComparisonError").is_some()).await;
    assert!(!refused.to_string().contains("wr0ng-t0ken"));
    stage.apply(secret("east", &east.address, &east.config(&east.token, east.verified()))).await;
    let green = stage.until_app("app", is_green).await;
    assert!(!green.to_string().contains(&east.token));
    assert_eq!(green.annotation("kubectl.kubernetes.io/last-applied-configuration"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_namespaces_of_a_secret_are_followed() {
    let east = Remote::new().await;
    for name in ["app", "other"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        east.cluster.create(&namespace, "test", false).await.unwrap();
    }
    let stage = stage().await;
    let mut limited = secret("east", &east.address, &east.config(&east.token, east.verified()));
    limited["stringData"]["namespaces"] = "app".into();
    stage.apply(limited).await;
    let mut app = app_on("app", json!({"name": "east"}));
    app["spec"]["syncPolicy"]["syncOptions"] = json!([]);
    stage.apply(app).await;
    stage.until_green("app").await;
    assert!(east.config_map("app", "a").await.is_some());
    let metrics = stage.engine.as_ref().unwrap().metrics();
    let followed = metrics
        .lines()
        .find(|line| line.starts_with("argocd_cluster_api_resource_objects") && line.contains(&east.address));
    let count: f64 = followed.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    // The objects of one namespace are a handful; the cluster has its nodes, roles and bindings besides.
    assert!(count > 0.0 && count < 20.0, "{count}");
}

/// A proxy that tunnels whatever it is asked for to one address, and notes what it was asked for.
async fn proxy(to: String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://u:p@{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (to, log) = (to.clone(), log.clone());
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                log.lock().unwrap().push(String::from_utf8(head).unwrap());
                let mut server = TcpStream::connect(to).await.unwrap();
                client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
                // Either side may hang up.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_reached_through_the_proxy_that_its_secret_names() {
    let east = Remote::new().await;
    let (proxy, asked) = proxy(east.address.trim_start_matches("https://").to_owned()).await;
    let stage = stage().await;
    let config =
        json!({"bearerToken": east.token, "tlsClientConfig": east.verified(), "proxyUrl": proxy}).to_string();
    stage.apply(secret("east", "https://east.example.invalid:6443", &config)).await;
    stage.apply(app_on("app", json!({"name": "east"}))).await;
    stage.until_green("app").await;
    assert!(east.config_map("app", "a").await.is_some());
    let asked = asked.lock().unwrap();
    let wanted = |head: &String| {
        head.starts_with("CONNECT east.example.invalid:6443 ")
            && head.to_lowercase().contains("proxy-authorization: basic")
    };
    assert!(!asked.is_empty() && asked.iter().all(wanted), "{asked:?}");
}

/// A service of Azure that hands out a token for a secret; and how many it handed out.
async fn authority(token: String) -> (String, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let given = Arc::new(Mutex::new(0));
    let count = given.clone();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut asked = String::new();
            // The form comes behind the head; the secret is its end.
            while !asked.contains("client_secret=") {
                let mut buffer = vec![0; 4096];
                let read = client.read(&mut buffer).await.unwrap();
                asked.push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
            let is_known = asked.ends_with("client_secret=right");
            let (status, body) = match is_known {
                true => ("200 OK", json!({"access_token": token, "expires_in": 3600})),
                false => ("401 Unauthorized", json!({"error_description": "who are you?"})),
            };
            *count.lock().unwrap() += usize::from(is_known);
            let body = body.to_string();
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        }
    });
    (address, given)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_a_cloud_is_reached_with_the_tokens_of_an_identity() {
    let east = Remote::new().await;
    let (authority, given) = authority(east.token.clone()).await;
    let stage = stage().await;
    let config = |secret: &str| {
        let env = json!({"AZURE_TENANT_ID": "acme", "AZURE_CLIENT_ID": "tiphys", "AAD_LOGIN_METHOD": "spn",
            "AZURE_CLIENT_SECRET": secret, "AZURE_AUTHORITY_HOST": authority});
        let exec = json!({"command": "argocd-k8s-auth", "args": ["azure"], "env": env,
            "apiVersion": "client.authentication.k8s.io/v1beta1"});
        json!({"execProviderConfig": exec, "tlsClientConfig": east.verified()}).to_string()
    };
    stage.apply(secret("east", &east.address, &config("wrong"))).await;
    stage.apply(app_on("app", json!({"name": "east"}))).await;
    let refused = stage.until_app("app", |app| condition(app, "ComparisonError").is_some()).await;
    let told = condition(&refused, "ComparisonError").unwrap();
    assert!(told.contains("there is no token for it: Azure: http"), "{told}");
    assert!(told.contains("the service answers 401 Unauthorized: who are you?"), "{told}");
    stage.apply(secret("east", &east.address, &config("right"))).await;
    stage.until_green("app").await;
    assert!(east.config_map("app", "a").await.is_some());
    assert_eq!(*given.lock().unwrap(), 1, "a token is used until it ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_without_namespace_are_followed_beside_some_namespaces_if_a_secret_says_so() {
    let east = Remote::new().await;
    for name in ["app", "other"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        east.cluster.create(&namespace, "test", false).await.unwrap();
    }
    let stage = stage().await;
    let class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 10\n";
    stage.write("app/class.yaml", class);
    let mut limited = secret("east", &east.address, &east.config(&east.token, east.verified()));
    limited["stringData"]["namespaces"] = "app".into();
    limited["stringData"]["clusterResources"] = "true".into();
    stage.apply(limited).await;
    let mut app = app_on("app", json!({"name": "east"}));
    app["spec"]["syncPolicy"]["syncOptions"] = json!([]);
    stage.apply(app).await;
    stage.until_green("app").await;
    let kind = tiphys_value::GroupVersionKind::new("scheduling.k8s.io", "v1", "PriorityClass");
    let resource = east.cluster.resource(&kind).await.unwrap();
    // Only what is followed is seen to be pruned.
    stage.remove("app/class.yaml");
    stage
        .until("it is pruned", async || {
            east.cluster.get(&resource, "", "high").await.unwrap().is_none().then_some(())
        })
        .await;
}
