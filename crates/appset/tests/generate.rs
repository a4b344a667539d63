//! What ApplicationSets yield.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tiphys_appset::{Brake, ClusterInfo, GitFiles, Inputs, Params, Policy, generate, plan};
use tiphys_value::ObjectExt;

struct Files(BTreeMap<&'static str, &'static str>);

impl GitFiles for Files {
    fn files(&self) -> Vec<String> {
        self.0.keys().map(|path| (*path).to_owned()).collect()
    }

    fn read(&self, path: &str) -> Result<String, String> {
        self.0.get(path).map(|text| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
    }
}

struct World;

impl Inputs for World {
    fn clusters(&self) -> Result<Vec<ClusterInfo>, String> {
        let local = ClusterInfo {
            name: "in-cluster".into(),
            server: "https://kubernetes.default.svc".into(),
            ..Default::default()
        };
        let prod = ClusterInfo {
            name: "Prod_EU".into(),
            server: "https://prod".into(),
            labels: BTreeMap::from([("env".to_owned(), "prod".to_owned())]),
            declared: true,
            ..Default::default()
        };
        Ok(vec![local, prod])
    }

    fn git(&self, repo_url: &str, _: &str) -> Result<Arc<dyn GitFiles>, String> {
        if repo_url != "r" {
            return Err("repository not found".into());
        }
        Ok(Arc::new(Files(BTreeMap::from([
            ("apps/api/kustomization.yaml", ""),
            ("apps/web/Chart.yaml", ""),
            ("apps/legacy/x.yaml", ""),
            ("apps/web/charts/sub/Chart.yaml", ""),
            (".github/workflows/ci.yaml", ""),
            ("config/eu/app.yaml", "name: eu\nport: 80\nnested: {deep: x}\n"),
            ("config/us.json", "[{\"name\": \"us1\"}, {\"name\": \"us2\"}]"),
        ]))))
    }

    fn decisions(&self, _: &Value) -> Result<Vec<Params>, String> {
        Ok(Vec::new())
    }

    fn plugin(&self, _: &Value) -> Result<Vec<Params>, String> {
        Err("plugins are not allowed".into())
    }
}

fn set(generators: Value, name: &str, go: bool) -> Value {
    json!({"metadata": {"name": "s", "namespace": "argocd"}, "spec": {"goTemplate": go, "goTemplateOptions": ["missingkey=error"],
        "generators": generators,
        "template": {"metadata": {"name": name}, "spec": {"project": "p", "destination": {}}}}})
}

fn names(generators: Value, name: &str, go: bool) -> Vec<String> {
    let generated = generate(&set(generators, name, go), &World).expect("generates");
    generated.iter().map(|one| one.application.name().to_owned()).collect()
}

#[test]
fn lists_in_both_languages() {
    let list = json!([{"list": {"elements": [{"env": "dev", "values": {"n": 1}}, {"env": "prod", "values": {"n": 2}}]}}]);
    assert_eq!(
        names(list.clone(), "{{env}}-{{ values.n }}-{{unknown}}", false),
        ["dev-1-{{unknown}}", "prod-2-{{unknown}}"]
    );
    assert_eq!(names(list.clone(), "{{.env | upper}}-{{.values.n}}", true), ["DEV-1", "PROD-2"]);
    assert!(generate(&set(list, "{{.nosuch}}", true), &World).is_err());
}

#[test]
fn directories_and_files_of_a_repository() {
    let dirs = json!([{"git": {"repoURL": "r", "revision": "HEAD", "directories": [{"path": "apps/*"}, {"path": "apps/legacy", "exclude": true}]}}]);
    assert_eq!(names(dirs.clone(), "{{path.basename}}-{{path[0]}}", false), ["api-apps", "web-apps"]);
    assert_eq!(names(dirs, "{{index .path.segments 1}}", true), ["api", "web"]);
    let files = json!([{"git": {"repoURL": "r", "revision": "HEAD", "files": [{"path": "config/*"}], "values": {"v": "{{name}}!"}}}]);
    assert_eq!(
        names(files, "{{name}}-{{path.filename}}-{{values.v}}", false),
        ["eu-app.yaml-eu!", "us1-us.json-us1!", "us2-us.json-us2!"]
    );
    let broken = json!([{"git": {"repoURL": "gone", "revision": "HEAD", "files": [{"path": "*"}]}}]);
    let error = generate(&set(broken, "x", false), &World).expect_err("fails");
    assert!(error.to_string().contains("spec.generators[0]: repository not found"), "{error}");
}

#[test]
fn clusters_by_selector_and_without() {
    assert_eq!(names(json!([{"clusters": {}}]), "{{nameNormalized}}", false), ["in-cluster", "prod-eu"]);
    let selected = json!([{"clusters": {"selector": {"matchLabels": {"env": "prod"}}}}]);
    assert_eq!(names(selected, "{{name}}-{{metadata.labels.env}}", false), ["Prod_EU-prod"]);
}

#[test]
fn a_matrix_templates_its_second_child_from_its_first() {
    let matrix = json!([{"matrix": {"generators": [
        {"list": {"elements": [{"dir": "apps"}, {"dir": "config"}]}},
        {"git": {"repoURL": "r", "revision": "HEAD", "directories": [{"path": "{{dir}}/*"}]}},
    ]}, "selector": {"matchExpressions": [{"key": "path.basename", "operator": "NotIn", "values": ["legacy"]}]}}]);
    assert_eq!(names(matrix, "{{dir}}-{{path.basename}}", false), ["apps-api", "apps-web", "config-eu"]);
}

#[test]
fn v16_merge_keeps_the_base_and_overrides_what_matches() {
    let merge = |first: Value, second: Value| {
        json!([{"merge": {"mergeKeys": ["k"], "generators": [
        {"list": {"elements": first}}, {"list": {"elements": second}}]}}])
    };
    let (base, over) = (
        json!([{"k": "a", "v": "1"}, {"k": "b", "v": "1"}]),
        json!([{"k": "b", "v": "2"}, {"k": "c", "v": "2"}]),
    );
    assert_eq!(names(merge(base, over), "{{k}}{{v}}", false), ["a1", "b2"]);
    let keyless = merge(json!([{"v": "1"}, {"v": "2"}]), json!([]));
    assert!(
        generate(&set(keyless, "x", false), &World)
            .expect_err("duplicate")
            .to_string()
            .contains("not unique")
    );
}

#[test]
fn template_patch_applies_and_cannot_move_the_project() {
    let mut patched = set(json!([{"list": {"elements": [{"n": "a", "auto": true}]}}]), "{{.n}}", true);
    patched["spec"]["templatePatch"] =
        "{{- if .auto }}\nspec:\n  syncPolicy:\n    automated: {}\n{{- end }}\n".into();
    let app = &generate(&patched, &World).expect("generates")[0].application;
    assert!(app.at(&["spec", "syncPolicy", "automated"]).is_some());
    assert_eq!(
        app.at(&["metadata", "finalizers",]),
        Some(&json!(["resources-finalizer.argocd.argoproj.io"]))
    );
    patched["spec"]["templatePatch"] = "spec: {project: other}".into();
    assert!(generate(&patched, &World).is_err());
}

#[test]
fn equal_names_are_faults_of_those_applications_only() {
    let list = json!([{"list": {"elements": [{"n": "a"}, {"n": "a"}, {"n": "b"}]}}]);
    let generated = generate(&set(list, "{{n}}", false), &World).expect("generates");
    let faults: Vec<_> = generated.iter().map(|one| one.fault.is_some()).collect();
    assert_eq!(faults, [true, true, false]);
}

#[test]
fn v21_an_empty_generator_deletes_nothing_without_approval() {
    let generated = generate(&set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false), &World)
        .expect("generates");
    let existing = vec![generated[0].application.clone(), json!({"metadata": {"name": "old"}})];
    let change = plan(&generated, &existing, Policy::Sync, Brake::On);
    assert_eq!((change.create.len(), change.update.len(), change.delete), (0, 0, vec!["old".to_owned()]));
    let held = plan(&[], &existing, Policy::Sync, Brake::On);
    assert!(held.delete.is_empty() && held.held.is_some());
    assert_eq!(plan(&[], &existing, Policy::Sync, Brake::Off).delete.len(), 2);
    assert!(plan(&[], &existing, Policy::CreateUpdate, Brake::Off).delete.is_empty());
}
