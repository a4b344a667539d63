//! `helmCharts` of kustomizations beside `kustomize build --enable-helm` with the real helm.

use std::{fs, process::Command, sync::Arc};

use tiphys_kustomize::{BuildOptions, RemoteError, RemoteLoader, RepoUrl, build};
use tiphys_render::HelmCharts;
use tiphys_vfs::{DiskTree, FileTree, MemTree};

const VALUES: &str = "# colours\ncolour: red\nsize: 3\nlist: [a, b]\nitems:\n- {name: x, value: 1}\n- {name: y, value: 2}\nnested: {kept: k, gone: g, deep: {a: 1}}\nempty: {}\nflag: true\n";

const TEMPLATE: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-web
  namespace: {{ .Release.Namespace }}
data:
  values: {{ toJson .Values | quote }}
  kube: {{ .Capabilities.KubeVersion.Version | quote }}
  custom: {{ .Capabilities.APIVersions.Has \"example.com/v1/Thing\" | quote }}
  chart: {{ .Chart.Name }}-{{ .Chart.Version }}
";

const HOOKS: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: hook
  annotations: {helm.sh/hook: pre-install}
---
apiVersion: v1
kind: Pod
metadata:
  name: tried
  annotations: {helm.sh/hook: test}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: plain
";

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.com
spec:
  group: example.com
";

/// Entries of the kustomization; the chart's folder is `charts` unless a case says more.
const CASES: [&str; 34] = [
    "helmCharts: [{name: web}]",
    "helmCharts: [{name: web, releaseName: shop, namespace: here}]",
    "namespace: top\nhelmCharts: [{name: web, releaseName: shop}]",
    "namespace: top\nhelmCharts: [{name: web, releaseName: shop, namespace: here}]",
    "namePrefix: eu-\ncommonLabels: {a: b}\nhelmCharts: [{name: web, releaseName: shop}]",
    "helmCharts: [{name: web, nameTemplate: '{{ \"Shop\" | lower }}-1'}]",
    "helmCharts: [{name: web, releaseName: r, nameTemplate: x}]",
    "helmCharts: [{name: web, releaseName: Bad_Name}]",
    "helmCharts: [{name: web, includeCRDs: true}]",
    "helmCharts: [{name: web, skipHooks: true}]",
    "helmCharts: [{name: web, skipTests: true}]",
    "helmCharts: [{name: web, kubeVersion: 1.27.3, apiVersions: [example.com/v1/Thing]}]",
    "helmCharts: [{name: web, kubeVersion: nonsense}]",
    "helmCharts: [{name: web, devel: true, version: 1.0.0}]",
    "helmCharts: [{name: web, valuesFile: own.yaml}]",
    "helmCharts: [{name: web, valuesFile: missing.yaml}]",
    "helmCharts: [{name: web, valuesFile: ../outside.yaml}]",
    "helmCharts: [{name: web, additionalValuesFiles: [own.yaml, more.yaml]}]",
    "helmCharts: [{name: web, additionalValuesFiles: [missing.yaml]}]",
    "helmCharts: [{name: web, valuesInline: {colour: green, nested: {gone: null, deep: {b: 2}}, list: [c], items: [{name: y, value: 5}], empty: {}}}]",
    "helmCharts: [{name: web, valuesMerge: override, valuesInline: {colour: green, nested: {deep: null}, flag: null}}]",
    "helmCharts: [{name: web, valuesMerge: merge, valuesInline: {colour: green, extra: 1, nested: {kept: mine, own: o}, list: [c], items: [{name: z}]}}]",
    "helmCharts: [{name: web, valuesMerge: replace, valuesInline: {colour: green}}]",
    "helmCharts: [{name: web, valuesMerge: replace, valuesFile: own.yaml, valuesInline: {size: '007', text: \"a\\nb\\n\", big: 12345678901}}]",
    "helmCharts: [{name: web, valuesMerge: sideways}]",
    "helmCharts: [{name: web, valuesFile: own.yaml, valuesInline: {size: 9}, additionalValuesFiles: [more.yaml]}]",
    "helmCharts: [{name: none}]",
    "helmCharts: [{name: ''}]",
    "helmGlobals: {chartHome: other}\nhelmCharts: [{name: second, releaseName: two}]",
    "helmGlobals: {chartHome: ../far}\nhelmCharts: [{name: second, releaseName: two}]",
    "helmCharts: [{name: bare}]",
    "helmCharts: [{name: web, releaseName: a}, {name: bare, releaseName: b, skipHooks: true}]",
    "helmChartInflationGenerator: [{chartName: web, releaseName: old, releaseNamespace: x, valuesLocal: {size: 5}}]",
    "namespace: top\nresources: [below]\n",
];

fn files(kustomization: &str) -> Vec<(String, String)> {
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let mut files = vec![
        ("app/kustomization.yaml".to_owned(), format!("{kustomization}\n")),
        ("app/below/kustomization.yaml".into(), "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: web, releaseName: low, valuesMerge: replace, valuesInline: {a: 1}}]\n".into()),
        ("app/own.yaml".into(), "colour: blue\nnested: {kept: file}\n".into()),
        ("app/more.yaml".into(), "size: 8\nadded: yes\n".into()),
        ("outside.yaml".into(), "size: 8\n".into()),
        ("app/charts/bare/Chart.yaml".into(), chart("bare")),
        ("app/charts/bare/templates/c.yaml".into(), TEMPLATE.to_owned()),
    ];
    for (folder, name) in [("app/charts", "web"), ("app/other", "second"), ("far", "second")] {
        let at = |file: &str| format!("{folder}/{name}/{file}");
        files.extend([
            (at("Chart.yaml"), chart(name)),
            (at("values.yaml"), VALUES.to_owned()),
            (at("templates/c.yaml"), TEMPLATE.to_owned()),
            (at("templates/hooks.yaml"), HOOKS.to_owned()),
            (at("crds/crd.yaml"), CRD.to_owned()),
        ]);
    }
    files
}

#[test]
fn charts_are_rendered_as_kustomize_with_helm_does() {
    let (Ok(kustomize), Ok(helm)) = (tiphys_oracles::find("kustomize"), tiphys_oracles::find("helm")) else {
        return;
    };
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (name, text) in files(case) {
            fs::create_dir_all(root.join(&name).parent().unwrap()).unwrap();
            fs::write(root.join(&name), text).unwrap();
        }
        let output = Command::new(&kustomize)
            .args(["build", "--enable-helm", "--helm-command"])
            .arg(&helm)
            .arg(root.join("app"))
            .output()
            .unwrap();
        let options = BuildOptions {
            enable_helm: true,
            chart_inflator: Some(Arc::new(HelmCharts)),
            display_root: root.display().to_string(),
            ..BuildOptions::default()
        };
        let tree = DiskTree::open(&root).unwrap();
        let ours =
            build(&tree, "app", &options).map(|build| build.to_yaml()).map_err(|error| error.to_string());
        let (real, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match (ours, output.status.success()) {
            (Ok(ours), true) => assert_eq!(ours, real, "{case}"),
            // Helm's own faults come with its command line and temporary folders.
            (Err(_), false) if stderr.contains("unable to run") => {}
            (Err(ours), false) => {
                let line = stderr.lines().find_map(|line| line.strip_prefix("Error: ")).unwrap_or_default();
                assert_eq!(ours.lines().next(), Some(line), "{case}");
            }
            (ours, _) => panic!("{case}:\nours: {ours:?}\nreal: {stderr}"),
        }
    }
}

/// Has the chart `far` 1.2.3.
struct Repository;

impl RemoteLoader for Repository {
    fn repository(&self, url: &RepoUrl) -> Result<Arc<dyn FileTree>, RemoteError> {
        Err(RemoteError::Other(url.raw.clone()))
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, RemoteError> {
        Err(RemoteError::Other(url.to_owned()))
    }

    fn chart(&self, repository: &str, name: &str, version: &str) -> Result<Arc<dyn FileTree>, RemoteError> {
        if (repository, name, version) != ("https://charts.example.com", "far", "1.2.3") {
            return Err(RemoteError::Other(format!("no {name} {version}")));
        }
        Ok(Arc::new(MemTree::from_files([
            ("Chart.yaml", "apiVersion: v2\nname: far\nversion: 1.2.3\n"),
            ("values.yaml", "colour: red\nsize: 3\n"),
            (
                "templates/c.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {text: '{{ .Values.colour }} {{ .Values.size }}'}\n",
            ),
        ])))
    }
}

#[test]
fn a_chart_of_a_repository_is_fetched_if_it_is_not_in_the_tree() {
    let tree = |version: &str, more: &str| {
        let text = format!(
            "helmCharts: [{{name: far, repo: 'https://charts.example.com', version: {version}, valuesInline: {{colour: green}}{more}}}]\n"
        );
        MemTree::from_files([("kustomization.yaml", text.as_str()), ("mine.yaml", "size: 4\n")])
    };
    let options = BuildOptions {
        enable_helm: true,
        chart_inflator: Some(Arc::new(HelmCharts)),
        remote_loader: Some(Arc::new(Repository)),
        ..BuildOptions::default()
    };
    let text = |version: &str, more: &str| {
        let built = build(&tree(version, more), "", &options);
        built.map(|built| built.to_yaml()).map_err(|error| error.to_string())
    };
    assert!(text("1.2.3", "").unwrap().contains("text: green 3\n"));
    assert!(text("1.2.3", ", valuesFile: mine.yaml").unwrap().contains("text: green 4\n"));
    let error = text("2.0.0", "").unwrap_err();
    assert!(error.contains("cannot pull chart 'far' of https://charts.example.com: no far 2.0.0"), "{error}");
}

#[test]
fn a_chart_of_a_repository_is_named_when_it_is_not_there() {
    let tree = MemTree::from_files([(
        "kustomization.yaml",
        "helmCharts: [{name: far, repo: 'https://charts.example.com', version: 1.2.3}]\n",
    )]);
    let options = BuildOptions {
        enable_helm: true,
        chart_inflator: Some(Arc::new(HelmCharts)),
        ..BuildOptions::default()
    };
    let error = build(&tree, "", &options).unwrap_err().to_string();
    assert!(
        error.contains("'far' of https://charts.example.com") && error.contains("charts/far-1.2.3/far"),
        "{error}"
    );
}

#[test]
fn what_a_chart_renders_to_stands_where_the_chart_is_named() {
    let tree = MemTree::from_files([
        ("kustomization.yaml", "namespace: shop\nhelmCharts:\n  - name: web\n"),
        ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("charts/web/values.yaml", "{}\n"),
        ("charts/web/templates/c.yaml", "\n\n\n\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"),
    ]);
    let options = BuildOptions {
        enable_helm: true,
        chart_inflator: Some(Arc::new(HelmCharts)),
        origins: true,
        ..BuildOptions::default()
    };
    let built = build(&tree, "", &options).unwrap();
    let name = tiphys_value::FieldPath::default().key("metadata").key("name");
    let chain = built.objects()[0].origins.lookup(&name);
    let places: Vec<_> = chain.iter().map(|it| (it.location.file.as_ref(), it.location.line)).collect();
    assert_eq!(places, [("kustomization.yaml", 3)]);
}
