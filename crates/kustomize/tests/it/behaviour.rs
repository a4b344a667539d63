//! What is ours beside kustomize's output: origins, places and advice of errors, overlays, limits.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tiphys_kustomize::{BuildOptions, ErrorKind, Limits, Overlay, build, build_with_warnings};
use tiphys_value::{ObjectExt, OriginKind};
use tiphys_vfs::MemTree;

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: web
        image: registry.example.com/shop:1.0
";

fn tree(kustomization: &str) -> MemTree {
    MemTree::from_files([("kustomization.yaml", kustomization), ("d.yaml", DEPLOYMENT)])
}

#[test]
fn origins_name_every_writer_last_first() {
    let tree = tree(
        "resources: [d.yaml]\nimages:\n- name: registry.example.com/shop\n  newTag: \"2\"\npatches:\n- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata:\n      name: shop\n    spec:\n      replicas: 4\n",
    );
    let options = BuildOptions { origins: true, ..BuildOptions::default() };
    let build = build(&tree, "", &options).unwrap();
    let object = &build.objects()[0];
    let chain = |path: &str| {
        let chain = object.origins.lookup(&path.parse().unwrap());
        chain.iter().map(|o| (o.kind, o.location.file.to_string(), o.location.line)).collect::<Vec<_>>()
    };
    assert_eq!(
        chain(".spec.replicas"),
        [(OriginKind::Patch, "kustomization.yaml".into(), 12), (OriginKind::Manifest, "d.yaml".into(), 6)]
    );
    assert_eq!(
        chain(".spec.template.spec.containers[0].image"),
        [
            (OriginKind::Transformer, "kustomization.yaml".into(), 3),
            (OriginKind::Manifest, "d.yaml".into(), 11)
        ]
    );
    assert_eq!(chain(".kind"), [(OriginKind::Manifest, "d.yaml".into(), 2)]);
}

#[test]
fn references_name_who_renamed_what_they_refer_to() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  serviceAccountName: sa\n  volumes:\n  - configMap:\n      name: settings\n";
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa}\n";
    let tree = MemTree::from_files([
        ("top/kustomization.yaml", "resources: [../base]\n\nnamePrefix: eu-\n"),
        (
            "base/kustomization.yaml",
            "resources: [p.yaml, sa.yaml]\nconfigMapGenerator:\n- name: settings\n  literals: [a=b]\n",
        ),
        ("base/p.yaml", pod),
        ("base/sa.yaml", account),
    ]);
    let options = BuildOptions { origins: true, ..BuildOptions::default() };
    let build = build(&tree, "top", &options).unwrap();
    let pod = build.objects().iter().find(|object| object.value["kind"] == "Pod").unwrap();
    let chain = |path: &str| {
        let chain = pod.origins.lookup(&path.parse().unwrap());
        chain
            .iter()
            .map(|o| (o.location.file.to_string(), o.location.line, o.detail.clone()))
            .collect::<Vec<_>>()
    };
    let account = chain(".spec.serviceAccountName");
    assert_eq!(
        account[0],
        ("top/kustomization.yaml".into(), 3, "name reference to ServiceAccount/eu-sa".into())
    );
    assert_eq!((account.last().unwrap().0.as_str(), account.last().unwrap().1), ("base/p.yaml", 5));
    let settings = chain(".spec.volumes[0].configMap.name");
    assert!(settings[0].2.starts_with("name reference to ConfigMap/eu-settings-"), "{settings:?}");
    assert!(settings.iter().all(|(file, ..)| !file.is_empty()), "{settings:?}");
}

#[test]
fn errors_have_places_and_advice() {
    let error = build(&tree("resource:\n- d.yaml\n"), "", &BuildOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kustomization);
    assert_eq!(error.location().unwrap().to_string(), "kustomization.yaml:1:1");
    assert!(error.advice()[0].contains("`resources`"), "{:?}", error.advice());
    let error = build(&tree("resources: [d.yaml, nope.yaml]\n"), "", &BuildOptions::default()).unwrap_err();
    assert_eq!(error.location().unwrap().line, 1);
    let replacement = "replacements:\n- source: {kind: Deployment, name: shops}\n  targets: [{select: {kind: Deployment}}]\n";
    for (text, advice) in [
        ("resources: [dd.yaml]\n", "did you mean `d.yaml`?"),
        (
            &*format!("resources: [d.yaml]\n{replacement}"),
            "did you mean Deployment.v1.apps/shop.[noNs] in d.yaml?",
        ),
    ] {
        let error = build(&tree(text), "", &BuildOptions::default()).unwrap_err();
        assert_eq!(error.advice(), [advice], "{error}");
    }
}

#[test]
fn functions_are_refused_by_name() {
    let tree = tree(
        "resources: [d.yaml]\ntransformers:\n- |-\n  apiVersion: example.com/v1\n  kind: Mangle\n  metadata:\n    name: m\n",
    );
    let error = build(&tree, "", &BuildOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("'Mangle'"), "{error}");
}

#[test]
fn an_application_overlays_in_memory() {
    let overlay = Overlay {
        name_prefix: "eu-".into(),
        images: vec!["registry.example.com/shop:${TAG}".into()],
        replicas: vec![("shop".into(), 7)],
        common_labels: BTreeMap::from([("team".into(), "carts".into())]),
        label_without_selector: true,
        namespace: "shop".into(),
        env: BTreeMap::from([("TAG".into(), "9".into())]),
        ..Overlay::default()
    };
    let options = BuildOptions { overlay: Some(overlay), ..BuildOptions::default() };
    let build = build(&tree("resources: [d.yaml]\n"), "", &options).unwrap();
    let object = &build.objects()[0].value;
    assert_eq!((object.name(), object.namespace()), ("eu-shop", "shop"));
    assert_eq!(object.int_at(&["spec", "replicas"]), Some(7));
    assert_eq!(object.label("team"), Some("carts"));
    assert!(object.at(&["spec", "selector"]).is_none());
    assert_eq!(
        object.pointer("/spec/template/spec/containers/0/image").unwrap(),
        "registry.example.com/shop:9"
    );
}

#[test]
fn aliases_cannot_exhaust_memory() {
    let mut bomb = String::from("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\na0: &a0 [x, x]\n");
    for level in 1..40 {
        bomb.push_str(&format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1));
    }
    let tree =
        MemTree::from_files([("kustomization.yaml", "resources: [b.yaml]\n"), ("b.yaml", bomb.as_str())]);
    let options = BuildOptions {
        limits: Limits { nodes_per_file: 10_000, ..Limits::default() },
        ..BuildOptions::default()
    };
    assert!(build(&tree, "", &options).is_err());
}

/// A patch, a field path and a prefix that are small, and what they make is not.
#[test]
fn what_a_build_makes_is_counted() {
    let copies: String =
        (0..60).map(|n| format!("    - {{op: copy, from: /data, path: /data/k{n}}}\n")).collect();
    let deeper: String = (1..600)
        .map(|n| format!("    - {{op: add, path: /data{}, value: {{}}}}\n", "/a".repeat(n)))
        .collect();
    let patch = |operations: &str| {
        format!("resources: [r.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |-\n{operations}")
    };
    let path = vec!["a"; 20_000].join(".");
    let field = format!(
        "resources: [r.yaml]\nreplacements:\n- source: {{kind: ConfigMap, name: one}}\n  targets:\n  - select: {{kind: ConfigMap}}\n    fieldPaths: [{path}]\n    options: {{create: true}}\n"
    );
    let label = format!(
        "resources: [r.yaml]\nlabels:\n- pairs: {{a: b}}\n  fields: [{{path: {}, create: true}}]\n",
        path.replace('.', "/")
    );
    let prefix = format!("resources: [r.yaml]\nnamePrefix: {}\n", "x".repeat(9 << 20));
    let one = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: b}}\n";
    let limits = Limits { memory: 8 << 20, ..Limits::default() };
    let options = BuildOptions { limits, ..BuildOptions::default() };
    for (kustomization, limit) in [
        (patch(&copies), "makes more than 8 MiB"),
        (patch(&deeper), "exceeded max depth of 512"),
        (field, "exceeded max depth of 512"),
        (label, "a path of 20000 steps exceeds the max depth of 512"),
        (prefix, "makes more than 8 MiB"),
    ] {
        let tree = MemTree::from_files([("kustomization.yaml", kustomization.as_str()), ("r.yaml", one)]);
        let error = build(&tree, "", &options).expect_err("is refused").to_string();
        assert!(error.contains(limit), "{error}");
    }
}

/// Labels, items of lists and patches are few; what they mean for all objects takes its time.
#[test]
fn the_time_of_a_build_is_limited() {
    let limits = Limits { time: std::time::Duration::ZERO, ..Limits::default() };
    let options = BuildOptions { limits, ..BuildOptions::default() };
    let tree = MemTree::from_files([
        ("kustomization.yaml", "resources: [r.yaml]\nlabels:\n- pairs: {a: b}\n"),
        ("r.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n"),
    ]);
    let error = build(&tree, "", &options).expect_err("the time is over");
    assert_eq!(error.to_string(), "the build takes longer than 0 s; --limit-time raises the limit");
    assert_eq!(error.kind(), tiphys_kustomize::ErrorKind::Limit);
}

/// With one search of the list for each item these are a thousand million comparisons.
#[test]
fn long_lists_are_merged_in_linear_time() {
    const COUNT: usize = 20_000;
    let list = |numbers: &mut dyn Iterator<Item = usize>, value: &str| -> String {
        numbers.map(|at| format!("{{name: k{at}, value: {value}}},")).collect()
    };
    let object = |env: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\nspec: {{template: {{spec: {{containers: [{{name: a, env: [{env}]}}]}}}}}}\n"
        )
    };
    let files = [
        ("kustomization.yaml", "resources: [d.yaml]\npatches: [{path: p.yaml}]\n".to_owned()),
        ("d.yaml", object(&list(&mut (0..COUNT), "old"))),
        ("p.yaml", object(&list(&mut (1..=COUNT).rev(), "new"))),
    ];
    let tree = MemTree::from_files(files.iter().map(|(name, text)| (*name, text.as_str())));
    let limits = Limits { time: std::time::Duration::MAX, ..Limits::default() };
    let built = build(&tree, "", &BuildOptions { limits, ..BuildOptions::default() }).unwrap();
    let env = built.objects()[0].value.pointer("/spec/template/spec/containers/0/env").unwrap();
    let env = env.as_array().unwrap();
    assert_eq!((env.len(), &env[0]["name"], &env[0]["value"]), (COUNT + 1, &"k20000".into(), &"new".into()));
    assert_eq!((&env[COUNT]["name"], &env[COUNT]["value"]), (&"k0".into(), &"old".into()));
}

/// Where each looks at all others, that takes minutes.
#[test]
fn thousands_of_generators_do_not_look_at_each_other() {
    let generators: String = (0..20_000).map(|at| format!("- {{name: g{at}, literals: [a=b]}}\n")).collect();
    let last = "- {name: g0, behavior: merge, literals: [c=d]}\n";
    let text = format!("configMapGenerator:\n{generators}{last}");
    let begun = std::time::Instant::now();
    let built = build(&tree(&text), "", &BuildOptions::default()).expect("builds");
    let built = built.objects();
    assert_eq!(built.len(), 20_000);
    assert_eq!(built[0].value["data"], serde_json::json!({"a": "b", "c": "d"}));
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    let twice = format!("configMapGenerator:\n{generators}- {{name: g7, literals: [c=d]}}\n");
    let error = build(&tree(&twice), "", &BuildOptions::default()).expect_err("is refused").to_string();
    assert!(error.contains("exists; can not use behavior: 'unspecified'"), "{error}");
}

/// Where kustomize ends with a panic.
#[test]
fn what_kustomize_panics_at_is_an_error() {
    let error = |files: &[(&str, &str)]| {
        let built = build(&MemTree::from_files(files.iter().copied()), "", &BuildOptions::default());
        built.expect_err("is refused").to_string()
    };
    let two = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: two}}\n";
    let same = "resources: [r.yaml]\nreplacements:\n- source: {kind: ConfigMap, name: one}\n  targets: [{select: {name: two}}]\n";
    assert_eq!(
        error(&[("kustomization.yaml", same), ("r.yaml", two)]),
        "may not add resource with an already registered id: ConfigMap.v1.[noGrp]/one.[noNs]"
    );
    let comma = "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'a,b'}}\n";
    assert_eq!(
        error(&[("kustomization.yaml", "resources: [r.yaml]\nnamePrefix: p-\n"), ("r.yaml", comma)]),
        "number of previous names, number of previous namespaces, number of previous kinds not equal"
    );
    let list = "resources: [r.yaml]\npatches:\n- target: {name: one}\n  patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": [\"c\"]}]'\n";
    assert!(
        error(&[("kustomization.yaml", list), ("r.yaml", two)])
            .starts_with("wrong node kind: expected MappingNode")
    );
}

/// Fragments that kustomizations and patches are made of.
fn fragment() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "resources",
        "patches",
        "- ",
        "d.yaml",
        ": ",
        "{",
        "}",
        "[",
        "]",
        "\n",
        "  ",
        "name",
        "shop",
        "kind",
        "Deployment",
        "images",
        "newTag",
        "$patch",
        "delete",
        "null",
        "&a",
        "*a",
        "<<",
        "|-\n",
        "\"",
        "'",
        "replicas",
        "labels",
        "pairs",
        "a/b[]",
        "[name=x]",
        "..",
        "/",
        "spec",
        "containers",
        "web",
        "0",
        "-1",
        "~",
        "!!int",
        "#",
        "namePrefix",
        "target",
        "op",
        "add",
        "path",
        "value",
        "vars",
        "replacements",
        "source",
        "fieldPaths",
        "*",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_kustomization_panics(text in fragment()) {
        let _ = build(&tree(&text), "", &BuildOptions::default());
    }

    #[test]
    fn no_patch_panics(text in fragment()) {
        let tree = MemTree::from_files([
            ("kustomization.yaml", "resources: [d.yaml]\npatches:\n- path: p.yaml\n  target: {kind: Deployment}\n"),
            ("d.yaml", DEPLOYMENT),
            ("p.yaml", text.as_str()),
        ]);
        let _ = build(&tree, "", &BuildOptions::default());
    }

    #[test]
    fn no_resource_panics(text in fragment()) {
        let tree = MemTree::from_files([
            ("kustomization.yaml", "resources: [r.yaml]\nnamespace: n\nnamePrefix: p-\nlabels: [{pairs: {a: b}, includeSelectors: true}]\n"),
            ("r.yaml", &*format!("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: x\n{text}")),
        ]);
        let _ = build(&tree, "", &BuildOptions::default());
    }
}

#[test]
fn objects_are_printed_by_way_of_json() {
    let built = |data: &str| {
        let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {data}\n");
        let files = [("kustomization.yaml", "resources: [a.yaml]\n"), ("a.yaml", object.as_str())];
        let built = build(&MemTree::from_files(files), "", &BuildOptions::default());
        built.map(|built| built.to_yaml()).map_err(|error| error.to_string())
    };
    let expected = "apiVersion: v1\ndata:\n  k: x y\nkind: ConfigMap\nmetadata:\n  name: a\n";
    assert_eq!(built("{k: \"x \\u0085 y\"}").unwrap(), expected);
    for (data, shown, reason) in [
        ("{k: \"\\x7f\"}", "{\"k\":\"\\x7f\"}", "yaml: control characters are not allowed"),
        (
            "{k: .inf, i: 1000000, l: [true, null, {}]}",
            "{\"i\":1000000, \"k\":+Inf, \"l\":[]interface {}{true, interface {}(nil), map[string]interface {}{}}}",
            "json: unsupported value: +Inf",
        ),
    ] {
        let expected = format!(
            "map[string]interface {{}}{{\"apiVersion\":\"v1\", \"data\":map[string]interface {{}}{shown}, \"kind\":\"ConfigMap\", \"metadata\":map[string]interface {{}}{{\"name\":\"a\"}}}}: {reason}"
        );
        assert_eq!(built(data), Err(expected));
    }
}

#[test]
fn warnings_come_before_what_fails() {
    let files = [("kustomization.yaml", "bases: [nowhere]\n")];
    let mut warnings = Vec::new();
    let options = BuildOptions::default();
    assert!(build_with_warnings(&MemTree::from_files(files), "", &options, &mut warnings).is_err());
    assert!(warnings[0].starts_with("# Warning: 'bases' is deprecated."), "{warnings:?}");
}

#[test]
fn types_have_kustomize_s_names() {
    for (kustomization, expected) in [
        (
            "patchesStrategicMerge: {}\n",
            "Go struct field Kustomization.patchesStrategicMerge of type []types.PatchStrategicMerge",
        ),
        (
            "patchesStrategicMerge: [1]\n",
            "Go struct field Kustomization.patchesStrategicMerge of type types.PatchStrategicMerge",
        ),
        (
            "sortOptions: {order: []}\n",
            "Go struct field SortOptions.sortOptions.order of type types.SortOrder",
        ),
        (
            "replicas: [{count: 1.5}]\n",
            "unmarshal number 1.5 into Go struct field Replica.replicas.count of type int64",
        ),
        ("replacements: [{targets: [{options: {index: 1.5}}]}]\n", "options.index of type int"),
        // Empty targets count as none.
        (
            "resources: [d.yaml]\nreplacements: [{source: {kind: Nothing}, targets: []}]\n",
            "replacements must specify a source and at least one target",
        ),
    ] {
        let error = build(&tree(kustomization), "", &BuildOptions::default()).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{kustomization}: {error}");
    }
}

#[test]
fn numbers_are_text_where_the_library_makes_them_so() {
    let built = |field: &str, config: &str| {
        let plugin = format!("apiVersion: builtin\nmetadata: {{name: p}}\n{config}\n");
        let files = [
            ("kustomization.yaml", &*format!("resources: [d.yaml]\n{field}: [p.yaml]\n")),
            ("d.yaml", DEPLOYMENT),
            ("p.yaml", if field == "configurations" { config } else { &plugin }),
        ];
        let built = build(&MemTree::from_files(files), "", &BuildOptions::default());
        built.map(|built| built.to_yaml()).map_err(|error| error.to_string())
    };
    let named = built(
        "transformers",
        "kind: PrefixTransformer\nprefix: 5\nfieldSpecs: [{path: metadata/name, version: 1}]",
    );
    assert!(named.unwrap().contains("name: shop"), "the spec is of another version");
    let tagged = built(
        "transformers",
        "kind: ImageTagTransformer\nimageTag: {name: registry.example.com/shop, newTag: 1.5}\nfieldSpecs: [{path: 'spec/template/spec/containers[]/image'}]",
    );
    assert!(tagged.unwrap().contains("shop:1.5"));
    // What stands in an embedded struct is not converted.
    for (field, config, expected) in [
        (
            "configurations",
            "namePrefix: [{path: a, kind: 5}]",
            "FieldSpec.namePrefix.Gvk.kind of type string",
        ),
        (
            "transformers",
            "kind: LabelTransformer\nfieldSpecs: [{path: a, kind: 5}]",
            "FieldSpec.fieldSpecs.Gvk.kind of type string",
        ),
        (
            "generators",
            "kind: ConfigMapGenerator\nliterals: [1]",
            "ConfigMapGeneratorPlugin.ConfigMapArgs.GeneratorArgs.KvPairSources.literals of type string",
        ),
        (
            "generators",
            "kind: SecretGenerator\ntype: 1",
            "SecretGeneratorPlugin.SecretArgs.type of type string",
        ),
        (
            "generators",
            "kind: HelmChartInflationGenerator\nname: a\nversion: 1.0",
            "HelmChartInflationGeneratorPlugin.HelmChart.version of type string",
        ),
    ] {
        let error = built(field, config).unwrap_err();
        assert!(error.ends_with(expected), "{config}: {error}");
    }
}

#[test]
fn vars_that_nothing_uses_are_told_before_what_fails() {
    let mut warnings = Vec::new();
    let kustomization = "resources: [d.yaml]\nconfigurations: [c.yaml]\nvars:\n- name: V\n  objref: {kind: Deployment, name: shop, apiVersion: apps/v1}\n";
    let files = [
        ("kustomization.yaml", kustomization),
        ("d.yaml", DEPLOYMENT),
        ("c.yaml", "varReference:\n- {kind: Deployment, path: spec/replicas/x}\n"),
    ];
    let options = BuildOptions::default();
    assert!(build_with_warnings(&MemTree::from_files(files), "", &options, &mut warnings).is_err());
    assert_eq!(warnings.last().unwrap(), "well-defined vars that were never replaced: V");
}

/// A text in UTF-16 with its byte order mark.
fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
}

#[test]
fn files_are_read_in_the_encodings_that_kustomize_reads() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: \"é\"}\n";
    let patch = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {z: \"ü\"}\n";
    let kustomization = "resources: [r.yaml]\npatches: [{path: p.yaml}]\n";
    for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let mut tree = MemTree::default();
        tree.insert("kustomization.yaml", utf16(kustomization, bytes).as_slice()).unwrap();
        tree.insert("r.yaml", utf16(map, bytes).as_slice()).unwrap();
        tree.insert("p.yaml", utf16(patch, bytes).as_slice()).unwrap();
        let built = build(&tree, "", &BuildOptions::default()).unwrap();
        let object = &built.objects()[0].value;
        assert_eq!((object["data"]["k"].as_str(), object["data"]["z"].as_str()), (Some("é"), Some("ü")));
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_as_kustomize_refuses_them() {
    let mut latin = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: \"caf".to_vec();
    latin.extend(b"\xE9\"}\n");
    let mut tree = MemTree::from_files([("kustomization.yaml", "resources: [r.yaml]\n")]);
    tree.insert("r.yaml", latin.as_slice()).unwrap();
    let error = build(&tree, "", &BuildOptions::default()).unwrap_err();
    let expected = "accumulating resources from 'r.yaml': MalformedYAMLError: yaml: invalid trailing UTF-8 octet in File: r.yaml";
    assert!(error.to_string().contains(expected), "{error}");
}
