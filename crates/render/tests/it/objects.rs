//! What becomes of the objects of a source, whatever tool made them.

use std::sync::{Arc, Mutex};

use tiphys_helm::Chart;
use tiphys_model::{Application, Tracking, names};
use tiphys_render::{Context, RenderError, SourceTree, Sources, render};
use tiphys_value::{ObjectExt as _, RenderedObject, Value, json};
use tiphys_vfs::{FileTree, MemTree};

/// The only repository.
struct Repository(Arc<MemTree>);

impl Sources for Repository {
    fn repository(&self, _url: &str, _revision: &str) -> Result<SourceTree, RenderError> {
        Ok(SourceTree { tree: self.0.clone(), revision: "1".into() })
    }

    fn chart(&self, _: &str, chart: &str, _: &str, _: bool) -> Result<SourceTree, RenderError> {
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
    render_with(&Repository(Arc::new(MemTree::from_files(files))), namespace, source).unwrap()
}

/// The same of any sources.
fn render_with(
    sources: &dyn Sources,
    namespace: &str,
    source: &Value,
) -> Result<Vec<RenderedObject>, RenderError> {
    render_to(sources, namespace, source, &json!({"name": "in-cluster", "namespace": "shop"}))
}

/// The same for any destination.
fn render_to(
    sources: &dyn Sources,
    namespace: &str,
    source: &Value,
    destination: &Value,
) -> Result<Vec<RenderedObject>, RenderError> {
    let mut source = source.clone();
    source["repoURL"] = "https://git.example.com/acme/shop".into();
    let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": namespace},
        "spec": {"project": "default", "source": source, "destination": destination}});
    let context = Context {
        sources,
        kube_version: "v1.36.1",
        api_versions: &[],
        tracking: &Tracking::default(),
        engine_namespace: "argocd",
        is_namespaced: &|_| None,
        origins: false,
        mock_secrets: false,
        now: None,
    };
    Ok(render(&Application::from_value(&app).unwrap(), &context)?.objects)
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
fn a_release_without_a_namespace_is_in_the_one_that_helm_takes() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {namespace: '{{ .Release.Namespace }}'}\n";
    let tree = MemTree::from_files([
        ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        ("templates/a.yaml", template),
    ]);
    let repository = Repository(Arc::new(tree));
    for (destination, helm, want) in [
        (json!({"name": "in-cluster"}), json!({}), "default"),
        (json!({"name": "in-cluster", "namespace": ""}), json!({}), "default"),
        (json!({"name": "in-cluster", "namespace": "shop"}), json!({}), "shop"),
        (json!({"name": "in-cluster"}), json!({"namespace": "own"}), "own"),
    ] {
        let source = json!({"path": ".", "helm": helm});
        let objects = render_to(&repository, "argocd", &source, &destination).unwrap();
        assert_eq!(objects[0].value["data"]["namespace"], want);
    }
}

#[test]
fn only_versions_of_helm_that_are_supported_render() {
    let files = [("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n")];
    let repository = Repository(Arc::new(MemTree::from_files(files)));
    let rendered = |version: &str| {
        render_with(&repository, "argocd", &json!({"path": ".", "helm": {"version": version}}))
    };
    assert!(rendered("v3").is_ok() && rendered("v4").is_ok());
    assert_eq!(rendered("v2").unwrap_err().to_string(), "helm version 'v2' is not supported");
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

/// A repository of charts, which notes whether it may pass its credentials on.
#[derive(Default)]
struct Passing(Mutex<Vec<(&'static str, bool)>>);

impl Sources for Passing {
    fn repository(&self, _url: &str, _revision: &str) -> Result<SourceTree, RenderError> {
        Err(RenderError::new("there are charts only"))
    }

    fn chart(&self, _: &str, _: &str, _: &str, pass_credentials: bool) -> Result<SourceTree, RenderError> {
        self.0.lock().unwrap().push(("chart", pass_credentials));
        let files = [("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")];
        Ok(SourceTree { tree: Arc::new(MemTree::from_files(files)), revision: "1.0.0".into() })
    }

    fn complete(
        &self,
        _chart: &mut Chart,
        _tree: &dyn FileTree,
        pass_credentials: bool,
    ) -> Result<(), RenderError> {
        self.0.lock().unwrap().push(("dependencies", pass_credentials));
        Ok(())
    }
}

#[test]
fn credentials_are_passed_on_only_for_a_source_that_says_so() {
    for (helm, passes) in [(json!({}), false), (json!({"passCredentials": true}), true)] {
        let sources = Passing::default();
        render_with(&sources, "argocd", &json!({"chart": "web", "targetRevision": "1.0.0", "helm": helm}))
            .unwrap();
        assert_eq!(*sources.0.lock().unwrap(), [("chart", passes), ("dependencies", passes)]);
    }
}

#[test]
fn files_of_any_name_are_read_without_the_filter_of_extensions() {
    let file = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let (plain, odd) = (file("plain"), file("odd"));
    let files = [("app/a.yaml", plain.as_str()), ("app/b.manifest", &odd)];
    assert_eq!(names_of(&objects_of(files, &json!({"path": "app"}))), ["plain"]);
    let all = json!({"path": "app", "directory": {"disableExtensionFilter": true}});
    assert_eq!(names_of(&objects_of(files, &all)), ["plain", "odd"]);
}

/// A chart whose schema wants a number, with a test.
const STRICT: [(&str, &str); 5] = [
    ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
    ("web/values.yaml", "size: many\n"),
    ("web/values.schema.json", r#"{"properties": {"size": {"type": "number"}}}"#),
    ("web/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"),
    (
        "web/templates/test.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: test, annotations: {helm.sh/hook: test}}\n",
    ),
];

#[test]
fn values_are_held_against_the_schema_of_a_chart_unless_that_is_skipped() {
    let sources = Repository(Arc::new(MemTree::from_files(STRICT)));
    let refused = render_with(&sources, "argocd", &json!({"path": "web"})).unwrap_err();
    assert!(refused.to_string().contains("size"), "{refused}");
    let skipped = json!({"path": "web", "helm": {"skipSchemaValidation": true}});
    assert!(names_of(&objects_of(STRICT, &skipped)).contains(&"plain"));
}

#[test]
fn tests_of_a_chart_are_rendered_unless_they_are_skipped() {
    let helm = |skip: bool| json!({"path": "web", "helm": {"skipSchemaValidation": true, "skipTests": skip}});
    assert_eq!(names_of(&objects_of(STRICT, &helm(false))), ["plain", "test"]);
    assert_eq!(names_of(&objects_of(STRICT, &helm(true))), ["plain"]);
}
