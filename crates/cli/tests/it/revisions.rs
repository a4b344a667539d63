//! `tiphys diff` and `tiphys appset` as a user runs them.

use std::process::Command;

use crate::common::{Repo, URL, application, config_map};

fn git(repo: &Repo, args: &[&str]) {
    let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
    let output = Command::new("git").args(identity).args(args).current_dir(repo.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn secret(value: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  password: {value}\n")
}

/// Two Applications on `main`, one of them changed on `HEAD`.
fn changed() -> Repo {
    let repo = Repo::with(&[
        ("one.yaml", &application("one", "one")),
        ("two.yaml", &application("two", "two")),
        ("one/a.yaml", &config_map("a", "1")),
        ("one/s.yaml", &secret("hunter2")),
        ("two/a.yaml", &config_map("a", "1")),
    ]);
    repo.git_init();
    git(&repo, &["checkout", "-q", "-b", "change"]);
    repo.write("one/a.yaml", config_map("a", "changed"));
    repo.write("one/s.yaml", secret("correct-horse"));
    repo.write("one/b.yaml", config_map("b", "1"));
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "change"]);
    repo
}

#[test]
fn two_revisions_are_compared_by_application() {
    let repo = changed();
    let run = repo.run(&["diff", "main..HEAD", "--repo", "repo"]);
    run.expect(
        0,
        &[
            "=== argocd/one (changed) ===",
            "-  key: \"1\"",
            "+  key: changed",
            "ConfigMap one/b (added)",
            "1 of 2 Applications differ",
        ],
    );
    assert!(!run.text().contains("hunter2") && !run.text().contains("correct-horse"), "{}", run.text());
    assert!(!run.text().contains("argocd/two"));
    repo.run(&["diff", "main..HEAD", "--repo", "repo", "--exit-code"]).expect(1, &[]);
    repo.run(&["diff", "HEAD..HEAD", "--repo", "repo", "--exit-code"]).expect(0, &["0 of 2"]);
    let run = repo.run(&["diff", "main..HEAD", "--repo", "repo", "-o", "markdown"]);
    run.expect(
        0,
        &[
            "### 1 of 2 Applications differ in `main..HEAD`",
            "| argocd/one | changed | 1 | 2 | 0 |",
            "```diff",
        ],
    );
    let run = repo.run(&["diff", "main..HEAD", "--repo", "repo", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
    assert_eq!(json[0]["objects"].as_array().unwrap().len(), 3);
}

#[test]
fn a_hash_in_a_name_is_no_other_object_and_what_never_renders_is_told_of() {
    let repo = Repo::with(&[
        ("one.yaml", &application("one", "one")),
        ("lost.yaml", &application("lost", "nowhere")),
        ("one/kustomization.yaml", "configMapGenerator: [{name: conf, files: [conf.txt]}]\n"),
        ("one/conf.txt", "first \nold\nlast\n"),
    ]);
    repo.git_init();
    repo.write("one/conf.txt", "first \nnew\nlast\n");
    let run = repo.run(&["diff", "HEAD", "--repo", "repo"]);
    run.expect(
        0,
        &[
            ", before conf-",
            "-    old\n+    new\n",
            "1 of 1 Applications differ\n1 more cannot be compared",
            "not compared, because these fail to render both before and after the change",
            "argocd/lost: ",
        ],
    );
    assert!(!run.text().contains("(removed)") && !run.text().contains("tracking-id"), "{}", run.text());
    let run = repo.run(&["diff", "HEAD", "--repo", "repo", "-o", "markdown"]);
    run.expect(0, &["| argocd/one | changed | 0 | 1 | 0 |", "both before and after the change: 1"]);
    let run = repo.run(&["diff", "HEAD", "--repo", "repo", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
    let fates: Vec<_> = json.as_array().unwrap().iter().map(|app| app["fate"].as_str().unwrap()).collect();
    assert_eq!(fates, ["changed", "unknown"]);
}

#[test]
fn the_application_itself_counts() {
    let repo = Repo::with(&[("one.yaml", &application("one", "one")), ("one/a.yaml", &config_map("a", "1"))]);
    repo.git_init();
    let other = application("one", "one").replace("selfHeal: true", "selfHeal: false");
    repo.write("one.yaml", other);
    let run = repo.run(&["diff", "HEAD", "--repo", "repo"]);
    run.expect(0, &["Application.argoproj.io argocd/one (changed)", "-      selfHeal: true", "1 of 1"]);
}

#[test]
fn the_files_as_they_are_can_be_compared_and_what_breaks_fails() {
    let repo = changed();
    repo.write("two/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n");
    let run = repo.run(&["diff", "HEAD", "--repo", "repo"]);
    run.expect(1, &["=== argocd/two (no longer renders) ===", "two/a.yaml"]);
    repo.run(&["diff", "main..HEAD", "two", "--repo", "repo"]).expect(2, &[]);
    repo.run(&["diff", "v9..HEAD", "--repo", "repo"]).expect(2, &["no branch, tag or commit \"v9\""]);
}

#[test]
fn three_dots_compare_with_the_commit_in_common() {
    let repo = changed();
    git(&repo, &["checkout", "-q", "main"]);
    repo.write("two/a.yaml", config_map("a", "main went on"));
    git(&repo, &["commit", "-q", "-a", "-m", "elsewhere"]);
    repo.run(&["diff", "main..change", "--repo", "repo"]).expect(0, &["2 of 2 Applications differ"]);
    repo.run(&["diff", "main...change", "--repo", "repo"]).expect(0, &["1 of 2 Applications differ"]);
    git(&repo, &["checkout", "-q", "change"]);
    repo.run(&["diff", "main...", "--repo", "repo"]).expect(0, &["1 of 2 Applications differ"]);
    repo.run(&["diff", "main...v9", "--repo", "repo"]).expect(2, &["no branch, tag or commit \"v9\""]);
}

#[test]
fn the_repositorys_own_settings_of_the_renderers_count() {
    let repo = Repo::with(&[
        ("app.yaml", &application("one", "one/base")),
        ("one/base/kustomization.yaml", "resources: [../../elsewhere/a.yaml]\n"),
        ("elsewhere/a.yaml", &config_map("a", "1")),
    ]);
    repo.git_init();
    repo.run(&["diff", "HEAD..HEAD", "--repo", "repo"]).expect(0, &["1 more cannot be compared"]);
    repo.write("argocd/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\ndata:\n  kustomize.buildOptions: --load-restrictor LoadRestrictionsNone\n");
    let run = repo.run(&["diff", "HEAD", "--repo", "repo"]);
    run.expect(0, &["=== argocd/one (renders again) ==="]);
    repo.run(&["render", "app", "repo/app.yaml", "--repo", "repo"]).expect(0, &["name: a"]);
}

const SET: &str = "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: teams, namespace: argocd}
spec:
  goTemplate: true
  generators:
  - git:
      repoURL: $ADDRESS
      revision: HEAD
      directories: [{path: teams/*}]
  template:
    metadata: {name: '{{.path.basename}}'}
    spec:
      project: default
      source: {repoURL: $ADDRESS, path: '{{.path.path}}', targetRevision: HEAD}
      destination: {server: https://kubernetes.default.svc, namespace: '{{.path.basename}}'}
      syncPolicy: {automated: {}, syncOptions: [CreateNamespace=true]}
";

#[test]
fn a_set_is_generated_and_its_change_previewed() {
    let repo = Repo::with(&[
        ("set.yaml", &SET.replace("$ADDRESS", URL)),
        ("teams/red/a.yaml", &config_map("a", "1")),
        ("teams/blue/a.yaml", &config_map("a", "1")),
    ]);
    let run = repo.run(&["appset", "generate", "repo/set.yaml"]);
    run.expect(0, &["name: red", "name: blue", "path: teams/red", "resources-finalizer"]);
    let mut up = repo.start(&[]);
    up.until_green();
    repo.run(&["appset", "preview", "repo/set.yaml"]).expect(0, &["0 added, 0 changed, 0 deleted"]);
    let only_red = SET
        .replace("$ADDRESS", URL)
        .replace("teams/*", "teams/re*")
        .replace("automated: {}", "automated: {prune: true}");
    repo.write("../other.yaml", only_red);
    let run = repo.run(&["appset", "preview", "other.yaml", "--exit-code"]);
    run.expect(
        1,
        &[
            "0 added, 1 changed, 1 deleted",
            "~ red",
            "+      prune: true",
            "- blue and 1 object\n",
            "ConfigMap",
        ],
    );
    repo.run(&["appset", "generate", "repo/teams/red/a.yaml"]).expect(2, &["holds no ApplicationSet"]);
}

const BY_CLUSTER: &str = "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: everywhere}
spec:
  goTemplate: true
  generators:
  - clusters: {selector: {matchLabels: {env: prod}}}
  template:
    metadata: {name: 'web-{{.name}}'}
    spec:
      project: default
      source: {repoURL: $ADDRESS, path: web, targetRevision: HEAD}
      destination: {name: '{{.name}}', namespace: web}
";

#[test]
fn a_set_that_fails_or_yields_nothing_is_told_of_beside_the_others() {
    let broken = SET.replace("$ADDRESS", URL).replace("name: teams", "name: broken").replace("git:", "gti:");
    let repo = Repo::with(&[
        ("sets/a.yaml", &broken),
        ("sets/b.yaml", &SET.replace("$ADDRESS", URL)),
        ("sets/c.yaml", &BY_CLUSTER.replace("$ADDRESS", URL)),
        ("teams/red/a.yaml", &config_map("a", "1")),
        ("web/a.yaml", &config_map("a", "1")),
        ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
        ("chart/templates/set.yaml", "{{ if .Values.on }}\nkind: ApplicationSet\n{{ end }}\n"),
        (
            "bare.yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata:\n  name: {{ .name }}\n",
        ),
    ]);
    let run = repo.run(&["appset", "generate", "repo/sets", "--repo", "repo"]);
    run.expect(
        1,
        &["Error: ApplicationSet broken:", "name: red", "note: ApplicationSet everywhere yields no"],
    );
    let none = "only the engine's own cluster is known, and its generators look for clusters with env=prod; --clusters names others";
    run.expect(1, &[none]);
    repo.write("../clusters.yaml", "- {name: one, labels: {env: prod}}\n- {name: two, labels: {env: dev}}\n");
    let run = repo.run(&["appset", "generate", "repo/sets/c.yaml", "--clusters", "clusters.yaml"]);
    run.expect(0, &["name: web-one"]);
    assert!(!run.text().contains("web-two"), "{}", run.text());
    // Clusters of a repository's tests count only where nobody says which there are.
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: own\n  labels: {argocd.argoproj.io/secret-type: cluster, env: prod}\nstringData: {name: own, server: 'https://own'}\n";
    repo.write("tests/cluster.yaml", secret);
    let generate = ["appset", "generate", "repo/sets/c.yaml", "--repo", "repo"];
    repo.run(&generate).expect(0, &["name: web-own"]);
    let run = repo.run(&[&generate[..], &["--clusters", "clusters.yaml"]].concat());
    assert!(!run.text().contains("web-own"), "{}", run.text());
    let run = repo.run(&["appset", "generate", "repo/chart/templates/set.yaml"]);
    run.expect(2, &["it is a template of a chart: `tiphys render helm NAME repo/chart --show-only"]);
    let run = repo.run(&["render", "app", "repo/chart/templates/set.yaml"]);
    run.expect(
        1,
        &["\nit is a template of a chart: `tiphys render helm NAME ", "> app.yaml && tiphys render app"],
    );
    repo.run(&["appset", "generate", "repo/bare.yaml"]).expect(2, &["has to be in quotes (line 4)"]);
}

/// The chart alone says by which address its sets mean the repository.
#[test]
fn sets_that_a_chart_declares_are_of_the_repository_that_it_lies_in() {
    let address = "https://git.example.com/renamed/copy";
    let template = SET
        .replace("$ADDRESS", "{{ .Values.address }}")
        .replace("{{.path.", "{{`{{.path.")
        .replace("}}'", "}}`}}'");
    let repo = Repo::with(&[
        ("sets/Chart.yaml", "apiVersion: v2\nname: sets\nversion: 1.0.0\n"),
        ("sets/values.yaml", &format!("address: {address}\n")),
        ("sets/templates/set.yaml", &template),
        ("teams/red/a.yaml", &config_map("a", "1")),
    ]);
    repo.run(&["appset", "generate", "repo", "--offline"]).expect(0, &["name: red", "path: teams/red"]);
    repo.write("../set.yaml", SET.replace("$ADDRESS", address));
    let run = repo.run(&["appset", "generate", "set.yaml", "--repo", "repo", "--offline"]);
    run.expect(0, &["name: red", "is this repository"]);
}

#[test]
fn applications_of_a_folder_are_rendered_though_one_is_broken() {
    let repo = Repo::with(&[
        ("apps/a.yaml", &application("a", "gone")),
        ("apps/b.yaml", &application("b", "web")),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    repo.git_init();
    let run = repo.run(&["render", "app", "repo/apps", "--repo", "repo"]);
    run.expect(1, &["Error: Application a: source path \"gone\"", "kind: ConfigMap"]);
    let mut command = repo.command(&["render", "app", "-", "--repo", "repo"]);
    let file = std::fs::File::open(repo.path("apps/b.yaml")).unwrap();
    let output = command.stdin(file).output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("kind: ConfigMap"));
}

#[test]
fn a_bare_repository_and_clusters_that_no_file_declares() {
    let repo = Repo::with(&[
        ("set.yaml", &BY_CLUSTER.replace("$ADDRESS", URL)),
        ("web/a.yaml", &config_map("a", "1")),
    ]);
    repo.git_init();
    repo.write("web/a.yaml", config_map("a", "2"));
    git(&repo, &["commit", "-q", "-a", "-m", "change"]);
    git(&repo, &["clone", "-q", "--bare", ".", "../bare.git"]);
    repo.write("../clusters.yaml", "- {name: one, labels: {env: prod}}\n");
    let diff = |more: &[&str]| repo.run(&[&["diff", "--repo", "bare.git", "--offline"], more].concat());
    diff(&["HEAD~1..HEAD"]).expect(0, &["none is known but the engine's own"]);
    let run = diff(&["HEAD~1...HEAD", "--clusters", "clusters.yaml"]);
    run.expect(0, &["=== argocd/web-one (changed) ===", "+  key: \"2\"", "1 of 1 Applications differ"]);
    diff(&["HEAD~1"]).expect(2, &["a bare repository has no files", "HEAD~1..HEAD"]);
    diff(&["v9..HEAD"]).expect(2, &["no branch, tag or commit \"v9\""]);
    diff(&["HEAD~1..HEAD", "--clusters", "none.yaml"]).expect(2, &["none.yaml"]);
}

#[test]
fn what_nobody_knows_is_not_counted_as_nothing() {
    let repo = Repo::with(&[("one.yaml", &application("one", "one")), ("one/a.yaml", &config_map("a", "1"))]);
    repo.git_init();
    git(&repo, &["checkout", "-q", "-b", "change"]);
    let away = application("away", "x").replace(URL, "https://charts.example.invalid");
    repo.write(
        "away.yaml",
        away.replace("path: x", "chart: x").replace("targetRevision: HEAD", "targetRevision: 1.0.0"),
    );
    let clusters = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all, namespace: argocd}\nspec:\n  generators:\n  - clusters: {selector: {matchLabels: {env: prod}}}\n  template:\n    metadata: {name: '{{name}}'}\n    spec: {project: default, source: {repoURL: r, path: p}, destination: {server: '{{server}}'}}\n";
    repo.write("set.yaml", clusters);
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "change"]);
    git(&repo, &["rm", "-q", "one.yaml"]);
    git(&repo, &["commit", "-q", "-m", "removed"]);
    let run = repo.run(&["diff", "main..HEAD", "--repo", "repo", "--offline", "-o", "markdown"]);
    run.expect(
        1,
        &[
            "### 2 of 2 Applications and 1 ApplicationSet differ in `main..HEAD`",
            "| argocd/one | removed | 0 | 0 | 2 |",
            "| argocd/away | added | 1+? | 0 | 0 |",
            "| ApplicationSet argocd/all | added | 1+? | 0 | 0 |",
        ],
    );
}

#[test]
fn an_application_whose_objects_are_out_of_reach_still_tells_its_own_change() {
    let app = |version: &str| {
        application("web", "web")
            .replace("path: web", "chart: web")
            .replace("targetRevision: HEAD", &format!("targetRevision: {version}"))
            .replace(URL, "https://charts.example.org")
    };
    let repo = Repo::with(&[
        ("web.yaml", &app("1.0.0")),
        ("other.yaml", &app("1.0.0").replace("name: web", "name: other")),
    ]);
    repo.git_init();
    repo.write("web.yaml", app("2.0.0"));
    let run = repo.run(&["diff", "HEAD", "--repo", "repo", "--offline"]);
    run.expect(
        0,
        &[
            "=== argocd/web (changed, its objects unknown) ===",
            "-    targetRevision: 1.0.0",
            "+    targetRevision: 2.0.0",
            "1 of 1 Applications differ\n1 more cannot be compared",
            "fails to render both before and after",
            "argocd/other",
        ],
    );
}

#[test]
fn the_time_of_day_is_no_difference() {
    let repo = Repo::with(&[
        ("web.yaml", &application("web", "web")),
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("web/templates/a.yaml", &config_map("a", "'{{ now.UnixNano }}'")),
    ]);
    repo.git_init();
    repo.run(&["diff", "HEAD", "--repo", "repo"]).expect(0, &["0 of 1 Applications differ"]);
}

#[test]
fn environments_with_applications_of_one_name_are_compared_each_by_itself() {
    let root = |of: &str| application("root", &format!("clusters/{of}/apps"));
    let child = |of: &str| application("web", &format!("web/{of}"));
    let mut files = Vec::new();
    for of in ["dev", "prod"] {
        files.push((format!("clusters/{of}/root.yaml"), root(of)));
        files.push((format!("clusters/{of}/apps/web.yaml"), child(of)));
        files.push((format!("web/{of}/a.yaml"), config_map("a", of)));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let repo = Repo::with(&files[..3]);
    repo.git_init();
    // An environment that comes is told, though the other has Applications of the same names.
    for (path, text) in &files[3..] {
        repo.write(path, text);
    }
    let run = repo.run(&["diff", "HEAD", "--repo", "repo"]);
    run.expect(
        0,
        &[
            "=== argocd/root in clusters/prod (added) ===",
            "=== argocd/web in clusters/prod (added) ===",
            "2 of 4 Applications differ",
        ],
    );
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "prod"]);
    repo.write("web/prod/a.yaml", config_map("a", "changed"));
    let run = repo.run(&["diff", "HEAD", "--repo", "repo"]);
    run.expect(
        0,
        &["=== argocd/web in clusters/prod (changed) ===", "+  key: changed", "1 of 4 Applications differ"],
    );
    assert!(!run.text().contains("clusters/dev"), "{}", run.text());
}

/// What a change does that no Application reads: a chart that nothing runs, a file that nothing reads, a set
/// that yields nothing.
#[test]
fn what_no_application_reaches_is_compared_as_it_is() {
    let set = |label: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: everywhere, namespace: argocd}}\nspec:\n  generators: [{{clusters: {{selector: {{matchLabels: {{env: {label}}}}}}}}}]\n  template:\n    metadata: {{name: 'x-{{{{name}}}}'}}\n    spec: {{project: default, source: {{repoURL: {URL}, path: web}}, destination: {{name: '{{{{name}}}}', namespace: web}}}}\n"
        )
    };
    let repo = Repo::with(&[
        ("app.yaml", &application("one", "one")),
        ("one/a.yaml", &config_map("a", "1")),
        ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
        ("chart/values.yaml", "key: old\n"),
        ("chart/templates/map.yaml", &config_map("map", "{{ .Values.key }}")),
        ("lonely/values-eu.yaml", "key: old\n"),
        ("set.yaml", &set("prod")),
    ]);
    repo.git_init();
    repo.run(&["diff", "HEAD", "--repo", "repo"]).expect(0, &["0 of 1 Applications differ"]);
    repo.write("chart/values.yaml", "key: new\n");
    repo.write("lonely/values-eu.yaml", "key: new\n");
    repo.write("set.yaml", set("test"));
    let run = repo.run(&["diff", "HEAD", "--repo", "repo"]);
    let told = [
        "=== chart chart (changed) ===",
        "-  key: old\n+  key: new",
        "=== ApplicationSet argocd/everywhere (changed, its objects unknown) ===",
        "0 of 1 Applications and 1 ApplicationSet and 1 chart or kustomization that no Application reaches differ",
        "1 changed file that nothing here reads:\n  lonely/values-eu.yaml",
    ];
    run.expect(0, &told);
    let run = repo.run(&["diff", "HEAD", "--repo", "repo", "-o", "markdown"]);
    run.expect(0, &["| chart chart | changed | 0 | 1 | 0 |", "lonely/values-eu.yaml"]);
}

/// Another version of what is out of reach is out of reach for the same reason.
#[test]
fn versions_in_reasons_are_no_difference() {
    let kustomization = |version: &str| {
        format!(
            "helmCharts:\n- {{name: far, repo: 'https://charts.example.invalid', version: {version}, releaseName: far}}\n"
        )
    };
    let repo = Repo::with(&[
        ("app.yaml", &application("one", "one")),
        ("one/kustomization.yaml", &kustomization("1.0.0")),
    ]);
    repo.git_init();
    repo.write("one/kustomization.yaml", kustomization("1.1.0"));
    let run = repo.run(&["diff", "HEAD", "--repo", "repo", "--offline"]);
    run.expect(0, &["0 of 0 Applications differ\n1 more cannot be compared"]);
}
