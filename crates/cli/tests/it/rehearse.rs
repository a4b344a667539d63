//! `tiphys rehearse` as a user runs it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::common::{Repo, application, config_map, rehearse};
use serde_json::Value;

fn json(repo: &Repo, args: &[&str]) -> (i32, Value) {
    let mut all = vec!["--output", "json"];
    all.extend(args);
    let (code, text) = rehearse(repo, &all);
    (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// A Deployment with so many pods of an image.
fn deployment(name: &str, image: &str, replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - name: c\n        image: {image}\n"
    )
}

/// A shop with one workload.
fn shop(image: &str) -> Repo {
    Repo::shop(&[
        ("manifests/web.yaml", &deployment("web", image, 2)),
        ("manifests/a.yaml", &config_map("a", "1")),
    ])
}

#[test]
fn what_comes_up_is_green() {
    let repo = shop("registry.example.com/web:1");
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("ends green after "), "{text}");
    assert!(text.contains("1 image (--output json names them)"), "{text}");
    let (_, report) = json(&repo, &[]);
    assert_eq!(report["story"]["assumed"]["images"][0], "registry.example.com/web:1");
    assert_eq!(report["story"]["outcome"], "green");
}

#[test]
fn a_missing_secret_is_the_cause_with_its_file_and_its_consequences() {
    let repo = shop("registry.example.com/web:1");
    let text = deployment("api", "registry.example.com/api:1", 1)
        + "        env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: database, key: password}}}]\n";
    repo.write("manifests/api.yaml", text);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("does not end green: "), "{text}");
    assert!(text.contains("1. secret \"database\" not found"), "{text}");
    assert!(text.contains("manifests/api.yaml:1"), "{text}");
    let (_, report) = json(&repo, &[]);
    let causes = report["story"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 1, "{causes:#?}");
    let hit: Vec<&str> =
        causes[0]["consequences"].as_array().unwrap().iter().filter_map(|key| key["kind"].as_str()).collect();
    assert!(hit.contains(&"Application") && hit.contains(&"Deployment"), "{hit:?}");
}

/// A pull secret in the namespace of the shop.
const PULL_SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: ghcr}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{\"auths\": {\"ghcr.io\": {}}}'}\n";

#[test]
fn a_pull_secret_of_another_name_is_missed() {
    let image = "registry.example.com/acme/api:1";
    let api = |secret: &str| {
        let names = format!("    spec:\n      imagePullSecrets: [{{name: {secret}}}]\n");
        deployment("api", image, 1).replace("    spec:\n", &names)
    };
    let repo = shop("nginx:1.27");
    repo.write("manifests/secret.yaml", PULL_SECRET);
    repo.write("manifests/api.yaml", api("regcred"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("[image/unauthorized]"), "{text}");
    assert!(text.contains("name the pull secret \"ghcr\" in place of \"regcred\""), "{text}");
    repo.write("manifests/api.yaml", api("ghcr"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
    // Where the repository makes no pull secret, people make those that it names.
    repo.write("manifests/api.yaml", api("regcred"));
    fs::remove_file(repo.path("manifests/secret.yaml")).unwrap();
    assert_eq!(rehearse(&repo, &[]).0, 0);
}

#[test]
fn an_init_container_waits_for_a_service_that_is_not_there() {
    let api = |host: &str| {
        let script = format!("until nc -z {host} 5432; do sleep 2; done");
        let wait = format!(
            "    spec:\n      initContainers: [{{name: wait, image: \"busybox:1.36\", command: [sh, -c, \"{script}\"]}}]\n"
        );
        deployment("api", "registry.example.com/api:1", 1).replace("    spec:\n", &wait)
    };
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec: {selector: {app: db}, ports: [{port: 5432}]}\n";
    let repo = shop("registry.example.com/web:1");
    repo.write("manifests/db.yaml", deployment("db", "registry.example.com/db:1", 1));
    repo.write("manifests/service.yaml", service);
    repo.write("manifests/api.yaml", api("database"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("does not end green: nothing moves after "), "{text}");
    assert!(text.contains("init container wait has not ended: sh -c until nc -z database 5432"), "{text}");
    assert!(text.contains("[run/init-wait]"), "{text}");
    repo.write("manifests/api.yaml", api("db"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
    // What is elsewhere on the internet is not known.
    repo.write("manifests/api.yaml", api("db.example.com"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
}

#[test]
fn a_probe_asks_for_a_port_by_a_name_that_is_not_there() {
    let probed = |name: &str| {
        deployment("api", "registry.example.com/api:1", 1)
            + &format!(
                "        ports: [{{name: http, containerPort: 8080}}]\n        readinessProbe: {{httpGet: {{path: /, port: {name}}}}}\n"
            )
    };
    let repo = shop("registry.example.com/web:1");
    repo.write("manifests/api.yaml", probed("htp"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("parsing \"htp\": invalid syntax   [run/readiness]"), "{text}");
    repo.write("manifests/api.yaml", probed("http"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
}

#[test]
fn an_image_that_no_runtime_can_read_is_told() {
    let (code, text) = rehearse(&shop("nginx:1:2"), &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("invalid reference format   [image/invalid]"), "{text}");
}

#[test]
fn a_program_that_is_given_its_own_path_ends() {
    let prometheus = |command: &str| {
        deployment("prometheus", "registry.example.com/prometheus:3", 1)
            + &format!(
                "        command: [{command}]\n        args: [/bin/prometheus, --web.enable-lifecycle]\n"
            )
    };
    let repo = shop("registry.example.com/web:1");
    repo.write("manifests/prometheus.yaml", prometheus("/bin/prometheus"));
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("[run/command]") && text.contains("manifests/prometheus.yaml:1"), "{text}");
    // A wrapper starts its arguments.
    repo.write("manifests/prometheus.yaml", prometheus("/sbin/tini, --"));
    assert_eq!(rehearse(&repo, &[]).0, 0);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let repo = shop("registry.example.com/web:1");
    repo.write("more.yaml", application("more", "more"));
    repo.write("more/b.yaml", config_map("b", "1"));
    let told = |seed: u32| rehearse(&repo, &["--seed", &seed.to_string(), "--output", "json"]);
    std::thread::scope(|scope| {
        for half in [0..25, 25..50] {
            scope.spawn(move || half.for_each(|seed| assert_eq!(told(seed), told(seed), "seed {seed}")));
        }
    });
    let pods = |seed| {
        let (_, report) = json(&repo, &["--seed", seed]);
        let moments = report["story"]["moments"].as_array().unwrap().clone();
        moments
            .into_iter()
            .filter(|moment| moment["object"]["kind"] == "Pod")
            .map(|moment| moment["object"]["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_ne!(pods("0"), pods("1"), "the seed draws names");
}

/// Commits everything, and returns the name of the commit before.
fn change(repo: &Repo, edit: impl FnOnce(&Repo)) {
    repo.git_init();
    edit(repo);
}

#[test]
fn a_change_is_told_by_what_it_does() {
    let repo = shop("registry.example.com/web:1");
    change(&repo, |repo| {
        repo.write("manifests/web.yaml", deployment("web", "registry.example.com/web:2", 2));
        fs::remove_file(repo.path("manifests/a.yaml")).unwrap();
        repo.write("manifests/b.yaml", config_map("b", "1"));
    });
    let (code, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("this change touches 1 Application: ends green after "), "{text}");
    for told in [
        "- ConfigMap shop/a",
        "+ ConfigMap shop/b",
        "~ Deployment shop/web: .spec.template.spec.containers[0].image",
        "Deployment shop/web is rolled out: 2 new pods",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn applications_of_several_clusters_are_rehearsed_in_as_many() {
    let in_cluster = |name: &str| {
        application(name, name)
            .replace("server: https://kubernetes.default.svc", &format!("name: {name}"))
            .replace(&format!("namespace: {name}\n  syncPolicy"), "namespace: shop\n  syncPolicy")
    };
    let repo = Repo::with(&[
        ("apps/dev.yaml", &in_cluster("dev")),
        ("apps/prod.yaml", &in_cluster("prod")),
        ("dev/a.yaml", &config_map("a", "1")),
        ("prod/a.yaml", &config_map("a", "1")),
    ]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("ends green after "), "{text}");
    change(&repo, |repo| repo.write("prod/b.yaml", config_map("b", "1")));
    let (code, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("+ ConfigMap shop/b"), "{text}");
}

#[test]
fn a_change_that_does_nothing_says_so() {
    let repo = shop("registry.example.com/web:1");
    change(&repo, |repo| repo.write("README.md", "more words"));
    let (code, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("this change does nothing: "), "{text}");
}

#[test]
fn what_a_change_turns_red_is_named() {
    let repo = shop("registry.example.com/web:1");
    change(&repo, |repo| {
        let text = deployment("web", "registry.example.com/web:2", 2)
            + "        envFrom: [{secretRef: {name: none}}]\n";
        repo.write("manifests/web.yaml", text);
    });
    let (code, report) = json(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 1);
    assert_eq!(report["change"]["effects"]["turnedRed"][0], "shop");
    assert_eq!(report["change"]["before"]["outcome"], "green");
    assert_eq!(report["story"]["causes"][0]["text"], "secret \"none\" not found");
}

#[test]
fn what_was_red_before_is_told_as_that_and_last() {
    let without_secret = |image: &str, secret: &str| {
        deployment("web", image, 1) + &format!("        envFrom: [{{secretRef: {{name: {secret}}}}}]\n")
    };
    let repo = Repo::with(&[
        ("apps/a.yaml", &application("a", "a")),
        ("apps/z.yaml", &application("z", "z")),
        ("a/web.yaml", &without_secret("registry.example.com/web:1", "first")),
        ("z/web.yaml", &deployment("web", "registry.example.com/web:1", 1)),
    ]);
    change(&repo, |repo| repo.write("z/c.yaml", config_map("c", "1")));
    let (code, text) = rehearse(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 1, "{text}");
    let verdict = "this change touches 1 Application and turns nothing red; as before, 1 of 2 Applications are not Synced and Healthy";
    assert!(text.starts_with(verdict), "{text}");
    repo.write("z/web.yaml", without_secret("registry.example.com/web:1", "second"));
    let (_, report) = json(&repo, &["--diff", "HEAD"]);
    let causes = report["story"]["causes"].as_array().unwrap();
    let texts: Vec<&str> = causes.iter().filter_map(|cause| cause["text"].as_str()).collect();
    assert_eq!(texts, ["secret \"second\" not found", "secret \"first\" not found"]);
}

#[test]
fn a_recreated_workload_is_unavailable_meanwhile() {
    let text = deployment("web", "registry.example.com/web:1", 1)
        .replace("  selector:", "  strategy: {type: Recreate}\n  selector:");
    let repo = Repo::shop(&[("manifests/web.yaml", &text)]);
    change(&repo, |repo| repo.write("manifests/web.yaml", text.replace("web:1", "web:2")));
    let (code, report) = json(&repo, &["--diff", "HEAD"]);
    assert_eq!(code, 0);
    let outages = report["story"]["outages"].as_array().unwrap();
    assert_eq!(outages.len(), 1, "{outages:#?}");
    assert_eq!(outages[0]["object"]["name"], "web");
    assert!(outages[0]["toMs"].as_u64() > outages[0]["fromMs"].as_u64());
    assert_eq!(rehearse(&repo, &["--diff", "HEAD", "--max-unavailable", "10m"]).0, 0);
    let (code, text) = rehearse(&repo, &["--diff", "HEAD", "--max-unavailable", "1s"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("unavailable for too long: Deployment shop/web; "), "{text}");
}

#[test]
fn a_fault_is_met_and_passes_with_its_time() {
    let repo = shop("registry.example.com/web:1");
    let (code, text) = rehearse(&repo, &["--fault", "registry=registry.example.com:401"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("401 Unauthorized") && text.contains("without: ends green after"), "{text}");
    let (code, report) = json(&repo, &["--fault", "registry=registry.example.com:401+2m"]);
    assert_eq!(code, 0, "{report:#}");
    assert!(report["story"]["tookMs"].as_u64().unwrap() > 120_000, "{}", report["story"]["tookMs"]);
    assert!(report["withoutFaults"]["tookMs"].as_u64().unwrap() < 120_000);
    for fault in [
        "node=node-1@1s+10m",
        "api:429+30s",
        "api:latency=2s",
        "engine:kill@1s",
        "pod=shop/web:crash+30s",
        "api:down+1m",
    ] {
        let (code, text) = rehearse(&repo, &["--fault", fault]);
        assert_eq!(code, 0, "{fault}: {text}");
    }
    for fault in ["quota=shop", "pod=shop/web:unready", "cni"] {
        let (code, text) = rehearse(&repo, &["--fault", fault]);
        assert!(code == 1 || fault == "quota=shop" || fault.starts_with("pod"), "{fault}: {text}");
    }
}

#[test]
fn what_cannot_fail_is_told_with_what_can() {
    let repo = shop("registry.example.com/web:1");
    for (fault, said) in [
        ("node=node-9", "there are node-1, node-2, node-3"),
        ("registry=ghcr.io", "there are registry.example.com"),
        ("volcano=x", "there is no kind of fault \"volcano\""),
        ("webhook=x", "no other webhook either"),
    ] {
        let (code, text) = rehearse(&repo, &["--fault", fault]);
        assert_eq!(code, 2, "{fault}: {text}");
        assert!(text.contains(said), "{fault}: {text}");
    }
}

#[test]
fn what_cannot_be_rehearsed_is_wrong_use() {
    let repo = shop("registry.example.com/web:1");
    for (args, said) in [
        (&["--diff", "HEAD"][..], "is no Git repository"),
        (&["--path", "nowhere"][..], "no folder or file \"nowhere\""),
    ] {
        let (code, text) = rehearse(&repo, args);
        assert_eq!(code, 2, "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
}

#[test]
fn environments_are_chosen_by_name() {
    let root = |env: &str| application("shop", &format!("manifests/{env}"));
    let repo = Repo::with(&[
        ("envs/dev/root.yaml", &root("dev")),
        ("envs/prod/root.yaml", &root("prod")),
        ("manifests/dev/a.yaml", &config_map("a", "1")),
        ("manifests/prod/b.yaml", &config_map("b", "1")),
    ]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("several environments"), "{text}");
    let (code, report) = json(&repo, &["--environment", "prod"]);
    assert_eq!(code, 0);
    let made =
        report["story"]["moments"].as_array().unwrap().iter().any(|moment| moment["object"]["name"] == "b");
    assert!(made, "{report:#}");
    assert_eq!(rehearse(&repo, &["--environment", "test"]).0, 2);
}

#[test]
fn every_single_fault_is_ranked() {
    let repo = shop("registry.example.com/web:1");
    let (code, report) = json(&repo, &["--explore"]);
    let faults: Vec<&str> =
        report["ranking"].as_array().unwrap().iter().filter_map(|one| one["fault"].as_str()).collect();
    for fault in ["node=node-1", "registry=registry.example.com", "engine:kill", "api:429"] {
        assert!(faults.contains(&fault), "{fault}: {faults:?}");
    }
    assert_eq!(code, 0, "{report:#}");
    let (_, few) = json(&repo, &["--explore", "2"]);
    assert_eq!(few["ranking"].as_array().unwrap().len(), 2);
    assert!(few["leftOut"].as_u64().unwrap() > 0);
}

#[test]
fn nobody_outside_is_called() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://{}/check", listener.local_addr().unwrap());
    let repo = shop("registry.example.com/web:1");
    repo.write(
        "manifests/hook.yaml",
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: outside\n  annotations: {{argocd.argoproj.io/sync-wave: '-1'}}\nwebhooks:\n- name: outside.example.com\n  clientConfig: {{url: '{url}'}}\n  rules: [{{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['configmaps']}}]\n  failurePolicy: Fail\n  sideEffects: None\n  admissionReviewVersions: [v1]\n"
        ),
    );
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("webhooks outside of the cluster, assumed to allow everything: outside.example.com"),
        "{text}"
    );
    assert!(listener.accept().is_err(), "somebody called");
}

/// A shop as it was saved when it was green.
fn saved(repo: &Repo) -> PathBuf {
    let folder = repo.run_dir().join("dump");
    let (code, text) = rehearse(repo, &["--save", folder.to_str().unwrap()]);
    assert_eq!(code, 0, "{text}");
    folder
}

fn from(repo: &Repo, dump: &Path, args: &[&str]) -> (i32, Value) {
    json(repo, &[&["--from", dump.to_str().unwrap()], args].concat())
}

#[test]
fn a_saved_cluster_is_the_state_before() {
    let repo = shop("registry.example.com/web:1");
    let dump = saved(&repo);
    let (code, same) = from(&repo, &dump, &[]);
    assert_eq!(code, 0, "{same:#}");
    assert_eq!(same["change"]["effects"]["applications"], serde_json::json!({}), "{same:#}");
    repo.write("manifests/web.yaml", deployment("web", "registry.example.com/web:2", 2));
    fs::remove_file(repo.path("manifests/a.yaml")).unwrap();
    let (code, report) = from(&repo, &dump, &[]);
    assert_eq!(code, 0, "{report:#}");
    let effects = &report["change"]["effects"]["applications"]["shop"];
    let objects: Vec<&str> = effects["objects"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["object"]["name"].as_str())
        .collect();
    assert!(objects.contains(&"a") && objects.contains(&"web"), "{effects:#}");
    assert_eq!(effects["restarted"][0]["pods"], 2, "{effects:#}");
}

#[test]
fn credentials_that_a_saved_cluster_lacks_are_no_change() {
    let repo = shop("registry.example.com/web:1");
    let env = "        env: [{name: DB_PASSWORD, value: hunter2}]\n";
    let web = deployment("web", "registry.example.com/web:1", 1);
    let image = "        image: registry.example.com/web:1\n";
    assert!(web.contains(image), "{web}");
    repo.write("manifests/web.yaml", web.replace(image, &format!("{image}{env}")));
    repo.write(
        "manifests/secret.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter2}\n",
    );
    let dump = saved(&repo);
    for file in fs::read_dir(&dump).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    }
    let (code, same) = from(&repo, &dump, &[]);
    assert_eq!(code, 0, "{same:#}");
    assert_eq!(same["change"]["effects"]["applications"], serde_json::json!({}), "{same:#}");
}

#[test]
fn what_was_broken_in_a_saved_cluster_is_not_healed() {
    let repo = shop("registry.example.com/web:1");
    let dump = saved(&repo);
    // One pod crashes, another is of a workload that nobody knows, and its ReplicaSet is not in the dump.
    let file = dump.join("pods.json");
    let mut pods: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let mut orphan = pods["items"][0].clone();
    orphan["metadata"]["name"] = "legacy-0".into();
    orphan["metadata"]["uid"] = "00000000-0000-0000-0000-00000000beef".into();
    orphan["metadata"]["ownerReferences"] = serde_json::json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "legacy", "uid": "00000000-0000-0000-0000-00000000dead", "controller": true}]);
    orphan["metadata"]["labels"] = serde_json::json!({"app": "legacy", "pod-template-hash": "legacy"});
    let crash = serde_json::json!([{"name": "c", "image": "registry.example.com/web:1", "imageID": "", "restartCount": 7, "ready": false,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "startedAt": "2026-01-05T08:00:10Z", "finishedAt": "2026-01-05T08:00:12Z"}}}]);
    orphan["status"]["containerStatuses"] = crash;
    orphan["status"]["conditions"] = serde_json::json!([{"type": "Ready", "status": "False"}]);
    pods["items"].as_array_mut().unwrap().push(orphan);
    fs::write(&file, pods.to_string()).unwrap();
    repo.write("manifests/c.yaml", config_map("c", "1"));
    let end = repo.run_dir().join("end");
    let (_, report) = from(&repo, &dump, &["--save", end.to_str().unwrap()]);
    let text = fs::read_to_string(end.join("pods.json")).unwrap();
    let after: Value = serde_json::from_str(&text).unwrap();
    let legacy = after["items"].as_array().unwrap().iter().find(|pod| pod["metadata"]["name"] == "legacy-0");
    let legacy = legacy.unwrap_or_else(|| panic!("an owner that is unknown is taken to be gone: {report:#}"));
    assert_eq!(legacy["status"]["containerStatuses"][0]["restartCount"], 7);
    let touched: Vec<&str> = report["story"]["moments"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|moment| moment["object"]["name"].as_str())
        .collect();
    assert!(
        touched.contains(&"c") && !touched.contains(&"web") && !touched.contains(&"legacy-0"),
        "{touched:?}"
    );
}

#[test]
fn a_dump_in_part_says_what_it_lacks() {
    let repo = shop("registry.example.com/web:1");
    let dump = saved(&repo);
    for kind in ["secrets", "nodes", "replicasets.apps", "pods", "endpointslices.discovery.k8s.io"] {
        drop(fs::remove_file(dump.join(format!("{kind}.json"))));
    }
    repo.write("manifests/web.yaml", deployment("web", "registry.example.com/web:2", 2));
    let (code, report) = from(&repo, &dump, &[]);
    assert_eq!(code, 0, "{report:#}");
    let told = report["notices"].to_string();
    assert!(told.contains("no Node") && told.contains("unknown, not gone"), "{told}");
    let (code, text) = rehearse(&repo, &["--from", "nowhere"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("nowhere"), "{text}");
}

#[test]
fn zones_and_hosts_of_sources_fail_too() {
    let repo = shop("registry.example.com/web:1");
    let (code, report) = json(&repo, &["--fault", "git=git.example.com+2m"]);
    assert_eq!(code, 0, "{report:#}");
    assert!(report["story"]["tookMs"].as_u64().unwrap() >= 120_000, "{}", report["story"]["tookMs"]);
    let (code, report) = json(&repo, &["--fault", "git=git.example.com"]);
    assert_eq!(code, 1, "{report:#}");
    let cause = report["story"]["causes"][0]["text"].as_str().unwrap().to_owned();
    assert!(cause.contains("refuses the connection"), "{cause}");
    let (code, report) = json(&repo, &["--fault", "zone=a@1s"]);
    let nodes: Vec<&str> = report["story"]["moments"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|moment| moment["object"]["kind"] == "Node" && moment["to"] == "NotReady")
        .filter_map(|moment| moment["object"]["name"].as_str())
        .collect();
    assert_eq!((code, nodes), (0, vec!["node-1"]), "{report:#}");
    let (code, text) = rehearse(&repo, &["--fault", "zone=z"]);
    assert!(code == 2 && text.contains("there are a, b, c"), "{text}");
}

#[test]
fn faults_come_from_a_file() {
    let repo = shop("registry.example.com/web:1");
    repo.write("faults.yaml", "- {fault: 'api:429', start: 1s, duration: 30s}\n- engine:kill@2s\n");
    let (code, report) = json(&repo, &["--fault-file", "repo/faults.yaml"]);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["faults"], serde_json::json!(["api:429@1s+30s", "engine:kill@2s"]));
    repo.write("faults.yaml", "- volcano=x\n");
    let (code, text) = rehearse(&repo, &["--fault-file", "repo/faults.yaml"]);
    assert!(code == 2 && text.contains("entry 1") && text.contains("volcano"), "{text}");
}

/// A fault that begins after all is well, and does not end, is played all the same.
#[test]
fn a_fault_after_the_end_of_the_bring_up_is_played() {
    let repo = shop("registry.example.com/web:1");
    let (code, text) =
        rehearse(&repo, &["--fault", "zone=a@5m", "--fault", "zone=b@5m", "--fault", "zone=c@5m"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("[node/not-ready]"), "{text}");
    let (code, text) = rehearse(&repo, &["--fault", "zone=a@5m"]);
    assert_eq!(code, 0, "pods go to the other zones: {text}");
}

#[test]
fn a_quota_from_the_beginning_lets_no_pod_be_made() {
    let repo = shop("registry.example.com/web:1");
    let (code, text) = rehearse(&repo, &["--fault", "quota=shop"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("exceeded quota: no-pods") && text.contains("[admit/quota]"), "{text}");
    let (code, text) = rehearse(&repo, &["--fault", "quota=shop+30s"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_registry_that_refuses_further_pulls_is_told_apart() {
    let repo = shop("registry.example.com/web:1");
    let (code, text) = rehearse(&repo, &["--fault", "registry=registry.example.com:429"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("[image/rate-limited]"), "{text}");
}

#[test]
fn a_job_that_took_too_long_tells_what_held_its_pods_up() {
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: init}\nspec:\n  activeDeadlineSeconds: 60\n  template:\n    spec:\n      \
               restartPolicy: Never\n      containers: [{name: c, image: 'registry.example.com/job:1'}]\n";
    let repo = Repo::shop(&[("manifests/job.yaml", job)]);
    let (code, text) = rehearse(&repo, &["--fault", "registry=registry.example.com:403"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("longer than specified deadline; its pod: failed to pull"), "{text}");
    assert!(text.contains("[image/forbidden]"), "{text}");
}

#[test]
fn a_field_that_self_heal_and_an_autoscaler_change_in_turn_is_the_cause() {
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  \
                  minReplicas: 3\n  maxReplicas: 5\n  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]\n";
    let requests = "        resources: {requests: {cpu: 100m}}\n";
    let repo = Repo::shop(&[
        ("manifests/web.yaml", &(deployment("web", "registry.example.com/web:1", 2) + requests)),
        ("manifests/scaler.yaml", scaler),
    ]);
    let (code, text) = rehearse(&repo, &["--until", "30m"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("self-heal takes back again and again: apps/Deployment/shop/web: .spec.replicas"),
        "{text}"
    );
    assert!(text.contains("[gitops/drift-fight]"), "{text}");
}

#[test]
fn an_application_that_a_sync_window_holds_back_says_so() {
    let project = "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: default, namespace: argocd}\nspec:\n  sourceRepos: ['*']\n  \
                   destinations: [{server: '*', namespace: '*'}]\n  syncWindows: [{kind: deny, schedule: '0 0 * * *', duration: 24h, applications: ['*']}]\n";
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1")), ("projects/default.yaml", project)]);
    let (code, text) = rehearse(&repo, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("a sync window of project 'default' forbids automated sync"), "{text}");
}
