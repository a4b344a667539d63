//! The order of values files, as it shows in what is rendered.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_kustomize::{RemoteError, RemoteLoader, RepoUrl};
use tiphys_model::{Application, Tracking};
use tiphys_render::{Context, RenderError, SourceTree, Sources, render};
use tiphys_value::{Value, json};
use tiphys_vfs::{FileTree, MemTree};

const HERE: &str = "https://git.example.com/acme/shop";
const VALUES: &str = "https://git.example.com/acme/values";

/// Repositories by address.
struct Repositories(BTreeMap<&'static str, Arc<MemTree>>);

impl Sources for Repositories {
    fn repository(&self, url: &str, _revision: &str) -> Result<SourceTree, RenderError> {
        let tree = self.0.get(url).ok_or_else(|| RenderError::new(format!("no repository {url}")))?;
        Ok(SourceTree { tree: tree.clone(), revision: "1".into() })
    }

    fn chart(&self, _: &str, chart: &str, _: &str, _: bool) -> Result<SourceTree, RenderError> {
        Err(RenderError::new(format!("no chart {chart}")))
    }

    fn remote_loader(&self) -> Option<Arc<dyn RemoteLoader>> {
        Some(Arc::new(Addresses))
    }
}

/// One values file behind an address.
struct Addresses;

impl RemoteLoader for Addresses {
    fn repository(&self, url: &RepoUrl) -> Result<Arc<dyn FileTree>, RemoteError> {
        Err(RemoteError::Other(url.raw.clone()))
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, RemoteError> {
        match url {
            "https://example.com/far.yaml" => Ok(b"last: far\nall: {far: here}\n".to_vec()),
            _ => Err(RemoteError::Status { code: 404, text: "Not Found".to_owned() }),
        }
    }

    fn chart(&self, repository: &str, _: &str, _: &str) -> Result<Arc<dyn FileTree>, RemoteError> {
        Err(RemoteError::Other(repository.to_owned()))
    }
}

/// What the chart prints of `last`, which each values file sets to its own name, and of `all`, of which each
/// sets a part.
fn rendered(helm: &Value) -> Result<(String, String), RenderError> {
    let file = |name: &str| format!("last: {name}\nall: {{{name}: here}}\n");
    let (x, q, z) = (file("x"), file("q"), file("z"));
    let here = MemTree::from_files([
        ("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        (
            "chart/templates/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {last: '{{ tpl .Values.last . }}', all: '{{ keys .Values.all | sortAlpha | join \",\" }}'}\n",
        ),
        ("chart/a/x.yaml", x.as_str()),
        ("chart/a/q.yaml", q.as_str()),
        ("chart/a/z.yaml", z.as_str()),
        ("chart/a/deeper/w.yaml", "last: w\n"),
    ]);
    let foreign = file("foreign");
    let values = MemTree::from_files([("chart/a/x.yaml", foreign.as_str())]);
    let repositories = Repositories(BTreeMap::from([(HERE, Arc::new(here)), (VALUES, Arc::new(values))]));
    let app = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": "argocd"},
        "spec": {"project": "default", "destination": {"name": "in-cluster", "namespace": "shop"}, "sources": [
            {"repoURL": HERE, "path": "chart", "helm": helm}, {"repoURL": VALUES, "ref": "values"}]}});
    let tracking = Tracking::default();
    let result = render(
        &Application::from_value(&app).unwrap(),
        &Context {
            sources: &repositories,
            kube_version: "v1.30.2-eks-1552ad0",
            api_versions: &[],
            tracking: &tracking,
            engine_namespace: "argocd",
            is_namespaced: &|_| Some(true),
            origins: false,
            mock_secrets: false,
            now: None,
        },
    )?;
    let data = &result.objects[0].value["data"];
    Ok((data["last"].as_str().unwrap().to_owned(), data["all"].as_str().unwrap().to_owned()))
}

fn last(files: &Value) -> String {
    rendered(&json!({"valueFiles": files})).unwrap().0
}

#[test]
fn v18_a_file_that_is_named_keeps_its_place_before_a_pattern() {
    assert_eq!(last(&json!(["a/*.yaml"])), "z");
    assert_eq!(last(&json!(["a/z.yaml", "a/*.yaml"])), "x");
    assert_eq!(last(&json!(["a/*.yaml", "a/x.yaml"])), "x");
    assert_eq!(last(&json!(["a/q.yaml", "a/*.yaml", "a/x.yaml"])), "x");
    // Nothing is lost by it.
    assert_eq!(rendered(&json!({"valueFiles": ["a/z.yaml", "a/*.yaml"]})).unwrap().1, "q,x,z");
}

#[test]
fn braces_count_in_a_pattern_and_make_none_alone() {
    assert_eq!(last(&json!(["a/{x,q}*.yaml"])), "x");
    let alone = rendered(&json!({"valueFiles": ["a/{x,q}.yaml"]})).unwrap_err().to_string();
    assert!(alone.contains("value file a/{x,q}.yaml: "), "{alone}");
}

#[test]
fn a_file_of_the_same_path_in_another_repository_is_another_file() {
    let both = json!({"valueFiles": ["$values/chart/a/*.yaml", "a/x.yaml"]});
    assert_eq!(rendered(&both).unwrap(), ("x".to_owned(), "foreign,x".to_owned()));
}

#[test]
fn a_reference_is_no_variable_and_what_follows_it_may_hold_some() {
    let text = |files: Value| rendered(&json!({"valueFiles": files})).map_err(|error| error.to_string());
    assert_eq!(text(json!(["$values/$ARGOCD_APP_SOURCE_PATH/a/x.yaml"])).unwrap().0, "foreign");
    assert_eq!(text(json!(["/$ARGOCD_APP_SOURCE_PATH/a/x.yaml"])).unwrap().0, "x");
    let error = text(json!(["$valeus/chart/a/x.yaml"])).unwrap_err();
    assert!(error.contains("no source has the ref \"valeus\""), "{error}");
    let parameters = json!({"valueFiles": ["a/x.yaml"], "fileParameters": [{"name": "last", "path": "$values/chart/a/x.yaml"}]});
    assert!(rendered(&parameters).unwrap().0.contains("foreign"));
}

#[test]
fn a_file_behind_an_address_counts_where_it_is_named() {
    let far = "https://example.com/far.yaml";
    assert_eq!(rendered(&json!({"valueFiles": [far, "a/x.yaml"]})).unwrap(), ("x".into(), "far,x".into()));
    assert_eq!(last(&json!(["a/x.yaml", far])), "far");
    for (entry, why) in [
        ("https://example.com/none.yaml", "status code 404 (Not Found)"),
        ("s3://bucket/values.yaml", "helm.valuesFileSchemes"),
    ] {
        let files = json!({"valueFiles": [entry], "ignoreMissingValueFiles": true});
        let error = rendered(&files).unwrap_err().to_string();
        assert!(error.contains(entry) && error.contains(why), "{error}");
    }
}

#[test]
fn a_missing_file_or_pattern_fails_unless_it_may_be_missing() {
    for files in [json!(["a/x.yaml", "a/none.yaml"]), json!(["a/x.yaml", "none/*.yaml"])] {
        let error = rendered(&json!({"valueFiles": files})).unwrap_err().to_string();
        assert!(error.contains("none"), "{error}");
        let lenient = rendered(&json!({"valueFiles": files, "ignoreMissingValueFiles": true})).unwrap();
        assert_eq!(lenient.0, "x");
    }
}

#[test]
fn what_vendors_append_to_a_version_of_kubernetes_is_not_seen() {
    const SHOWN: &str = "last: '{{ .Capabilities.KubeVersion.Version }}'";
    let seen = |mut helm: Value| {
        helm["valueFiles"] = json!(["a/x.yaml"]);
        rendered(&helm).map(|(last, _)| last).map_err(|error| error.to_string())
    };
    assert_eq!(seen(json!({"values": SHOWN})), Ok("v1.30.2".to_owned()));
    assert_eq!(seen(json!({"values": SHOWN, "kubeVersion": "v1.29.3+k3s1"})), Ok("v1.29.3".to_owned()));
    let parameters = json!([{"name": "last", "value": "$KUBE_VERSION"}]);
    assert_eq!(seen(json!({"parameters": parameters})), Ok("1.30.2".to_owned()));
    let error = seen(json!({"kubeVersion": "new"})).unwrap_err();
    assert!(
        error.contains("could not parse kubernetes version new: could not parse \"new\" as version"),
        "{error}"
    );
}
