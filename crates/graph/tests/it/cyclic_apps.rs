//! What a survey makes of Applications that lead back to themselves, and of sets that are reached twice.

use std::sync::Arc;

use tiphys_graph::{Input, Survey};
use tiphys_vfs::MemTree;

fn application(name: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  project: default\n  source: {{repoURL: 'https://git.example.com/x', path: {path}}}\n  destination: {{server: 'https://kubernetes.default.svc', namespace: {name}}}\n"
    )
}

fn names(extra: &[(&str, String)]) -> Vec<String> {
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let mut files = vec![
        ("argocd/Chart.yaml", chart("argocd")),
        ("argocd/templates/root.yaml", application("{{ .Values.root }}", "apps")),
        ("argocd/values.yaml", "root: root\n".to_owned()),
        ("apps/Chart.yaml", chart("apps")),
        ("apps/templates/argocd.yaml", application("argocd", "{{ .Values.folder }}")),
        ("apps/templates/web.yaml", application("web", "{{ .Values.web }}")),
        ("apps/values.yaml", "folder: argocd\nweb: web\n".to_owned()),
        ("web/web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n".to_owned()),
    ];
    files.extend_from_slice(extra);
    let tree = MemTree::from_files(files.iter().map(|(path, text)| (*path, text.as_str())));
    let is_given = |url: &str| url.contains("git.example.com");
    let survey = Survey::read(&Input { is_given: &is_given, ..Input::alone(Arc::new(tree)) });
    let mut names: Vec<String> = survey.apps.iter().map(|app| app.name().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_chart_that_an_application_renders_may_declare_the_root_of_it() {
    assert_eq!(names(&[]), ["argocd", "root", "web"]);
}

#[test]
fn such_a_circle_is_seen_beside_other_roots() {
    let other = ("other/other.yaml", application("other", "web"));
    assert_eq!(names(&[other]), ["argocd", "other", "root", "web"]);
}

#[test]
fn a_circle_of_files_is_seen_beside_other_roots() {
    let kustomization = |file: &str| format!("resources: [{file}]\n");
    let files = [
        // Somebody installs Argo CD by hand, and with it the Application that has an Application of Argo CD.
        ("install/kustomization.yaml", kustomization("platform.yaml")),
        ("install/platform.yaml", application("platform", "platform")),
        ("platform/kustomization.yaml", kustomization("argocd.yaml")),
        ("platform/argocd.yaml", application("argocd-itself", "install")),
        ("other/other.yaml", application("other", "web")),
    ];
    assert_eq!(names(&files), ["argocd", "argocd-itself", "other", "platform", "root", "web"]);
}

fn set(name: &str, folder: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  generators:\n  - git: {{repoURL: 'https://git.example.com/x', revision: HEAD, directories: [{{path: '{folder}/*'}}]}}\n  template:\n    metadata: {{name: '{{{{path.basename}}}}'}}\n    spec:\n      project: default\n      source: {{repoURL: 'https://git.example.com/x', path: '{{{{path}}}}'}}\n      destination: {{server: 'https://kubernetes.default.svc'}}\n"
    )
}

#[test]
fn an_application_and_the_set_that_it_renders_may_have_one_name() {
    let files = [
        ("roots/shop.yaml", application("shop", "shop")),
        ("shop/kustomization.yaml", "resources: [set.yaml]\n".to_owned()),
        ("shop/set.yaml", set("shop", "shop")),
        ("shop/cart/cart.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cart}\n".to_owned()),
    ];
    assert_eq!(names(&files), ["argocd", "cart", "root", "shop", "web"]);
}

#[test]
fn a_set_that_leads_back_to_itself_yields_once() {
    let files = [
        ("shop/install/root.yaml", application("shop-root", "sets")),
        ("sets/shop.yaml", set("shop", "shop")),
        ("shop/cart/cart.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cart}\n".to_owned()),
    ];
    assert_eq!(names(&files), ["argocd", "cart", "install", "root", "shop-root", "web"]);
}

#[test]
fn names_that_do_not_tell_clusters_apart_are_for_one() {
    let clusters = "  generators:\n  - matrix:\n      generators:\n      - clusters: {}\n      - git:";
    let of_clusters = |name: &str| {
        set("shop", "shop").replace("  generators:\n  - git:", clusters).replace("{path.basename}", name)
    };
    let cart =
        ("shop/cart/cart.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cart}\n".to_owned());
    let alike = [("sets/shop.yaml", of_clusters("{path.basename}")), cart.clone()];
    assert_eq!(names(&alike), ["argocd", "cart", "root", "web"]);
    let apart = [("sets/shop.yaml", of_clusters("{name}}-{{path.basename}")), cart];
    assert_eq!(names(&apart), ["any-cluster-cart", "argocd", "in-cluster-cart", "root", "web"]);
}
