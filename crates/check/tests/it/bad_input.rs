//! Any file at all: a check ends, without a panic, and its output can be written.

use std::sync::Arc;

use proptest::prelude::*;
use tiphys_check::{
    Config, Context, Options, Severity, judge,
    output::{self, ReportContents, View},
    rules,
};
use tiphys_vfs::MemTree;

use crate::common;

/// A small repository with one file of each sort that something reads.
const FILES: &[(&str, &str)] = &[
    (
        "apps/root.yaml",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: root\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/x', path: apps}\n  destination: {server: 'https://kubernetes.default.svc', namespace: argocd}\n",
    ),
    (
        "apps/set.yaml",
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\nspec:\n  generators:\n    - git: {repoURL: 'https://git.example.com/x', directories: [{path: 'services/*'}]}\n  template:\n    metadata: {name: '{{path.basename}}'}\n    spec:\n      project: default\n      source: {repoURL: 'https://git.example.com/x', path: '{{path}}'}\n      destination: {name: in-cluster, namespace: '{{path.basename}}'}\n",
    ),
    (
        "services/web/kustomization.yaml",
        "resources: [deployment.yaml, policy.yaml]\nimages: [{name: web, newTag: '2'}]\nconfigMapGenerator: [{name: web, literals: [a=b]}]\n",
    ),
    (
        "services/web/deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers: [{name: web, image: web, envFrom: [{configMapRef: {name: web}}]}]\n",
    ),
    ("services/api/Chart.yaml", "apiVersion: v2\nname: api\nversion: 1.0.0\n"),
    ("services/api/values.yaml", "replicas: 2\nimage: {repository: api, tag: v1}\n"),
    (
        "services/api/templates/all.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\nspec: {ports: [{port: {{ .Values.replicas }}}]}\n",
    ),
    (
        ".github/workflows/ci.yaml",
        "on: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          npm ci\n",
    ),
    (
        "playbook.yml",
        "- hosts: all\n  tasks:\n    - import_tasks: tasks.yml\n    - shell: kubectl apply -f x.yaml\n",
    ),
    ("tasks.yml", "- name: x\n  command: helm upgrade --install x y\n"),
    (
        "main.tf",
        "resource \"aws_security_group\" \"a\" {\n  ingress {\n    from_port = 1\n    security_groups = [aws_security_group.b.id]\n  }\n}\n",
    ),
    ("Dockerfile", "FROM python:3\nWORKDIR /app\nCOPY . .\nCMD [\"uvicorn\", \"main:app\"]\n"),
    (
        "services/web/policy.yaml",
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\nspec:\n  podSelector: {}\n  policyTypes: [Egress]\n  egress:\n    - to: [{ipBlock: {cidr: 10.96.0.1/32}}]\n      ports: [{port: 443, endPort: 500}]\n",
    ),
    (".gitlab-ci.yml", "build:\n  needs: [x]\n  script: make\n"),
    ("package.json", "{\"scripts\": {\"build\": \"tsc\"}, \"devDependencies\": {\"eslint\": \"^9\"}}\n"),
];

/// Runs everything over files; the length of all output.
fn run(files: &[(String, Vec<u8>)]) -> usize {
    let mut tree = MemTree::default();
    for (path, bytes) in files {
        tree.insert(path, bytes.clone()).expect("the path is fine");
    }
    let survey = common::survey(Arc::new(tree));
    let config = Config::default();
    let options = Options::new(rules::ALL.to_vec(), &config, None);
    let checked = judge(&Context::new(&survey, Some(&survey)), &options);
    let sources = survey.files.source_map();
    let shown = ReportContents {
        checked: &checked,
        survey: &survey,
        sources: &sources,
        threshold: Severity::Info,
        view: View::default(),
    };
    output::text(&shown, true).len()
        + output::json(&shown).to_string().len()
        + output::sarif(&shown).to_string().len()
        + output::github(&shown).len()
        + output::markdown(&shown).len()
        + output::junit(&shown).len()
        + output::html(&shown).len()
        + output::brief(&shown).len()
        + output::applications(&shown).len()
}

fn all() -> Vec<(String, Vec<u8>)> {
    FILES.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

#[test]
fn an_empty_repository_is_no_fault() {
    assert!(run(&[]) > 0);
}

/// The messages of all findings over files.
fn messages(files: &[(&str, &[u8])]) -> Vec<String> {
    let mut tree = MemTree::default();
    for (path, bytes) in files {
        tree.insert(path, bytes.to_vec()).expect("the path is fine");
    }
    let survey = common::survey(Arc::new(tree));
    let checked = tiphys_check::check(&Context::new(&survey, None), rules::ALL);
    checked.findings.into_iter().map(|finding| finding.diagnostic.message).collect()
}

#[test]
fn what_is_no_utf8_is_named() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin = [text.as_bytes(), b"data: {a: \xe9}\n"].concat();
    let found = messages(&[
        ("utf16.yaml", utf16.as_slice()),
        ("latin.yaml", &latin),
        ("picture.yaml", b"\0\x01\xff"),
    ]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|message| message.contains("this is no UTF-8 text")), "{found:?}");
}

#[test]
fn what_is_not_checked_out_is_named_and_is_no_error() {
    let app = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec:\n  project: default\n  source: {repoURL: 'https://git.example.com/x', path: vendor/web}\n  destination: {server: 'https://kubernetes.default.svc', namespace: web}\n";
    let modules = "[submodule \"web\"]\n\tpath = vendor/web\n\turl = https://git.example.com/web\n";
    let found = messages(&[("apps/web.yaml", app.as_bytes()), (".gitmodules", modules.as_bytes())]);
    assert_eq!(found, ["Application web was not seen: its submodule vendor/web is not checked out"]);
    let files: [(&str, &[u8]); 2] =
        [("apps/web.yaml", app.as_bytes()), (".git/config", b"[core]\n\tsparseCheckout = true\n")];
    let mut tree = MemTree::default();
    for (path, bytes) in files {
        tree.insert(path, bytes.to_vec()).expect("the path is fine");
    }
    let survey = common::survey(Arc::new(tree));
    let checked = tiphys_check::check(&Context::new(&survey, None), rules::ALL);
    assert!(!checked.findings.is_empty());
    assert!(checked.findings.iter().all(|finding| finding.diagnostic.severity == Severity::Info));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_file(which in 0..FILES.len(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut files = all();
        files[which].1 = bytes;
        prop_assert!(run(&files) > 0);
    }

    #[test]
    fn any_part_of_any_file_replaced(
        which in 0..FILES.len(),
        start in 0.0..1.0f64,
        length in 0usize..40,
        text in "[\\PC\n]{0,12}",
    ) {
        let mut files = all();
        let bytes = &mut files[which].1;
        let start = (start * bytes.len() as f64) as usize;
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, text.into_bytes());
        prop_assert!(run(&files) > 0);
    }
}
