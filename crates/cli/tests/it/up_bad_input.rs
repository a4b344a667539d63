//! What `tiphys up` says to input that cannot be used: each fault with its place, nothing lost.

use crate::common::{Repo, URL, application, config_map};

/// A shop with one good manifest and one file that is not.
fn with_bad(file: &str, text: impl AsRef<[u8]>) -> Repo {
    let repo = Repo::shop(&[("manifests/good.yaml", &config_map("good", "a"))]);
    repo.write(&format!("manifests/{file}"), text);
    repo
}

#[test]
fn no_application_is_wrong_use() {
    let repo = Repo::with(&[("a.yaml", &config_map("a", "b"))]);
    repo.once(&[]).expect(2, &["no Application found", "1 YAML and JSON files"]);
}

#[test]
fn a_root_that_does_not_parse_is_shown() {
    let broken = application("shop", "manifests").replace("spec:", "spec: [");
    Repo::with(&[("root.yaml", &broken)])
        .once(&[])
        .expect(2, &["no Application found", "root.yaml:", "not valid YAML", "8 |   source:"]);
}

#[test]
fn a_set_that_does_not_parse_is_shown_and_a_template_is_none() {
    let set = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\nspec:\n  generators:\n  - git:#new\n      revision: HEAD\n  template:\n    metadata: {name: 'a-{{path}}'}\n";
    let template = format!("{{{{- if true }}}}\n{}{{{{- end }}}}\n", application("shop", "manifests"));
    let run = Repo::with(&[("set.yaml", set), ("template.yaml", &template)]).once(&[]);
    run.expect(2, &["no Application found", "set.yaml:7:"]);
    assert!(!run.text().contains("template.yaml"), "{}", run.text());
}

#[test]
fn yaml_that_does_not_parse_is_shown_with_its_line() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\ndata: {}\n";
    with_bad("bad.yaml", text)
        .once(&[])
        .expect(1, &["manifests/bad.yaml:4:", "not valid YAML", "4 | data: {}"]);
}

#[test]
fn a_document_without_kind_or_name_is_shown() {
    let text = "apiVersion: v1\nmetadata:\n  name: a\n";
    with_bad("bad.yaml", text).once(&[]).expect(1, &["manifests/bad.yaml:1:1: this document has no kind"]);
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n";
    with_bad("bad.yaml", text)
        .once(&[])
        .expect(1, &["manifests/bad.yaml:1:1: this ConfigMap has no metadata.name"]);
}

#[test]
fn of_duplicate_keys_the_last_counts_and_they_are_shown() {
    let text = format!("{}  key: b\n", config_map("a", "a"));
    with_bad("bad.yaml", text)
        .once(&[])
        .expect(0, &["manifests/bad.yaml:7:3: the key \"key\" is set twice", "the last counts"]);
}

#[test]
fn a_kind_that_nobody_defines_is_named() {
    let text = "apiVersion: example.com/v1\nkind: Gadget\nmetadata:\n  name: a\n";
    let repo = with_bad("bad.yaml", text);
    repo.run(&["up", "repo", "--once", "--timeout", "1h"])
        .expect(1, &["no kind Gadget of example.com", "--stand-ins"]);
    repo.once(&["--stand-ins", "always"])
        .expect(0, &["definitions that take any field stand in", "Gadget.example.com", "Synced and Healthy"]);
}

#[test]
fn a_path_that_does_not_exist_is_named_with_what_there_is() {
    let repo = Repo::with(&[
        ("root.yaml", &application("shop", "manifest")),
        ("manifests/a.yaml", &config_map("a", "b")),
    ]);
    repo.write("other.yaml", application("other", "manifests"));
    repo.git_init();
    repo.once(&[]).expect(1, &["\"manifest\"", "there is no such folder", "the root has manifests"]);
}

#[test]
fn a_revision_that_does_not_exist_is_wrong_use() {
    let repo = with_bad("also.yaml", config_map("b", "c"));
    repo.git_init();
    repo.once(&["--revision", "v9"]).expect(2, &["no branch, tag or commit \"v9\"", "it has main"]);
}

#[test]
fn two_applications_of_one_name_are_named_with_their_places() {
    let repo =
        Repo::with(&[("one.yaml", &application("shop", "a")), ("sub/two.yaml", &application("shop", "b"))]);
    let texts = ["two Applications are named \"shop\"", "one.yaml:1 runs", "sub/two.yaml:1 does not"];
    repo.once(&[]).expect(1, &texts);
}

#[test]
fn more_applications_than_one_process_takes_are_not_run() {
    let elements = |name: &str| {
        let all: Vec<String> = (0..72).map(|number| format!("{{{name}: '{number}'}}")).collect();
        format!("        - list: {{elements: [{}]}}\n", all.join(", "))
    };
    let set = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: all, namespace: argocd}}\nspec:\n  \
         generators:\n    - matrix:\n        generators:\n{}{}  \
         template:\n    metadata: {{name: 'a-{{{{one}}}}-{{{{two}}}}'}}\n    spec:\n      project: default\n      \
         source: {{repoURL: 'https://git.example.invalid/other', path: '{{{{one}}}}'}}\n      \
         destination: {{name: in-cluster, namespace: shop}}\n",
        elements("one"),
        elements("two"),
    );
    let repo = Repo::with(&[("set.yaml", &set)]);
    let texts = ["leads to 5184 Applications, and 5000 are run at most", "--path or --environment"];
    repo.once(&["--offline"]).expect(2, &texts);
}

#[test]
fn applications_that_render_each_other_are_counted_before_they_run() {
    let app = |number: usize| {
        format!(
            "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: a{number}, namespace: argocd}}\nspec:\n  \
             project: default\n  source: {{repoURL: 'https://git.example.invalid/all', path: apps}}\n  \
             destination: {{name: in-cluster, namespace: shop}}\n"
        )
    };
    let all: String = (0..12).map(app).collect();
    let repo = Repo::with(&[("apps/all.yaml", &all)]);
    let texts = ["have over 80 objects together", "--path or --environment", "--limit-objects"];
    repo.once(&["--offline", "--limit-objects", "40"]).expect(2, &texts);
}

#[test]
fn objects_of_another_engine_are_named() {
    let flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\n";
    Repo::with(&[("clusters/a.yaml", flux), ("clusters/b.yaml", flux)])
        .once(&[])
        .expect(2, &["no Application found", "2 files hold objects of Flux, which is another engine"]);
}

#[test]
fn several_environments_are_listed() {
    let app = |env: &str| application(&format!("root-{env}"), &format!("envs/{env}/apps"));
    let repo = Repo::with(&[("envs/dev/root.yaml", &app("dev")), ("envs/prod/root.yaml", &app("prod"))]);
    repo.once(&[])
        .expect(2, &["--environment envs/dev   (root-dev)", "--environment envs/prod   (root-prod)"]);
}

#[test]
fn an_unknown_destination_is_named() {
    let app = application("shop", "manifests")
        .replace("https://kubernetes.default.svc", "https://prod.example.com");
    let repo = Repo::with(&[("root.yaml", &app), ("manifests/a.yaml", &config_map("a", "b"))]);
    repo.once(&["--respect-destinations"]).expect(1, &["there is no cluster \"https://prod.example.com\""]);
    repo.once(&[]).expect(0, &["all 1 Applications are Synced and Healthy"]);
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let repo = with_bad("also.yaml", config_map("b", "c"));
    repo.once(&["--listen", &address])
        .expect(1, &["cannot listen on", &address, "choose another address with --listen"]);
}

#[test]
fn what_is_still_being_fetched_is_named() {
    // The system takes connections, and nobody answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/charts.git", silent.local_addr().unwrap());
    let app = application("slow", "app").replace(URL, &url);
    let repo = Repo::with(&[("root.yaml", &app)]);
    repo.run(&["up", "repo", "--once", "--timeout", "2s"])
        .expect(1, &["it has not been looked at yet", &url, "is still being fetched"]);
}

#[test]
fn binary_files_are_refused() {
    let run = with_bad("bad.yaml", b"\x7fELF\x80\x81").once(&[]);
    run.expect(1, &["manifests/bad.yaml is not a text file", "byte 4 is not valid UTF-8"]);
}

#[test]
fn files_over_the_limit_are_refused() {
    let repo = with_bad("bad.yaml", "");
    let file = std::fs::File::create(repo.path("manifests/bad.yaml")).unwrap();
    file.set_len(50 * 1024 * 1024).unwrap();
    repo.once(&[]).expect(1, &["manifests/bad.yaml", "more than the limit of 33554432"]);
}

#[cfg(unix)]
#[test]
fn links_that_leave_the_repository_are_refused() {
    let repo = with_bad("also.yaml", config_map("b", "c"));
    std::fs::write(repo.run_dir().join("secret.yaml"), config_map("stolen", "x")).unwrap();
    std::os::unix::fs::symlink("../../secret.yaml", repo.path("manifests/link.yaml")).unwrap();
    repo.once(&[]).expect(1, &["manifests/link.yaml", "files outside the repository are never read"]);
}

#[test]
fn a_fault_in_one_application_leaves_the_others_alone() {
    let repo = Repo::with(&[
        ("broken.yaml", &application("broken", "broken-manifests")),
        ("good.yaml", &application("good", "manifests")),
        ("broken-manifests/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n"),
        ("manifests/a.yaml", &config_map("a", "b")),
    ]);
    let run = repo.once(&[]);
    run.expect(1, &["1 of 2 Applications are not Synced and Healthy", "broken-manifests/a.yaml:"]);
    let good = run
        .stdout()
        .lines()
        .any(|line| line.contains("good") && line.contains("Synced") && line.contains("Healthy"));
    assert!(good, "{}", run.stdout());
}

#[test]
fn a_state_folder_of_a_newer_version_is_refused() {
    let repo = with_bad("also.yaml", config_map("b", "c"));
    repo.once(&["--state", "state"]).expect(0, &[]);
    let file = repo.run_dir().join("state/cluster.redb");
    {
        let database = redb::Database::open(&file).unwrap();
        let write = database.begin_write().unwrap();
        let meta = redb::TableDefinition::<&str, u64>::new("meta");
        write.open_table(meta).unwrap().insert("format", 99).unwrap();
        write.commit().unwrap();
    }
    let before = std::fs::metadata(&file).unwrap().len();
    let run = repo.once(&["--state", "state"]);
    run.expect(1, &["state has format 99", "written by a newer version of tiphys"]);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), before, "nothing of it was touched");
}
