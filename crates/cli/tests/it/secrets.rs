//! No value of a Secret appears in anything that is shown or recorded: progress, status, events, diffs,
//! errors (the classes of CVE-2023-40029, CVE-2025-23216, CVE-2026-42880 and CVE-2026-45737).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tiphys_cluster::Cluster;
use tiphys_value::GroupVersionKind;

use crate::common::{Repo, application};

/// The values, by what is to happen to the Secret that holds them.
const PLAIN: &str = "plain-hunter2-value";
const CHANGED: &str = "changed-hunter3-value";
const REFUSED: &str = "refused hunter4 value!";
const FROZEN: &str = "frozen-hunter5-value";
const THAWED: &str = "thawed-hunter6-value";

fn secret(name: &str, field: &str, value: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n{more}{field}:\n  password: \"{value}\"\n"
    )
}

fn assert_silent(what: &str, text: &str) {
    for value in [PLAIN, CHANGED, REFUSED, FROZEN, THAWED] {
        for form in [value.to_owned(), STANDARD.encode(value)] {
            assert!(!text.contains(&form), "{what} tells {form}:\n{text}");
        }
    }
}

/// Everything that the cluster has recorded about Applications and as Events.
fn recorded(repo: &Repo) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let kubeconfig = repo.kubeconfig();
    runtime.block_on(async {
        let cluster = Cluster::connect(Some(&kubeconfig), None).await.unwrap().cluster;
        let mut text = String::new();
        for (group, version, kind) in [("argoproj.io", "v1alpha1", "Application"), ("", "v1", "Event")] {
            let resource = cluster.resource(&GroupVersionKind::new(group, version, kind)).await.unwrap();
            for object in cluster.list(&resource, "").await.unwrap().items {
                text.push_str(&object.to_string());
            }
        }
        text
    })
}

#[test]
fn values_of_secrets_appear_nowhere() {
    let manual =
        |name: &str| application(name, name).replace("    automated: {prune: true, selfHeal: true}\n", "");
    let repo = Repo::with(&[
        ("good.yaml", &manual("good")),
        ("bad.yaml", &manual("bad")),
        ("good/s.yaml", &secret("s", "stringData", PLAIN, "")),
        ("good/frozen.yaml", &secret("frozen", "stringData", FROZEN, "immutable: true\n")),
        ("bad/s.yaml", &secret("s", "data", REFUSED, "")),
    ]);
    let mut up = repo.start(&[]);
    up.until(|event| {
        event["event"] == "application" && event["name"] == "good" && event["sync"] == "OutOfSync"
    });
    let mut told = String::new();
    let mut run = |args: &[&str]| {
        let run = repo.run(args);
        assert_silent(&format!("{args:?}"), &run.text());
        told.push_str(&run.text());
    };
    run(&["app", "diff", "good"]);
    run(&["app", "sync", "good"]);
    run(&["app", "sync", "bad", "--timeout", "5s"]);
    repo.write("good/s.yaml", secret("s", "stringData", CHANGED, ""));
    repo.write("good/frozen.yaml", secret("frozen", "stringData", THAWED, "immutable: true\n"));
    run(&["app", "diff", "good", "--refresh"]);
    run(&["app", "sync", "good", "--timeout", "5s"]);
    for app in ["good", "bad"] {
        run(&["app", "get", app, "--output", "yaml"]);
        run(&["app", "manifests", app]);
        run(&["app", "manifests", app, "--source", "live"]);
        run(&["app", "diff", app, "--output", "json"]);
    }
    assert!(told.contains("++++++++"), "the Secrets were shown, masked:\n{told}");
    assert_silent("the cluster", &recorded(&repo));
    up.kill();
    assert_silent("tiphys up", &up.rest());
    let run = repo.run(&["up", "repo", "--once", "--timeout", "3s"]);
    assert_silent("tiphys up --once", &run.text());
}
