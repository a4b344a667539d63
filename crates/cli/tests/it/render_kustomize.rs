//! `tiphys render kustomize`: where a kustomization may stand, and what charts are told.

use crate::common::Repo;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";

#[test]
fn a_kustomization_may_stand_behind_an_address() {
    let repo = Repo::with(&[
        ("base/map.yaml", MAP),
        ("base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("over/kustomization.yaml", "namePrefix: eu-\nresources: [../base]\n"),
    ]);
    repo.git_init();
    let address = |folder: &str| format!("file://{}//{folder}", repo.path("").display());
    let run = repo.run(&["render", "kustomize", &address("over")]);
    run.expect(0, &[]);
    assert_eq!(run.stdout(), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: eu-settings\n");
    repo.run(&["render", "kustomize", &address("gone")]).expect(1, &["gone"]);
    repo.run(&["render", "kustomize", &format!("{}?ref=v9", address("over"))]).expect(1, &["\"v9\""]);
}

#[test]
fn a_kustomization_stays_in_its_repository() {
    let out = |repo: &Repo| repo.path("").parent().map(|place| place.join("outside")).unwrap();
    let repo = Repo::with(&[
        ("base/map.yaml", MAP),
        ("base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("apps/over/kustomization.yaml", "resources: [../../base]\n"),
        ("apps/above/kustomization.yaml", "resources: [../../../outside]\n"),
        ("apps/linked/kustomization.yaml", "resources: [../../link]\n"),
    ]);
    std::fs::create_dir(out(&repo)).unwrap();
    std::fs::write(out(&repo).join("map.yaml"), MAP.replace("settings", "of-another")).unwrap();
    std::fs::write(out(&repo).join("kustomization.yaml"), "resources: [map.yaml]\n").unwrap();
    std::os::unix::fs::symlink("../outside", repo.path("link")).unwrap();
    repo.git_init();
    repo.run(&["render", "kustomize", "repo/apps/over"]).expect(0, &["name: settings"]);
    for folder in ["repo/apps/above", "repo/apps/linked"] {
        let run = repo.run(&["render", "kustomize", folder]);
        run.expect(1, &["is not in or below"]);
        assert!(!run.stdout().contains("of-another"));
        repo.run(&["render", "kustomize", "--load-restrictor=none", folder]).expect(0, &["name: of-another"]);
    }
    // Without a repository around it, the bases lie where the command runs.
    let beside = out(&repo).join("over");
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("kustomization.yaml"), "resources: [../../repo/base]\n").unwrap();
    let run = repo.run(&["render", "kustomize", beside.to_str().unwrap()]);
    run.expect(0, &["name: settings"]);
}

#[test]
fn charts_see_the_versions_of_the_flags() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {version: {{ .Capabilities.KubeVersion }}, has: {{ .Capabilities.APIVersions.Has \"x/v1\" | quote }}}\n";
    let repo = Repo::with(&[
        (
            "kustomization.yaml",
            "helmGlobals: {chartHome: charts}\nhelmCharts: [{name: web, releaseName: r}]\n",
        ),
        ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("charts/web/values.yaml", ""),
        ("charts/web/templates/map.yaml", template),
    ]);
    let helm = ["render", "kustomize", "repo", "--enable-helm", "--helm-command=helm"];
    repo.run(&[helm.as_slice(), &["--helm-kube-version=1.27.3", "--helm-api-versions=y/v1,x/v1"]].concat())
        .expect(0, &["version: v1.27.3", "has: \"true\""]);
    repo.run(&helm).expect(0, &["has: \"false\""]);
    repo.run(&[helm.as_slice(), &["--mount=x"]].concat()).expect(1, &["--mount is not supported"]);
}

#[test]
fn flags_that_kustomize_has_given_up_still_count() {
    let repo = Repo::with(&[
        ("map.yaml", MAP),
        ("space.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"),
        ("kustomization.yaml", "resources: [map.yaml, space.yaml]\n"),
    ]);
    let kinds = |flags: &[&str]| {
        let run = repo.run(&[&["render", "kustomize", "repo", "-o", ""], flags].concat());
        run.expect(0, &[]);
        let text = run.stdout();
        text.lines().filter_map(|line| line.strip_prefix("kind: ").map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&[]), ["Namespace", "ConfigMap"]);
    assert_eq!(kinds(&["--reorder", "legacy"]), ["Namespace", "ConfigMap"]);
    // Of what is given twice the last counts.
    assert_eq!(kinds(&["--reorder=legacy", "--reorder", "none"]), ["ConfigMap", "Namespace"]);
    let run = repo.run(&["render", "kustomize", "repo", "--enable-managedby-label"]);
    run.expect(
        0,
        &["app.kubernetes.io/managed-by: kustomize-v5", "Flag --enable-managedby-label has been deprecated"],
    );
}
