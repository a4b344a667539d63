//! `tiphys rehearse` as a user runs it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::common::{Repo, application, config_map};
use serde_json::Value;

fn rehearse(repo: &Repo, args: &[&str]) -> (i32, String) {
    let mut all = vec!["rehearse", "repo", "--offline"];
    all.extend(args);
    let Output { status, stdout, stderr } = repo.command(&all).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.code().unwrap(), text)
}

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

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let repo = shop("registry.example.com/web:1");
    repo.write("more.yaml", application("more", "more"));
    repo.write("more/b.yaml", config_map("b", "1"));
    for seed in ["0", "7", "4711"] {
        let told = |_| rehearse(&repo, &["--seed", seed, "--output", "json"]);
        let [one, other] = [0, 1].map(told);
        assert_eq!(one, other, "seed {seed}");
    }
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
        ("webhook=x", "there is none"),
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

/// A fixture of an incident, as a repository.
fn incident(folder: &Path) -> Repo {
    let repo = Repo::with(&[]);
    copy(folder, &repo.path(""));
    repo
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            assert!(fs::copy(entry.path(), &target).is_ok())
        }
    }
}

/// Gives the commit a date, so that its name, which stories tell, is always the same.
fn date_commit(repo: &Repo) {
    const DATE: &str = "2026-01-01T00:00:00Z";
    let mut git = Command::new("git");
    git.args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]);
    git.args(["commit", "-q", "--amend", "--no-edit", "--date", DATE]).env("GIT_COMMITTER_DATE", DATE);
    assert!(git.current_dir(repo.path("")).status().unwrap().success());
}

/// The incidents that unfold: each folder holds `bad` and `good`, or `base` and both as its changes, and the stories.
#[test]
fn incidents_unfold_from_bad_repositories_and_stay_away_from_good_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/incidents");
    let mut folders: Vec<PathBuf> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(!folders.is_empty());
    let mut faults = Vec::new();
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        for (state, expected) in [("bad", 1), ("good", 0)] {
            let flags = fs::read_to_string(folder.join("flags")).unwrap_or_default();
            let mut args: Vec<&str> = flags.split_whitespace().collect();
            let repo = match folder.join("base").is_dir() {
                false => incident(&folder.join(state)),
                true => {
                    let repo = incident(&folder.join("base"));
                    repo.git_init();
                    date_commit(&repo);
                    for entry in fs::read_dir(repo.path(""))
                        .unwrap()
                        .map(Result::unwrap)
                        .filter(|it| it.file_name() != ".git")
                    {
                        if entry.path().is_dir() {
                            fs::remove_dir_all(entry.path()).unwrap()
                        } else {
                            fs::remove_file(entry.path()).unwrap()
                        }
                    }
                    copy(&folder.join(state), &repo.path(""));
                    args.extend(["--diff", "HEAD"]);
                    repo
                }
            };
            let (code, text) = rehearse(&repo, &args);
            let name = format!("{}/{state}", folder.file_name().unwrap().to_string_lossy());
            if code != expected {
                faults.push(format!("{name}: exit code {code}, not {expected}\n{text}"));
            }
            let golden = folder.join(format!("{state}.txt"));
            if std::env::var_os("TIPHYS_BLESS").is_some() {
                fs::write(&golden, &text).unwrap();
            } else if fs::read_to_string(&golden).unwrap_or_default() != text {
                faults.push(format!("{name}: another story than {}\n{text}", golden.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
