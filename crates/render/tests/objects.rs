//! What becomes of the objects of a source, whatever tool made them.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use tiphys_model::{Application, Tracking, names};
use tiphys_render::{Context, RenderError, SourceTree, Sources, render};
use tiphys_value::{ObjectExt as _, RenderedObject, Value, json};
use tiphys_vfs::MemTree;

/// The only repository.
struct Repository(Arc<MemTree>);

impl Sources for Repository {
    fn repository(&self, _url: &str, _revision: &str) -> Result<SourceTree, RenderError> {
        Ok(SourceTree { tree: self.0.clone(), revision: "1".into() })
    }

    fn chart(&self, _: &str, chart: &str, _: &str) -> Result<SourceTree, RenderError> {
        Err(RenderError::new(format!("no chart {chart}")))
    }
}

/// The objects of a source of these files, whose other fields are given.
fn objects_of<const N: usize>(files: [(&str, &str); N], source: &Value) -> Vec<RenderedObject> {
    objects_in("argocd", files, source)
}

/// The same for an Application in a namespace.
fn objects_in<const N: usize>(
    namespace: &str,
    files: [(&str, &str); N],
    source: &Value,
) -> Vec<RenderedObject> {
    let mut source = source.clone();
    source["repoURL"] = "https://git.example.com/acme/shop".into();
    let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": namespace},
        "spec": {"project": "default", "source": source, "destination": {"name": "in-cluster", "namespace": "shop"}}});
    let context = Context {
        sources: &Repository(Arc::new(MemTree::from_files(files))),
        kube_version: "v1.36.1",
        api_versions: &[],
        tracking: &Tracking::default(),
        engine_namespace: "argocd",
        is_namespaced: &|_| None,
        origins: false,
        mock_secrets: false,
    };
    render(&Application::from_value(&app).unwrap(), &context).unwrap().objects
}

fn names_of(objects: &[RenderedObject]) -> Vec<&str> {
    objects.iter().map(|object| object.value.name()).collect()
}

#[test]
fn definitions_bear_no_mark_for_with_it_they_would_be_pruned() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Thing}}\n";
    let namesake = "apiVersion: example.com/v1\nkind: CustomResourceDefinition\nmetadata: {name: namesake}\n";
    let objects = objects_of([("a.yaml", definition), ("b.yaml", namesake)], &json!({"path": "."}));
    let marks: Vec<bool> =
        objects.iter().map(|object| object.value.annotation(names::TRACKING_ID).is_some()).collect();
    assert_eq!((names_of(&objects), marks), (vec!["things.example.com", "namesake"], vec![false, true]));
}

#[test]
fn a_folder_is_read_entry_by_entry_in_the_order_of_names() {
    let file = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let (one, two, three) = (file("folder"), file("folder-2"), file("file"));
    let files = [("app/a-2/x.yaml", two.as_str()), ("app/a.yaml", &three), ("app/a/x.yaml", &one)];
    let objects = objects_of(files, &json!({"path": "app", "directory": {"recurse": true}}));
    assert_eq!(names_of(&objects), ["folder", "folder-2", "file"]);
}

#[test]
fn what_has_items_is_a_list_whatever_its_kind() {
    let item = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let list = json!({"apiVersion": "v1", "kind": "Bundle", "items": [item("one"), item("two")]}).to_string();
    let none = json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": null}).to_string();
    let objects = objects_of([("a.json", &list), ("b.json", &none)], &json!({"path": "."}));
    assert_eq!(names_of(&objects), ["one", "two"]);
}

#[test]
fn a_text_at_the_end_of_a_template_keeps_the_line_break_that_helm_prints() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n    last line";
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\nspec:\n  text: |\n    last line";
    let chart = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
    let files = [("Chart.yaml", chart), ("templates/a.yaml", template), ("crds/b.yaml", crd)];
    let objects = objects_of(files, &json!({"path": "."}));
    let texts: Vec<&Value> = objects
        .iter()
        .filter_map(|object| object.value.pointer("/data/text").or(object.value.pointer("/spec/text")))
        .collect();
    assert_eq!(texts, ["last line\n", "last line\n"]);
}

#[test]
fn outside_the_engine_s_namespace_the_name_of_an_application_has_its_namespace_before_it() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {name: '{{ .Values.name }}', more: '{{ .Values.more }}'}\n";
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        ("templates/a.yaml", template),
        (".argocd-source-team_shop.yaml", "helm: {values: 'more: own'}\n"),
        (".argocd-source-shop.yaml", "helm: {values: 'more: of another'}\n"),
    ];
    let source =
        json!({"path": ".", "helm": {"parameters": [{"name": "name", "value": "$ARGOCD_APP_NAME"}]}});
    let objects = objects_in("team", files, &source);
    assert_eq!(objects[0].value["data"], json!({"name": "team_shop", "more": "own"}));
    assert_eq!(objects[0].value.name(), "shop", "a release's name may have no underscore");
}

#[test]
fn parameters_that_are_forced_to_be_texts_win() {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {name: '{{ kindOf .Values.name }}'}\n";
    let files =
        [("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"), ("templates/a.yaml", template)];
    let parameters =
        json!([{"name": "name", "value": "1", "forceString": true}, {"name": "name", "value": "2"}]);
    let objects = objects_of(files, &json!({"path": ".", "helm": {"parameters": parameters}}));
    assert_eq!(objects[0].value["data"]["name"], "string");
}
