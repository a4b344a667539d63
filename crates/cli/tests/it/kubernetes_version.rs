//! Commands that are told for which Kubernetes something is meant.

use crate::common::{Repo, application};

const CHART: &str = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
const SHOWN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {minor: {{ .Capabilities.KubeVersion.Minor | quote }}}\n";
const OLD: &str = "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema\nmetadata: {name: old}\nspec: {priorityLevelConfiguration: {name: exempt}}\n";

fn run(repo: &Repo, args: &[&str]) -> (i32, String) {
    let output = repo.command(args).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap(), text)
}

#[test]
fn charts_are_rendered_for_it() {
    let repo = Repo::shop(&[("manifests/Chart.yaml", CHART), ("manifests/templates/a.yaml", SHOWN)]);
    let (code, text) =
        run(&repo, &["render", "app", "repo/root.yaml", "--offline", "--kubernetes-version", "1.31"]);
    assert!(code == 0 && text.contains("minor: \"31\""), "{code}: {text}");
    let (code, text) =
        run(&repo, &["render", "app", "repo/root.yaml", "--offline", "--kubernetes-version", "1.2"]);
    assert!(code == 2 && text.contains("choose one from"), "{code}: {text}");
}

#[test]
fn what_it_serves_is_not_told_of_as_removed() {
    let repo = Repo::with(&[("root.yaml", &application("shop", "manifests")), ("manifests/old.yaml", OLD)]);
    let check = ["check", "repo", "--offline", "--rule", "C2"];
    let (code, text) = run(&repo, &[&check[..], &["--kubernetes-version", "1.31"]].concat());
    assert_eq!(code, 0, "{text}");
    let (code, text) = run(&repo, &[&check[..], &["--kubernetes-version", "1.32"]].concat());
    assert!(code == 1 && text.contains("not served since Kubernetes 1.32"), "{code}: {text}");
}
