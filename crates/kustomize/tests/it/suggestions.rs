//! What errors and warnings suggest: the nearest field, object, path or file.

use tiphys_kustomize::{BuildOptions, build};
use tiphys_vfs::MemTree;

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  namespace: eu
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: web
        image: registry.example.com/team/shop:1.0
";

const FILES: [(&str, &str); 5] = [
    ("base/deployment.yaml", DEPLOYMENT),
    ("base/settings.properties", "a=b\n"),
    ("base/patches/scale.yaml", "kind: Deployment\n"),
    ("parts/kustomization.yaml", "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n"),
    (
        "config/plugin.yaml",
        "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefx: a-\nfieldSpecs: [{path: metadata/name, creat: true}]\n",
    ),
];

/// The whole error or all warnings of a kustomization in `base`.
fn error_of(kustomization: &str) -> String {
    let mut files = FILES.to_vec();
    files.push(("base/kustomization.yaml", kustomization));
    let options = BuildOptions::default();
    match build(&MemTree::from_files(files), "base", &options) {
        Ok(built) => built.warnings().join("\n"),
        Err(error) => format!("{error}\n{}", error.advice().join("\n")),
    }
}

fn table(rows: &[(&str, &str)]) {
    for (kustomization, expected) in rows {
        let said = error_of(kustomization);
        assert!(said.contains(expected), "{kustomization}\nsaid: {said}\nexpected: {expected}");
    }
}

#[test]
fn unknown_fields() {
    table(&[
        ("resource: [x]", "json: unknown field \"resource\"\ndid you mean `resources`?"),
        ("images: [{name: a, newtag1: b}]", "did you mean `newTag`?"),
        ("images: [{name: a, colour: b}]", "there is name, newName, tagSuffix, newTag, digest"),
        ("patches: [{path: a, target: {kid: x}}]", "did you mean `kind`?"),
        ("patches: [{path: a, options: {allowNamechanges: true}}]", "did you mean `allowNameChange`?"),
        ("configMapGenerator: [{name: a, literal: [a=b]}]", "did you mean `literals`?"),
        (
            "configMapGenerator: [{name: a, options: {disableNameSufixHash: true}}]",
            "did you mean `disableNameSuffixHash`?",
        ),
        ("replacements: [{source: {kind: A, fieldpath1: b}}]", "did you mean `fieldPath`?"),
        ("replacements: [{targets: [{select: {}, fieldPath: [b]}]}]", "did you mean `fieldPaths`?"),
        ("labels: [{pair: {a: b}}]", "did you mean `pairs`?"),
        ("helmCharts: [{name: a, valueFile: b}]", "did you mean `valuesFile`?"),
        ("sortOptions: {ordr: fifo}", "did you mean `order`?"),
        ("replicas: [{name: a, counts: 1}]", "did you mean `count`?"),
        ("vars: [{name: A, objRef: {kind: a, nam: b}}]", "did you mean `name`?"),
    ]);
}

#[test]
fn fields_of_plugins_are_warned_of_as_kustomize_drops_them() {
    let said = error_of("resources: [deployment.yaml]\ntransformers: [../config]\n");
    assert!(said.contains("unable to find one of 'kustomization.yaml'"), "{said}");
    let mut files = FILES.to_vec();
    files.push(("base/kustomization.yaml", "resources: [deployment.yaml]\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: p}\n  prefx: a-\n  fieldSpecs: [{path: metadata/name, creat: true}]\n"));
    let built = build(&MemTree::from_files(files), "base", &BuildOptions::default()).unwrap();
    let warnings = built.warnings().join("\n");
    assert!(warnings.contains("the field `prefx` is not known; did you mean `prefix`?"), "{warnings}");
    assert!(
        warnings.contains("the field `fieldSpecs.0.creat` is not known; did you mean `create`?"),
        "{warnings}"
    );
    table(&[(
        "transformers:\n- '{apiVersion: builtin, kind: PrefixTransfomer, metadata: {name: p}}'\n",
        "did you mean `PrefixTransformer`?",
    )]);
}

#[test]
fn objects_that_are_not_there() {
    let patch = |name: &str, kind: &str, more: &str| {
        format!(
            "resources: [deployment.yaml]\npatches:\n- patch: '{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: {name}{more}}}, spec: {{replicas: 2}}}}'\n"
        )
    };
    let eu = ", namespace: eu";
    table(&[
        (&patch("shp", "Deployment", eu), "did you mean Deployment.v1.apps/shop.eu in base/deployment.yaml"),
        (&patch("shop", "Deployment", ""), "did you mean Deployment.v1.apps/shop.eu"),
        (
            &patch("shop", "StatefulSet", eu),
            "there is Deployment.v1.apps/shop.eu in base/deployment.yaml of that name",
        ),
        (&patch("other", "Deployment", eu), "of that kind there are: Deployment.v1.apps/shop.eu"),
        (&patch("other", "Deploymnt", eu), "did you mean the kind Deployment?"),
        ("resources: [deployment.yaml]\nreplicas: [{name: shpo, count: 2}]", "did you mean `shop`?"),
        (
            "resources: [deployment.yaml]\nreplacements: [{source: {kind: Deployment, name: shp}, targets: [{select: {name: shop}}]}]",
            "nothing selected by Deployment.[noVer].[noGrp]/shp.[noNs]\ndid you mean Deployment.v1.apps/shop.eu",
        ),
        (
            "resources: [deployment.yaml]\nvars: [{name: A, objref: {kind: Deployment, name: shp, apiVersion: apps/v1}}]",
            "did you mean Deployment.v1.apps/shop.eu",
        ),
        (
            "configMapGenerator: [{name: setings, behavior: merge, literals: [a=b]}, {name: settings, literals: [a=b]}]",
            "does not exist; cannot merge or replace",
        ),
    ]);
}

#[test]
fn what_kustomize_passes_over_is_warned_of() {
    let operation = r#"[{"op": "replace", "path": "/spec/replicas", "value": 2}]"#;
    table(&[
        (
            &format!(
                "resources: [deployment.yaml]\npatches:\n- target: {{kind: Deployment, name: shp.*}}\n  patch: |-\n    {operation}"
            ),
            "# Warning: base/kustomization.yaml:3:3: the patch selects no object (did you mean Deployment.v1.apps/shop.eu",
        ),
        (
            "resources: [deployment.yaml]\npatches:\n- target: {kind: Deployement}\n  patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}'\n",
            "the patch selects no object (there is no Deployement; did you mean the kind Deployment?)",
        ),
        (
            "resources: [deployment.yaml]\nreplacements: [{sourceValue: x, targets: [{select: {kind: Deployment, name: shpo}, fieldPaths: [spec.a]}]}]",
            "a target of the replacement selects no object (did you mean Deployment.v1.apps/shop.eu",
        ),
        (
            "resources: [deployment.yaml]\nimages: [{name: shop, newTag: '2'}]",
            "no image is named `shop`; did you mean `registry.example.com/team/shop`?",
        ),
        (
            "resources: [deployment.yaml]\nimages: [{name: registry.example.com/taem/shop1, newTag: '2'}]",
            "did you mean `registry.example.com/team/shop`?",
        ),
    ]);
    let quiet = [
        "resources: [deployment.yaml]\nimages: [{name: nginx, newTag: '2'}]",
        "resources: [deployment.yaml]\nimages: [{name: registry.example.com/team/shop, newTag: '2'}]",
    ];
    for kustomization in quiet {
        assert_eq!(error_of(kustomization), "", "{kustomization}");
    }
}

#[test]
fn fields_where_paths_end() {
    let replaced = |source: &str, target: &str| {
        format!(
            "resources: [deployment.yaml]\nreplacements: [{{source: {{kind: Deployment, fieldPath: '{source}'}}, targets: [{{select: {{kind: Deployment}}, fieldPaths: ['{target}']}}]}}]"
        )
    };
    let operation = |text: &str| {
        format!(
            "resources: [deployment.yaml]\npatches: [{{target: {{kind: Deployment}}, patch: '[{text}]'}}]"
        )
    };
    table(&[
        (&replaced("spec.replica", "spec.x"), "`spec` has no field `replica`; did you mean `replicas`?"),
        (
            &replaced("metadata.name", "spec.template.spec.containers.[name=wbe].image"),
            "no item of `spec.template.spec.containers` has name=wbe; did you mean `web`?",
        ),
        (
            &operation(r#"{"op": "replace", "path": "/spec/template/sepc/x", "value": 1}"#),
            "`spec.template` has no field `sepc`; did you mean `spec`?",
        ),
        (
            &operation(r#"{"op": "remove", "path": "/spec/replica"}"#),
            "`spec` has no field `replica`; did you mean `replicas`?",
        ),
    ]);
}

#[test]
fn folders_without_a_kustomization() {
    let error = |files: &[(&str, &str)]| {
        let built = build(&MemTree::from_files(files.iter().copied()), "", &BuildOptions::default());
        built.expect_err("has none").advice().join("")
    };
    assert_eq!(
        error(&[("base/kustomization.yaml", ""), ("overlays/eu/kustomization.yml", ""), ("docs/a.md", "")]),
        "there are kustomizations in base, overlays/eu"
    );
    assert_eq!(
        error(&[("kustomisation.yaml", "")]),
        "`kustomisation.yaml` there is not looked at: its name would have to be `kustomization.yaml`"
    );
    assert_eq!(error(&[("a.yaml", "")]), "");
}

#[test]
fn files_that_are_not_there() {
    table(&[
        ("resources: [deploymnt.yaml]", "did you mean `deployment.yaml`?"),
        ("resources: [scale.yaml]", "did you mean `patches/scale.yaml`?"),
        ("patches: [{path: scale.yaml}]", "did you mean `patches/scale.yaml`?"),
        ("patches: [{path: patch/scale.yml}]", "did you mean `patches/scale.yaml`?"),
        ("components: [../part]", "did you mean `../parts`?"),
        ("resources: [../prts]", "did you mean `../parts`?"),
        (
            "configMapGenerator: [{name: a, files: [setting.properties]}]",
            "did you mean `settings.properties`?",
        ),
        ("secretGenerator: [{name: a, envs: [settings.propertes]}]", "did you mean `settings.properties`?"),
        ("transformers: [plugins.yaml]", "evalsymlink failure"),
        ("configurations: [setings.properties]", "did you mean `settings.properties`?"),
        ("crds: [setings.properties]", "did you mean `settings.properties`?"),
        ("openapi: {path: setings.properties}", "did you mean `settings.properties`?"),
        ("replacements: [{path: setings.properties}]", "did you mean `settings.properties`?"),
    ]);
}
