//! How bad a finding is where nobody applies the file that it is about.

use std::sync::Arc;

use tiphys_check::{Context, Severity, check, rules};
use tiphys_vfs::MemTree;

use crate::common;

const WEB: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
const NAMELESS: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: refused}\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/x'}\n  destination: {name: in-cluster, namespace: web}\n";

/// The severities of what is found in a file that lies beside another, in a repository that has more.
fn severities(file: &str, beside: &str) -> Vec<Severity> {
    let tree = MemTree::from_files([("web/web.yaml", WEB), (file, NAMELESS), (beside, "kind: Test\n")]);
    let survey = common::survey(Arc::new(tree));
    let findings = check(&Context::new(&survey, None), rules::ALL).findings;
    let about = findings.iter().map(|finding| &finding.diagnostic).filter(|diagnostic| {
        diagnostic.primary.as_ref().is_some_and(|label| label.span.file.as_ref() == file)
    });
    about.map(|diagnostic| diagnostic.severity).collect()
}

#[test]
fn what_a_set_yields_is_put_away_with_the_set() {
    const SET: &str = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: teams, namespace: argocd}\nspec:\n  generators: [{list: {elements: [{name: a}]}}]\n  template:\n    metadata: {name: '{{name}}'}\n    spec:\n      project: default\n      source: {repoURL: 'https://git.example.com/x', path: 'none/{{name}}'}\n      destination: {name: in-cluster, namespace: web}\n";
    let severities = |file: &str| -> Vec<Severity> {
        let tree =
            MemTree::from_files([("web/web.yaml", WEB), (file, SET), ("apps/readme.yaml", "kind: Test\n")]);
        let survey = common::survey(Arc::new(tree));
        let findings = check(&Context::new(&survey, None), rules::ALL).findings;
        findings.iter().filter(|it| it.app.is_some()).map(|it| it.diagnostic.severity).collect()
    };
    let used = severities("apps/teams.yaml");
    assert!(used.contains(&Severity::Error), "{used:?}");
    let aside = severities("archive/teams.yaml");
    assert!(aside.iter().all(|severity| *severity == Severity::Info), "{aside:?}");
}

#[test]
fn what_a_test_of_policies_works_on_is_information() {
    assert_eq!(severities("policies/app.yaml", "policies/readme.yaml"), [Severity::Error]);
    for tool in ["chainsaw-test.yaml", "kyverno-test.yaml", "kuttl-test.yaml"] {
        assert_eq!(severities("policies/test/app.yaml", &format!("policies/test/{tool}")), [Severity::Info]);
    }
    assert_eq!(severities("hack/invalid-examples/app.yaml", "hack/readme.yaml"), [Severity::Info]);
}

#[test]
fn values_that_each_installation_fills_in_are_no_error() {
    const APP: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/x', path: web, helm: {valueFiles: [site.yaml]}}\n  destination: {name: in-cluster, namespace: web}\n";
    const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
    let severity = |ignored: &str, form: &str| {
        let tree = MemTree::from_files([
            ("apps/web.yaml", APP),
            ("web/Chart.yaml", CHART),
            ("web/templates/web.yaml", WEB),
            (".gitignore", ignored),
            (form, "size: 1\n"),
        ]);
        let survey = common::survey(Arc::new(tree));
        let findings = check(&Context::new(&survey, None), rules::ALL).findings;
        findings.iter().filter(|it| it.app.is_some()).map(|it| it.diagnostic.severity).max()
    };
    assert_eq!(severity("site.yaml\n", "web/site.yaml.example"), Some(Severity::Warning));
    // What nobody is told to fill in is missing.
    assert_eq!(severity("site.yaml\n", "web/other.yaml"), Some(Severity::Error));
    assert_eq!(severity("other.yaml\n", "web/site.yaml.example"), Some(Severity::Error));
}

#[test]
fn what_the_tests_of_a_program_read_is_information() {
    for file in ["src/test/resources/app.yaml", "web/golden/app.yaml"] {
        assert_eq!(severities(file, "policies/readme.yaml"), [Severity::Info], "{file}");
    }
}
