//! The options of an Application beside the `kustomize edit` commands that Argo CD runs for them, one after
//! the other, on a copy of the tree; then both build.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::{Value, json};
use tiphys_kustomize::{BuildOptions, Overlay, build};
use tiphys_vfs::MemTree;

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 1
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: registry.example.com:5000/shop/web:1.0
      - name: side
        image: proxy@sha256:aa
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: web
";

const COMPONENT: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
commonAnnotations: {from: component}
";

/// The kustomization, and the options as an Application has them.
fn cases() -> Vec<(&'static str, Value)> {
    let plain = "resources: [d.yaml]\n";
    let full = "resources: [d.yaml]\nnamePrefix: a-\nnameSuffix: -z\nnamespace: old\ncommonLabels: {team: a}\n\
        commonAnnotations: {note: old}\nreplicas: [{name: web, count: 4}, {name: other, count: 2}]\n\
        images:\n- {name: proxy, newName: mirror/proxy, newTag: v1}\n- {name: aa, newTag: v2}\n\
        labels:\n- {pairs: {tier: t}, includeTemplates: true}\n- {pairs: {zone: z}}\n\
        components: [parts/one]\npatches:\n- patch: '[{op: add, path: /metadata/labels/patched, value: x}]'\n  target: {kind: Deployment}\n";
    let images = |list: &[&str]| json!({"images": list});
    vec![
        (plain, json!({"namePrefix": "eu-", "nameSuffix": "-1", "namespace": "here"})),
        (full, json!({"namePrefix": "-eu", "nameSuffix": "--1", "namespace": "here"})),
        (full, json!({"namespace": "Odd_Name"})),
        (plain, images(&["registry.example.com:5000/shop/web:2.0", "proxy=envoy"])),
        (plain, images(&["proxy=envoy:v3@sha256:bb", "registry.example.com:5000/shop/web=other:5000/web"])),
        (full, images(&["proxy=*:v9"])),
        (full, images(&["proxy:*@*"])),
        (full, images(&["proxy@sha256:cc", "proxy=last/proxy:v1"])),
        (full, images(&["proxy=mirror:$TAG", "aa=bb:${TAG}-${NONE}x"])),
        (full, images(&["proxy"])),
        (full, images(&["proxy="])),
        (full, json!({"replicas": [["web", 7], ["added", 1]]})),
        (plain, json!({"commonLabels": {"team": "b", "quoted": "\"q\"", "colon": "a:b", "empty": ""}})),
        (plain, json!({"commonLabels": {"env": "$TAG-$$x"}})),
        (full, json!({"commonLabels": {"team": "b"}})),
        (full, json!({"commonLabels": {"team": "b", "new": "n"}, "forceCommonLabels": true})),
        (full, json!({"commonLabels": {"team": "b"}, "labelWithoutSelector": true})),
        (full, json!({"commonLabels": {"zone": "b"}, "labelWithoutSelector": true})),
        (
            full,
            json!({"commonLabels": {"zone": "b", "more": "c"}, "labelWithoutSelector": true, "forceCommonLabels": true}),
        ),
        (
            full,
            json!({"commonLabels": {"added": "b", "more": "c"}, "labelWithoutSelector": true, "labelIncludeTemplates": true}),
        ),
        (
            full,
            json!({"commonLabels": {"tier": "b"}, "labelWithoutSelector": true, "labelIncludeTemplates": true}),
        ),
        (plain, json!({"commonLabels": {"a": "b"}, "labelIncludeTemplates": true})),
        (plain, json!({"commonLabels": {"a": "b", "c": "d"}, "labelWithoutSelector": true})),
        (plain, json!({"commonAnnotations": {"note": "$TAG", "url": "https://x.example.com/?a=b,c"}})),
        (plain, json!({"commonAnnotations": {"note": "$TAG"}, "commonAnnotationsEnvsubst": true})),
        (full, json!({"commonAnnotations": {"note": "new"}})),
        (full, json!({"commonAnnotations": {"note": "new"}, "forceCommonAnnotations": true})),
        (
            full,
            json!({"patches": [
                {"patch": "- {op: replace, path: /spec/replicas, value: 9}", "target": {"kind": "Deployment", "name": "w.*"}},
                {"path": "p.yaml"},
                {"patch": "{apiVersion: v1, kind: ServiceAccount, metadata: {name: renamed}}",
                 "target": {"kind": "ServiceAccount"}, "options": {"allowNameChange": true}},
            ]}),
        ),
        (plain, json!({"patches": [{"path": "missing.yaml"}]})),
        (plain, json!({"components": ["parts/one"]})),
        (full, json!({"components": ["parts/one", "parts/two"]})),
        (plain, json!({"components": ["parts/*"]})),
        (plain, json!({"components": ["parts/[t-z]w?"]})),
        (plain, json!({"components": ["parts/none"]})),
        (plain, json!({"components": ["parts/none", "parts/two"], "ignoreMissingComponents": true})),
        (plain, json!({"components": ["parts/none"], "ignoreMissingComponents": true})),
        ("", json!({"namePrefix": "eu-"})),
        ("bases: [../app/parts/one]\nimageTags: [{name: proxy, newTag: v2}]\n", json!({"namePrefix": "eu-"})),
        ("resources: [d.yaml]\nnamePrefx: a\n", json!({"nameSuffix": "-1"})),
    ]
}

fn files(kustomization: &str) -> Vec<(String, String)> {
    let component = |label: &str| format!("{COMPONENT}commonLabels: {{part: {label}}}\n");
    vec![
        ("app/kustomization.yaml".into(), kustomization.to_owned()),
        ("app/d.yaml".into(), DEPLOYMENT.to_owned()),
        (
            "app/p.yaml".into(),
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {paused: true}\n".into(),
        ),
        ("app/parts/one/kustomization.yaml".into(), component("one")),
        ("app/parts/two/kustomization.yaml".into(), COMPONENT.to_owned()),
    ]
}

fn env() -> BTreeMap<String, String> {
    BTreeMap::from([("TAG".to_owned(), "v42".to_owned())])
}

fn map(options: &Value, field: &str) -> BTreeMap<String, String> {
    serde_json::from_value(options.get(field).cloned().unwrap_or_else(|| json!({}))).unwrap()
}

fn list<T: serde::de::DeserializeOwned>(options: &Value, field: &str) -> Vec<T> {
    serde_json::from_value(options.get(field).cloned().unwrap_or_else(|| json!([]))).unwrap()
}

fn text(options: &Value, field: &str) -> String {
    options[field].as_str().unwrap_or_default().to_owned()
}

fn overlay(options: &Value) -> Overlay {
    let flag = |field: &str| options[field] == true;
    Overlay {
        name_prefix: text(options, "namePrefix"),
        name_suffix: text(options, "nameSuffix"),
        images: list(options, "images"),
        replicas: list(options, "replicas"),
        common_labels: map(options, "commonLabels"),
        force_common_labels: flag("forceCommonLabels"),
        label_without_selector: flag("labelWithoutSelector"),
        label_include_templates: flag("labelIncludeTemplates"),
        common_annotations: map(options, "commonAnnotations"),
        force_common_annotations: flag("forceCommonAnnotations"),
        common_annotations_envsubst: flag("commonAnnotationsEnvsubst"),
        namespace: text(options, "namespace"),
        patches: list(options, "patches"),
        components: list(options, "components"),
        ignore_missing_components: flag("ignoreMissingComponents"),
        env: env(),
    }
}

fn ours(kustomization: &str, options: &Value) -> Result<String, String> {
    let files = files(kustomization);
    let tree = MemTree::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let options = BuildOptions {
        overlay: Some(overlay(options)),
        display_root: "/root".to_owned(),
        ..BuildOptions::default()
    };
    build(&tree, "app", &options).map(|build| build.to_yaml()).map_err(|error| error.to_string())
}

/// The real tool in one folder.
struct Real<'a> {
    program: &'a Path,
    folder: &'a Path,
}

impl Real<'_> {
    fn run(&self, args: &[String]) -> Result<String, String> {
        let output =
            Command::new(self.program).args(args).current_dir(self.folder.join("app")).output().unwrap();
        let root = self.folder.display().to_string();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&root, "/root");
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn edit(&self, what: &[&str], values: Vec<String>) -> Result<(), String> {
        if values.is_empty() {
            return Ok(());
        }
        let words = ["edit"].iter().chain(what).map(|word| (*word).to_owned());
        self.run(&words.chain(values).collect::<Vec<_>>()).map(drop)
    }

    /// What Argo CD runs, in its order.
    fn application(&self, options: &Value) -> Result<String, String> {
        let word = |field: &str| {
            let value = text(options, field);
            if value.is_empty() { Vec::new() } else { vec!["--".to_owned(), value] }
        };
        let expand = |text: &str| {
            text.replace("$$", "\0")
                .replace("${TAG}", "v42")
                .replace("$TAG", "v42")
                .replace("${NONE}", "")
                .replace('\0', "$")
        };
        let pairs = |field: &str, expanded: bool| -> Vec<String> {
            let value = |value: &str| if expanded { expand(value) } else { value.to_owned() };
            map(options, field).iter().map(|(key, text)| format!("{key}:{}", value(text))).collect()
        };
        let flags = |flags: &[(&str, &'static str)]| -> Vec<&'static str> {
            flags.iter().filter(|(field, _)| options[*field] == true).map(|(_, flag)| *flag).collect()
        };
        self.edit(&["set", "nameprefix"], word("namePrefix"))?;
        self.edit(&["set", "namesuffix"], word("nameSuffix"))?;
        self.edit(
            &["set", "image"],
            list::<String>(options, "images").iter().map(|text| expand(text)).collect(),
        )?;
        let replicas = list::<(String, i64)>(options, "replicas");
        self.edit(
            &["set", "replicas"],
            replicas.iter().map(|(name, count)| format!("{name}={count}")).collect(),
        )?;
        let label = flags(&[
            ("forceCommonLabels", "--force"),
            ("labelWithoutSelector", "--without-selector"),
            ("labelIncludeTemplates", "--include-templates"),
        ]);
        self.edit(&[&["add", "label"][..], &label].concat(), pairs("commonLabels", true))?;
        let annotation = flags(&[("forceCommonAnnotations", "--force")]);
        let expanded = options["commonAnnotationsEnvsubst"] == true;
        self.edit(&[&["add", "annotation"][..], &annotation].concat(), pairs("commonAnnotations", expanded))?;
        self.edit(&["set", "namespace"], word("namespace"))?;
        self.add_patches(list(options, "patches"));
        let there = |path: &String| {
            options["ignoreMissingComponents"] != true || self.folder.join("app").join(path).exists()
        };
        let components: Vec<String> = list(options, "components");
        self.edit(&["add", "component"], components.into_iter().filter(there).collect())?;
        self.run(&["build".to_owned(), ".".to_owned()])
    }

    /// There is no command for patches: Argo CD writes them into the file.
    fn add_patches(&self, patches: Vec<Value>) {
        if patches.is_empty() {
            return;
        }
        let path = self.folder.join("app/kustomization.yaml");
        let mut kustomization = tiphys_yaml::from_yaml(&fs::read_to_string(&path).unwrap()).unwrap();
        match &mut kustomization["patches"] {
            Value::Array(there) => there.extend(patches),
            none => *none = patches.into(),
        }
        fs::write(path, tiphys_yaml::to_yaml(&kustomization)).unwrap();
    }
}

#[test]
fn options_of_applications_are_what_kustomize_edit_does() {
    let Ok(program) = tiphys_oracles::find("kustomize") else { return };
    for (kustomization, options) in cases() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (name, text) in files(kustomization) {
            fs::create_dir_all(root.join(&name).parent().unwrap()).unwrap();
            fs::write(root.join(&name), text).unwrap();
        }
        let real = Real { program: &program, folder: &root }.application(&options);
        match (ours(kustomization, &options), real) {
            (Ok(ours), Ok(real)) => assert_eq!(ours, real, "{options} on {kustomization}"),
            (Err(_), Err(_)) => {}
            (ours, real) => panic!("{options} on {kustomization}:\nours: {ours:?}\nreal: {real:?}"),
        }
    }
}
