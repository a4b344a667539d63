//! What ApplicationSets yield.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tiphys_appset::{
    Brake, ClusterInfo, GitFiles, Inputs, Params, Policy, generate, owner_reference, plan, preview,
};
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

struct FakeInputs;

impl Inputs for FakeInputs {
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
            (
                "odd/x.yaml",
                "count: 1000000\nlist: [a, {x: 1.5}]\nnil: null\npath: {mine: 1}\nvalues: {own: file, v: old}\n",
            ),
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
    let generated = generate(&set(generators, name, go), &FakeInputs).expect("generates");
    generated.iter().map(|one| one.application.name().to_owned()).collect()
}

#[test]
fn lists_in_both_languages() {
    let list = json!([{"list": {"elements": [{"env": "dev", "values": {"n": "1"}}, {"env": "prod", "values": {"n": "2"}}]}}]);
    assert_eq!(
        names(list.clone(), "{{env}}-{{ values.n }}-{{unknown}}", false),
        ["dev-1-{{unknown}}", "prod-2-{{unknown}}"]
    );
    assert_eq!(names(list.clone(), "{{.env | upper}}-{{.values.n}}", true), ["DEV-1", "PROD-2"]);
    assert!(generate(&set(list, "{{.nosuch}}", true), &FakeInputs).is_err());
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
    let error = generate(&set(broken, "x", false), &FakeInputs).expect_err("fails");
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
        generate(&set(keyless, "x", false), &FakeInputs)
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
    let app = &generate(&patched, &FakeInputs).expect("generates")[0].application;
    assert!(app.at(&["spec", "syncPolicy", "automated"]).is_some());
    assert_eq!(
        app.at(&["metadata", "finalizers",]),
        Some(&json!(["resources-finalizer.argocd.argoproj.io"]))
    );
    patched["spec"]["templatePatch"] = "spec: {project: other}".into();
    assert_eq!(generate(&patched, &FakeInputs).expect("generates")[0].application["spec"]["project"], "p");
}

#[test]
fn applications_hold_their_objects_unless_those_are_preserved() {
    let finalizers = |preserve: bool| {
        let mut set = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
        set["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": preserve});
        generate(&set, &FakeInputs).expect("generates")[0]
            .application
            .at(&["metadata", "finalizers"])
            .cloned()
    };
    assert_eq!(finalizers(false), Some(json!(["resources-finalizer.argocd.argoproj.io"])));
    assert_eq!(finalizers(true), None);
}

#[test]
fn selectors_of_nested_generators_count_whatever_is_said_of_them() {
    for said in [json!(null), json!(false), json!(true)] {
        let chosen =
            json!({"list": {"elements": [{"m": "a"}, {"m": "b"}]}, "selector": {"matchLabels": {"m": "b"}}});
        let matrix = json!([{"matrix": {"generators": [{"list": {"elements": [{"n": "x"}]}}, chosen]}}]);
        let mut set = set(matrix, "{{n}}-{{m}}", false);
        set["spec"]["applyNestedSelectors"] = said;
        let names: Vec<String> = generate(&set, &FakeInputs)
            .expect("generates")
            .iter()
            .map(|one| one.application.name().to_owned())
            .collect();
        assert_eq!(names, ["x-b"]);
    }
}

#[test]
fn plain_lists_hold_texts_only() {
    for element in
        [json!({"n": 1}), json!({"n": "a", "values": {"v": true}}), json!({"values": "v"}), json!("n")]
    {
        let list = json!([{"list": {"elements": [element]}}]);
        assert!(generate(&set(list, "x-{{n}}", false), &FakeInputs).is_err(), "{element}");
    }
    let from_text = json!([{"list": {"elementsYaml": "[{name: a, big: 1000000, values: {v: b}}]"}}]);
    assert_eq!(names(from_text.clone(), "{{name}}-{{big}}-{{values.v}}", false), ["a-{{big}}-{{values.v}}"]);
    assert_eq!(names(from_text, "{{.name}}-{{.big}}-{{.values.v}}", true), ["a-1e+06-b"]);
}

#[test]
fn a_set_without_parameters_leaves_the_template_as_it_is() {
    let generated = generate(&set(json!([{"list": {"elements": [{}]}}]), "{{n}}", false), &FakeInputs)
        .expect("generates");
    assert_eq!(generated[0].application.name(), "{{n}}");
    assert_eq!(generated[0].application.at(&["metadata", "finalizers"]), None);
}

#[test]
fn one_entry_may_hold_several_generators_but_not_below_another() {
    let both = json!({"plugin": null, "clusters": {"template": {"metadata": {"name": "c-{{name}}"}}},
        "list": {"elements": [{"n": "a"}]}});
    assert_eq!(names(json!([both]), "{{n}}", false), ["a", "c-in-cluster", "c-Prod_EU"]);
    let matrix = json!([{"matrix": {"generators": [both, {"list": {"elements": [{"m": "b"}]}}]}}]);
    assert!(generate(&set(matrix, "x", false), &FakeInputs).is_err());
}

#[test]
fn in_a_matrix_the_first_child_wins_and_values_wait_for_their_own_parameters() {
    let matrix = json!([{"matrix": {"generators": [
        {"list": {"elements": [{"n": "first", "dir": "apps/web", "values": {"a": "1"}}]}},
        {"git": {"repoURL": "r", "revision": "HEAD", "directories": [{"path": "{{.dir}}"}],
            "values": {"n": "{{.n}}", "base": "{{.path.basename}}"}}}]}}]);
    assert_eq!(
        names(matrix, "{{.n}}-{{.values.a}}-{{.values.n}}-{{.values.base}}", true),
        ["first-1-first-web"]
    );
    let both = |first: Value| {
        json!([{"matrix": {"generators": [
            {"list": {"elements": [first]}}, {"list": {"elements": [{"n": "second", "k": "v"}]}}]}}])
    };
    assert_eq!(names(both(json!({"n": "first"})), "{{.n}}-{{.k}}", true), ["first-v"]);
    assert!(generate(&set(both(json!({"n": "first"})), "x", false), &FakeInputs).is_err());
    // The selector of the second child is not templated.
    let selected = json!([{"matrix": {"generators": [{"list": {"elements": [{"n": "a"}]}},
        {"list": {"elements": [{"m": "a"}]}, "selector": {"matchLabels": {"m": "{{n}}"}}}]}}]);
    assert_eq!(names(selected, "x", false), Vec::<String>::new());
}

#[test]
fn merge_keys_name_parameters_of_the_first_level() {
    let merge = |key: &str| {
        json!([{"merge": {"mergeKeys": [key], "generators": [
            {"git": {"repoURL": "r", "revision": "HEAD", "directories": [{"path": "apps/*"}]}},
            {"list": {"elements": [{"k": "v"}]}}]}}])
    };
    // All directories are the same then: none of them has such a parameter.
    assert!(generate(&set(merge("path.basename"), "x", true), &FakeInputs).is_err());
    let flat = names(merge("path.basename"), "{{path.basename}}", false);
    assert_eq!(flat, ["api", "legacy", "web"]);
}

#[test]
fn files_give_what_go_reads_of_them() {
    let files = json!([{"git": {"repoURL": "r", "revision": "HEAD", "files": [{"path": "odd/*"}]}}]);
    assert_eq!(
        names(files.clone(), "{{count}}-{{list.0}}-{{list.1.x}}-{{nil}}-{{list[0]}}-{{path[1]}}", false),
        ["1e+06-a-1.5-<nil>-{{list[0]}}-{{path[1]}}"]
    );
    assert_eq!(names(files, "{{.count}}-{{.path.path}}-{{.path.basename}}", true), ["1e+06-odd-odd"]);
    let values = json!([{"git": {"repoURL": "r", "revision": "HEAD", "files": [{"path": "odd/*"}], "values": {"v": "new"}}}]);
    assert_eq!(names(values.clone(), "{{values.own}}-{{values.v}}", false), ["file-new"]);
    assert_eq!(names(values, "{{.values}}", true), ["map[v:new]"]);
    let number = json!([{"git": {"repoURL": "r", "revision": "HEAD", "files": [{"path": "odd/*"}], "values": {"v": 1}}}]);
    assert!(generate(&set(number, "x", false), &FakeInputs).is_err());
}

#[test]
fn labels_that_a_cluster_lacks_are_empty_where_they_are_indexed() {
    let selected = json!([{"clusters": {"selector": {"matchLabels":
        {"env": "prod", "argocd.argoproj.io/secret-type": "cluster"}}}}]);
    assert_eq!(
        names(selected, "x{{ index .metadata.labels \"nope\" }}-{{.metadata.labels.env}}", true),
        ["x-prod"]
    );
    let flat = json!([{"clusters": {"flatList": true}}]);
    assert_eq!(
        names(flat, "{{ range .clusters }}{{ .nameNormalized }}.{{ end }}", true),
        ["in-cluster.prod-eu."]
    );
    for wrong in [
        json!({"matchLabels": {"env": "a/b"}}),
        json!({"matchExpressions": [{"key": "env", "operator": "In"}]}),
    ] {
        let generator = json!([{"clusters": {"selector": wrong}}]);
        assert!(generate(&set(generator, "x", false), &FakeInputs).is_err(), "{wrong}");
    }
    let post = json!([{"list": {"elements": [{"url": "https://a/b"}]}, "selector": {"matchLabels": {"url": "https://a/b"}}}]);
    assert_eq!(names(post, "{{url}}", false).len(), 1);
    let key = json!([{"list": {"elements": []}, "selector": {"matchLabels": {"path[0]": "a"}}}]);
    assert!(generate(&set(key, "x", false), &FakeInputs).is_err());
}

#[test]
fn templates_have_the_types_of_applications() {
    let mut typed = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
    typed["spec"]["template"]["spec"]["syncPolicy"] = json!({"automated": {"prune": "{{n}}"}});
    let error = generate(&typed, &FakeInputs).expect_err("fails").to_string();
    assert!(error.contains("spec.syncPolicy.automated.prune"), "{error}");
    assert!(generate(&set(json!({"list": {}}), "x", false), &FakeInputs).is_err());
}

#[test]
fn equal_names_are_faults_of_those_applications_only() {
    let list = json!([{"list": {"elements": [{"n": "a"}, {"n": "a"}, {"n": "b"}]}}]);
    let generated = generate(&set(list, "{{n}}", false), &FakeInputs).expect("generates");
    let faults: Vec<_> = generated.iter().map(|one| one.fault.is_some()).collect();
    assert_eq!(faults, [true, true, false]);
}

#[test]
fn v21_an_empty_generator_deletes_nothing_without_approval() {
    let set = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
    let generated = generate(&set, &FakeInputs).expect("generates");
    let owned = |name: &str| json!({"metadata": {"name": name, "namespace": "argocd", "ownerReferences": [owner_reference(&set)]}});
    let mut kept = plan(&set, &generated, &[], Policy::Sync, Brake::On).create.remove(0);
    kept["status"] = json!({"sync": {"status": "Synced"}});
    let existing = vec![kept, owned("old"), json!({"metadata": {"name": "foreign", "namespace": "argocd"}})];
    let change = plan(&set, &generated, &existing, Policy::Sync, Brake::On);
    assert_eq!((change.create.len(), change.update.len(), change.delete), (0, 0, vec!["old".to_owned()]));
    let held = plan(&set, &[], &existing, Policy::Sync, Brake::On);
    assert!(held.delete.is_empty() && held.held.is_some());
    assert_eq!(plan(&set, &[], &existing, Policy::Sync, Brake::Off).delete.len(), 2);
    assert!(plan(&set, &[], &existing, Policy::CreateUpdate, Brake::Off).delete.is_empty());
}

#[test]
fn a_mass_deletion_is_held_too() {
    let set = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
    let generated = generate(&set, &FakeInputs).expect("generates");
    let owned = |index: usize| {
        json!({"metadata": {"name": format!("x{index}"), "namespace": "argocd",
            "ownerReferences": [owner_reference(&set)]}})
    };
    let few: Vec<Value> = (0..19).map(owned).collect();
    let many: Vec<Value> = (0..20).map(owned).collect();
    assert_eq!(plan(&set, &generated, &few, Policy::Sync, Brake::On).delete.len(), 19);
    let held = plan(&set, &generated, &many, Policy::Sync, Brake::On);
    assert_eq!(
        held.held.as_deref(),
        Some("the generators yield far less; 20 of 20 Applications would be deleted")
    );
}

#[test]
fn what_is_preserved_and_ignored_stays() {
    let mut set = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
    set["spec"]["preservedFields"] = json!({"annotations": ["team.example.com/note"], "labels": ["tier"]});
    set["spec"]["ignoreApplicationDifferences"] = json!([
        {"jsonPointers": ["/spec/source/targetRevision"]},
        {"name": "a", "jqPathExpressions": [".spec.source.helm.values"]}]);
    set["spec"]["template"]["spec"]["source"] =
        json!({"repoURL": "r", "targetRevision": "main", "helm": {"values": "x: 1"}});
    let generated = generate(&set, &FakeInputs).expect("generates");
    let created = plan(&set, &generated, &[], Policy::Sync, Brake::On).create.remove(0);
    let mut live = created.clone();
    live["spec"]["source"]["targetRevision"] = "pinned".into();
    live["spec"]["source"]["helm"]["values"] = "x: 2".into();
    live["metadata"]["annotations"] = json!({"team.example.com/note": "hi", "argocd.argoproj.io/refresh": "hard", "tiphys.dev/ownership": "adopt",
            "tiphys.dev/paused-resources": "/ConfigMap/a/b=2026-01-01T00:00:00Z", "tiphys.dev/kept": "{}"});
    live["metadata"]["labels"] = json!({"tier": "gold"});
    live["metadata"]["finalizers"] =
        json!(["resources-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io/cleanup"]);
    assert_eq!(plan(&set, &generated, &[live.clone()], Policy::Sync, Brake::On).update, []);
    live["metadata"]["labels"]["stray"] = "x".into();
    live["spec"]["project"] = "other".into();
    let update = plan(&set, &generated, &[live.clone()], Policy::Sync, Brake::On).update.remove(0);
    assert_eq!(update.after["metadata"]["labels"], json!({"tier": "gold"}));
    assert_eq!(update.after["spec"]["project"], "p");
    assert_eq!(update.after["spec"]["source"]["targetRevision"], "pinned");
    assert!(plan(&set, &generated, &[live], Policy::CreateDelete, Brake::On).update.is_empty());
}

#[test]
fn what_says_nothing_is_left_out_and_makes_no_change() {
    let mut set = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
    set["spec"]["template"]["spec"] = json!({"project": "", "destination": {"namespace": "n"}, "syncPolicy": {"syncOptions": []},
        "source": {"repoURL": "r", "helm": {"parameters": [], "valuesObject": {}}, "directory": {"recurse": false, "exclude": "x"},
            "kustomize": {"forceCommonLabels": true, "images": []}}});
    let generated = generate(&set, &FakeInputs).expect("generates");
    let created = plan(&set, &generated, &[], Policy::Sync, Brake::On).create.remove(0);
    assert_eq!(
        created["spec"],
        json!({"project": "default", "destination": {"namespace": "n"},
            "source": {"repoURL": "r", "directory": {"recurse": false, "exclude": "x"}}})
    );
    let mut live = created.clone();
    live["spec"]["source"]["directory"] = json!({"exclude": "x", "jsonnet": {}});
    live["spec"]["syncPolicy"] = json!({});
    assert_eq!(plan(&set, &generated, &[live.clone()], Policy::Sync, Brake::On).update, []);
    live["spec"]["source"]["directory"]["exclude"] = "y".into();
    assert_eq!(plan(&set, &generated, &[live], Policy::Sync, Brake::On).update.len(), 1);
}

#[test]
fn a_set_that_was_made_anew_owns_its_applications_again() {
    let mut set = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
    set["metadata"]["uid"] = "old".into();
    let generated = generate(&set, &FakeInputs).expect("generates");
    let mut live = plan(&set, &generated, &[], Policy::Sync, Brake::On).create.remove(0);
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"});
    live["metadata"]["ownerReferences"].as_array_mut().expect("list").insert(0, foreign.clone());
    set["metadata"]["uid"] = "new".into();
    let update = plan(&set, &generated, &[live], Policy::Sync, Brake::On).update.remove(0);
    assert_eq!(update.after["metadata"]["ownerReferences"], json!([foreign, owner_reference(&set)]));
}

#[test]
fn an_ignored_field_goes_with_the_part_that_it_is_in() {
    let mut set = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
    set["spec"]["ignoreApplicationDifferences"] =
        json!([{"jsonPointers": ["/spec/source/targetRevision", "/metadata/labels/tier"]}]);
    set["spec"]["template"]["spec"] =
        json!({"project": "p", "destination": {}, "sources": [{"repoURL": "r", "targetRevision": "main"}]});
    let generated = generate(&set, &FakeInputs).expect("generates");
    let mut live = plan(&set, &generated, &[], Policy::Sync, Brake::On).create.remove(0);
    live["spec"] =
        json!({"project": "p", "destination": {}, "source": {"repoURL": "r", "targetRevision": "pinned"}});
    live["metadata"]["labels"] = json!({"tier": "gold"});
    let update = plan(&set, &generated, &[live], Policy::Sync, Brake::On).update.remove(0);
    assert_eq!(update.after["spec"], generated[0].application["spec"]);
    assert_eq!(update.after["metadata"]["labels"], json!({"tier": "gold"}), "nothing else was in there");
}

#[test]
fn an_application_of_another_set_is_not_taken() {
    let set = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
    let generated = generate(&set, &FakeInputs).expect("generates");
    let mut live = plan(&set, &generated, &[], Policy::Sync, Brake::On).create.remove(0);
    live["metadata"]["ownerReferences"][0]["name"] = "other".into();
    let change = plan(&set, &generated, &[live], Policy::Sync, Brake::On);
    assert!(change.update.is_empty() && change.delete.is_empty());
    assert_eq!(change.faults.len(), 1);
}

#[test]
fn a_preview_tells_what_a_deletion_takes_along() {
    let set = set(json!([{"list": {"elements": [{"n": "a"}]}}]), "{{n}}", false);
    let old = json!({"metadata": {"name": "old", "namespace": "argocd", "ownerReferences": [owner_reference(&set)],
            "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "status": {"resources": [
            {"version": "v1", "kind": "ConfigMap", "namespace": "n", "name": "c", "status": "Synced"},
            {"version": "v1", "kind": "ConfigMap", "namespace": "n", "name": "skipped"},
            {"version": "v1", "kind": "Secret", "namespace": "n", "name": "hook", "hook": true},
            {"version": "v1", "kind": "Service", "namespace": "n", "name": "s", "status": "OutOfSync",
                "health": {"status": "Missing"}},
            {"group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition", "name": "d",
                "status": "Synced"}]}});
    let mut orphaning = old.clone();
    orphaning["metadata"]["name"] = "orphaning".into();
    orphaning["metadata"]["finalizers"] = json!([]);
    let seen = preview(&set, &[old, orphaning], &FakeInputs).expect("generates");
    assert_eq!(seen.plan.create.len(), 1);
    let taken: Vec<usize> = seen.deleted.iter().map(|one| one.objects.len()).collect();
    assert_eq!(taken, [1, 0]);
    assert!(seen.plan.held.is_none());
}

#[test]
fn a_set_that_yields_more_than_memory_holds_fails_and_says_so() {
    let many =
        json!({"list": {"elements": (0..300).map(|n| json!({"a": n.to_string()})).collect::<Vec<_>>()}});
    let large = json!({"list": {"elements": [{"text": "x".repeat(4 << 20)}]}});
    let generators = json!([{"matrix": {"generators": [many, large]}}]);
    let error = generate(&set(generators, "x", true), &FakeInputs).expect_err("300 sets of 4 MiB each");
    assert!(error.to_string().contains("more parameters and Applications than 256 MiB hold"), "{error}");
}

#[test]
fn random_names_stay_as_they_are_and_differ_from_each_other() {
    let list = |elements: Value| json!([{"list": {"elements": elements}}]);
    let name = "{{.a}}-{{ randAlphaNum 8 | lower }}-{{ randAlphaNum 8 | lower }}";
    let both = names(list(json!([{"a": "x"}, {"a": "y"}])), name, true);
    assert_eq!(both, names(list(json!([{"a": "x"}, {"a": "y"}])), name, true));
    assert_eq!(
        names(list(json!([{"a": "y"}])), name, true),
        both[1..],
        "another element is no reason for a new name"
    );
    let random: Vec<&str> = both.iter().flat_map(|name| name.split('-').skip(1)).collect();
    assert_eq!(random.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{random:?}");
}
