//! The chart `deploy/chart/tiphys`, rendered and checked by Tiphys itself. How it runs is in `controller.rs`.

use std::{collections::BTreeSet, fs, path::PathBuf};

use crate::common::{Repo, Run};

fn chart() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/tiphys")
}

fn render(repo: &Repo, values: &[&str]) -> Run {
    let chart = chart();
    let mut args = vec!["render", "helm", "tiphys", chart.to_str().unwrap(), "--namespace", "argocd"];
    args.extend(values);
    repo.run(&args)
}

/// What people may want of the chart, and a text that only this form has.
const FORMS: [(&str, &[&str], &str); 9] = [
    ("as it comes", &[], "kind: PodDisruptionBudget"),
    ("shadow", &["--set", "mode=shadow"], "- --shadow"),
    (
        "monitored",
        &["--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true"],
        "honorLabels: true",
    ),
    (
        "bounded",
        &[
            "--set-json",
            r#"rbac.rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]"#,
        ],
        "kind: RoleBinding",
    ),
    (
        "with an image by digest",
        &["--set", "image.digest=sha256:4f8c3d17a2b90e6d5c1f7a8e3b6d9204c5e8f1a7b3d6092e4c8f5a1b7d3e6092"],
        "tiphys@sha256:4f8c",
    ),
    ("in another namespace than the engine's", &["--set", "engineNamespace=gitops"], "--namespace=gitops"),
    (
        "with an account of others",
        &["--set", "serviceAccount.create=false,serviceAccount.name=mine,rbac.create=false"],
        "serviceAccountName: mine",
    ),
    (
        "behind a proxy",
        &["--set-json", r#"controller.env=[{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]"#],
        "name: HTTPS_PROXY",
    ),
    (
        "with bounded ways out",
        &["--set-json", r#"networkPolicy.egress=[{"ports": [{"port": 443}]}]"#],
        "- Egress",
    ),
];

#[test]
fn every_form_renders_and_check_finds_nothing_in_it() {
    for (name, values, text) in FORMS {
        let repo = Repo::with(&[]);
        let run = render(&repo, values);
        run.expect(0, &[text, "runAsNonRoot: true", "readOnlyRootFilesystem: true", "type: RuntimeDefault"]);
        repo.write("all.yaml", run.stdout());
        let found = repo.run(&["check", "repo", "--offline"]);
        assert_eq!(found.code(), Some(0), "{name}: {}", found.text());
        assert!(found.text().contains("nothing found"), "{name}: {}", found.text());
    }
}

#[test]
fn nothing_is_found_in_the_chart_itself() {
    let repo = Repo::with(&[]);
    repo.run(&["check", chart().to_str().unwrap(), "--offline"]).expect(0, &["nothing found"]);
}

#[test]
fn a_shadow_has_no_right_to_write_and_no_definitions() {
    let repo = Repo::with(&[]);
    let text = render(&repo, &["--set", "mode=shadow"]).stdout();
    assert!(!text.contains("CustomResourceDefinition") && !text.contains("kind: PodDisruptionBudget"));
    for document in text.split("\n---\n") {
        let object: tiphys_value::Value =
            tiphys_yaml::from_yaml(document.trim_start_matches("---\n")).unwrap();
        for rule in object["rules"].as_array().into_iter().flatten() {
            for verb in rule["verbs"].as_array().unwrap() {
                assert!(["get", "list", "watch"].contains(&verb.as_str().unwrap()), "{rule}");
            }
        }
        if object["kind"] == "Deployment" {
            assert_eq!(object["spec"]["replicas"], 1, "two shadows would tell everything twice");
        }
    }
}

#[test]
fn uninstalling_leaves_the_definitions() {
    let text = render(&Repo::with(&[]), &[]).stdout();
    let definitions = text.split("\n---\n").filter(|text| text.contains("kind: CustomResourceDefinition"));
    let definitions: Vec<&str> = definitions.collect();
    assert_eq!(definitions.len(), 3);
    assert!(definitions.iter().all(|text| text.contains("helm.sh/resource-policy: keep")));
}

#[test]
fn wrong_values_are_named() {
    let repo = Repo::with(&[]);
    render(&repo, &["--set", "mode=observe"]).expect(1, &["/mode"]);
    render(&repo, &["--set", "replicaCount=3"]).expect(1, &["replicaCount"]);
    render(&repo, &["--set", "replicas=0"]).expect(1, &["/replicas"]);
    render(&repo, &["--set", "image.digest=latest"]).expect(1, &["/image/digest"]);
    render(&repo, &["--set-json", r#"rbac.rules=[{"resources": ["pods"]}]"#]).expect(1, &["verbs"]);
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_there_are() {
    let documented = chart().join("../../../docs/metrics.md");
    let documented = fs::read_to_string(documented).unwrap();
    let documented: BTreeSet<&str> = documented.split('`').collect();
    for file in ["files/dashboard.json", "templates/prometheusrule.yaml"] {
        let text = fs::read_to_string(chart().join(file)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let asked: BTreeSet<&str> = words
            .filter(|word| ["argocd_", "tiphys_", "workqueue_"].iter().any(|start| word.starts_with(start)))
            .map(|word| word.trim_end_matches("_bucket"))
            .collect();
        assert!(asked.len() > 5, "{file}: {asked:?}");
        let unknown: Vec<_> = asked.difference(&documented).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    let dashboard = fs::read_to_string(chart().join("files/dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(!dashboard["panels"].as_array().unwrap().is_empty());
}
