//! `tiphys up` with ApplicationSets, and with what comes and goes in the repository.

use std::{path::Path, process::Command};

use crate::common::{Repo, URL, application, config_map};

fn set(name: &str, generators: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: {name}, namespace: argocd}}
spec:
  generators:
  {generators}
  template:
    metadata: {{name: '{{{{path.basename}}}}'}}
    spec:
      project: default
      source: {{repoURL: {URL}, path: '{{{{path}}}}'}}
      destination: {{server: https://kubernetes.default.svc, namespace: '{{{{path.basename}}}}'}}
      syncPolicy: {{automated: {{prune: true}}, syncOptions: [CreateNamespace=true]}}
"
    )
}

fn folders(name: &str, pattern: &str) -> String {
    set(name, &format!("- git: {{repoURL: {URL}, revision: HEAD, directories: [{{path: '{pattern}'}}]}}"))
}

fn names(event: &serde_json::Value) -> Vec<&str> {
    let apps = event["applications"].as_array().unwrap();
    let mut names: Vec<&str> = apps.iter().map(|app| app["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_example_comes_up() {
    let repo = Repo::with(&[]);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fleet");
    let run = repo.run(&["up", example.to_str().unwrap(), "--once", "--timeout", "60s"]);
    run.expect(0, &["svc-cart", "north-live", "south-test", "all 6 Applications are Synced and Healthy"]);
}

#[test]
fn a_set_follows_folders_and_what_it_leads_to_is_no_root() {
    // The Application in parts/child is rendered by one that the set generates; the second set by a root.
    let repo = Repo::with(&[
        ("set.yaml", &folders("all", "parts/*")),
        ("parts/one/a.yaml", &config_map("a", "1")),
        ("parts/tree/child.yaml", &application("child", "leaf")),
        ("leaf/a.yaml", &config_map("a", "1")),
        ("root.yaml", &application("root", "sets").replace("namespace: root", "namespace: argocd")),
        ("sets/more.yaml", &folders("more", "others/*")),
        ("others/two/a.yaml", &config_map("a", "2")),
    ]);
    let mut running = repo.start(&[]);
    let all = running.until_green();
    assert_eq!(names(&all), ["child", "one", "root", "tree", "two"]);
    repo.write("others/three/a.yaml", config_map("a", "3"));
    running.until(|event| event["event"] == "result" && names(event).contains(&"three"));
    std::fs::remove_dir_all(repo.path("parts/one")).unwrap();
    running.until(|event| event["event"] == "deleted" && event["name"] == "one");
}

#[test]
fn a_set_that_generates_what_brings_it_leads_to_all_the_others() {
    // Every folder is an Application's, that of the set itself, too; in each is one more Application.
    let more =
        |name: &str| application(name, "leaf").replace(&format!("namespace: {name}"), "namespace: leaf");
    let repo = Repo::with(&[
        ("parts/engine/set.yaml", &folders("all", "parts/*")),
        ("parts/one/app.yaml", &more("more-one")),
        ("parts/two/app.yaml", &more("more-two")),
        ("leaf/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.once(&["--output", "json"]);
    let last = run.stdout().lines().last().map(|line| serde_json::from_str(line).unwrap()).unwrap();
    assert_eq!(names(&last), ["engine", "more-one", "more-two", "one", "two"], "{}", run.text());
}

#[test]
fn a_set_that_fails_is_told_of_at_once() {
    let generators =
        "- git: {repoURL: https://git.example.invalid/other.git, revision: HEAD, directories: [{path: '*'}]}";
    let repo = Repo::with(&[("set.yaml", &set("broken", generators))]);
    let run = repo.once(&["--offline"]);
    run.expect(1, &["broken", "spec.generators[0]"]);
    let empty = Repo::with(&[("set.yaml", &folders("none", "parts/*")), ("parts/notes.txt", "none yet")]);
    empty.once(&[]).expect(0, &["none", "they look for folders parts/*"]);
}

#[test]
fn that_no_set_yields_an_application_is_said() {
    let by_cluster = set("fleet", "- clusters: {selector: {matchLabels: {env: prod}}}");
    let repo = Repo::with(&[("set.yaml", &by_cluster)]);
    let why = "they ask for clusters, and select none of those that are declared";
    repo.once(&[]).expect(0, &["there is no Application, for one ApplicationSet yields none", why]);
    let named = by_cluster.replace("{{path.basename}}", "{{name}}").replace("{{path}}", "web");
    let declared = Repo::with(&[
        ("set.yaml", &named),
        ("web/a.yaml", &config_map("a", "1")),
        ("clusters.yaml", "- {name: east, labels: {env: prod}}\n- {name: west, labels: {env: test}}\n"),
    ]);
    let run = declared.once(&["--clusters", "repo/clusters.yaml"]);
    run.expect(0, &["east ", "all 1 Applications are Synced and Healthy"]);
    repo.write("root.yaml", application("shop", "web"));
    repo.write("web/a.yaml", config_map("a", "1"));
    let run = repo.once(&[]);
    run.expect(0, &["all 1 Applications are Synced and Healthy, and one ApplicationSet yields none", why]);
}

#[test]
fn a_parameter_that_stands_in_an_address_is_named() {
    let open = set("addons", "- clusters: {}")
        .replace(URL, "'{{metadata.annotations.addons_repo_url}}'")
        .replace("{{path.basename}}", "{{name}}")
        .replace("{{path}}", "web");
    Repo::with(&[("set.yaml", &open)]).once(&[]).expect(
        1,
        &["in-cluster", "no generator gives the parameter \"metadata.annotations.addons_repo_url\" a value"],
    );
}

#[test]
fn what_leaves_the_repository_leaves_the_cluster() {
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1"))]);
    repo.write("second.yaml", application("second", "manifests"));
    let mut running = repo.start(&[]);
    assert_eq!(names(&running.until_green()), ["second", "shop"]);
    std::fs::remove_file(repo.path("second.yaml")).unwrap();
    running.until(|event| event["event"] == "deleted" && event["name"] == "second");
    // A file that cannot be read for a moment is not gone.
    repo.write("root.yaml", "kind: Application\napiVersion: argoproj.io/v1alpha1\nmetadata: [");
    running.until(|event| {
        event["event"] == "notice" && event["message"].as_str().unwrap().contains("root.yaml")
    });
    repo.write("root.yaml", application("shop", "manifests").replace("prune: true", "prune: false"));
    repo.write("manifests/b.yaml", config_map("b", "1"));
    let after =
        running.until(|event| event["event"] == "result" && event["applications"][0]["resources"] == 2);
    assert_eq!(names(&after), ["shop"]);
}

#[test]
fn files_that_are_no_manifests_are_told_of() {
    let repo =
        Repo::shop(&[("manifests/a.yaml", &config_map("a", "1")), ("manifests/odd.yaml", "just: [broken\n")]);
    repo.once(&[]).expect(0, &["note: shop: manifests/odd.yaml is left out, it is no manifest"]);
}

fn git(repo: &Repo, args: &[&str]) {
    let identity =
        ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(identity).args(args).current_dir(repo.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn new_commits_of_an_address_are_followed() {
    let repo = Repo::shop(&[("manifests/a.yaml", &config_map("a", "1"))]);
    repo.git_init();
    let address = format!("file://{}", repo.path("").display());
    let mut running = repo.start_at(&address, &["--poll", "1s"]);
    let first = running.until_green();
    repo.write("manifests/b.yaml", config_map("b", "1"));
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "one more object"]);
    running.until(|event| event["event"] == "result" && event["applications"][0]["resources"] == 2);
    repo.write("second.yaml", application("second", "manifests"));
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "more"]);
    let second = running.until(|event| {
        event["event"] == "result" && event["green"] == true && names(event) == ["second", "shop"]
    });
    assert_ne!(first["applications"][0]["revision"], second["applications"][0]["revision"]);
    std::fs::remove_file(repo.path("second.yaml")).unwrap();
    git(&repo, &["commit", "-q", "-a", "-m", "less"]);
    running.until(|event| event["event"] == "deleted" && event["name"] == "second");
}
