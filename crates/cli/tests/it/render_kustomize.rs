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
