//! Files that readers of every format meet: dense, deep, multiplying, endless.

use super::repository::{CHART, Case, Special, application, config_map};

/// The inputs.
pub(super) fn cases() -> Vec<Case> {
    [yaml(), kustomizations(), schemas(), no_regular_files(), names(), scripts()]
        .into_iter()
        .flatten()
        .collect()
}

/// Ten levels, each with the one before nine times.
fn laughs() -> String {
    let levels = (1..12)
        .map(|level| format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(",")));
    format!("a0: &a0 [x,x,x,x,x,x,x,x,x]\n{}", levels.collect::<String>())
}

/// A long scalar, and many aliases of it.
fn long_aliases() -> String {
    format!("s: &s \"{}\"\nd: [{}1]\n", "x".repeat(80_000), "*s,".repeat(38_000))
}

fn yaml() -> Vec<Case> {
    let manifest = |name: &str, more: String| {
        Case::new(&format!("yaml-{name}"), [("w/x.yaml", config_map("x") + &more)])
    };
    let documents = (0..50_000).map(|at| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x{at}}}\ndata: {{a: b}}\n---\n")
    });
    let keys = (0..800_000).map(|at| format!("  k{at}: 1\n"));
    vec![
        manifest("aliases", long_aliases()),
        manifest("laughs", laughs()),
        manifest("lists", format!("d: [{}1]\n", "[],".repeat(2_500_000))),
        manifest("maps", format!("d: [{}1]\n", "{a: 1},".repeat(1_500_000))),
        manifest("deep", format!("d: {}{}\n", "[".repeat(200_000), "]".repeat(200_000))),
        manifest("deep-maps", format!("d: {}{}\n", "{a: ".repeat(100_000), "}".repeat(100_000))),
        manifest("keys", format!("d:\n{}", keys.collect::<String>())),
        manifest("merged", format!("a: &a {{k: 1}}\nd: [{}1]\n", "{<<: *a},".repeat(500_000))),
        Case::new("yaml-documents", [("w/x.yaml", documents.collect::<String>())]),
        Case::new("yaml-scalar", [("w/x.yaml", config_map(&"x".repeat(40_000_000)))]),
        Case::new(
            "yaml-values",
            [
                ("w/Chart.yaml", CHART.to_owned()),
                ("w/values.yaml", long_aliases()),
                ("w/templates/c.yaml", config_map("x")),
            ],
        ),
        Case::new(
            "yaml-application",
            [("w/x.yaml", config_map("x")), ("apps/b.yaml", application("b", "w", "", &long_aliases()))],
        ),
        Case::new(
            "json-lists",
            [(
                "w/x.json",
                format!(
                    "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"x\"}},\"d\":[{}1]}}",
                    "{},".repeat(2_000_000)
                ),
            )],
        ),
    ]
}

fn kustomizations() -> Vec<Case> {
    let case = |name: &str, text: String, value: &str| {
        Case::new(
            &format!("kustomize-{name}"),
            [("w/kustomization.yaml", text), ("w/x.yaml", config_map(value))],
        )
    };
    let copies = (0..40).map(|at| format!("    - {{op: copy, from: /data, path: /data/k{at}}}\n"));
    let levels = (1..20).flat_map(|level| {
        ["a", "b"].map(|side| {
            let below = level + 1;
            let text = format!("namePrefix: {side}-\nresources: [../../l{below}/a, ../../l{below}/b]\n");
            (format!("l{level}/{side}/kustomization.yaml"), text)
        })
    });
    let leaves = ["a", "b"].into_iter().flat_map(|side| {
        [
            (format!("l20/{side}/kustomization.yaml"), "resources: [x.yaml]\n".to_owned()),
            (format!("l20/{side}/x.yaml"), config_map("x")),
        ]
    });
    let top = ("w/kustomization.yaml".to_owned(), "resources: [../l1/a, ../l1/b]\n".to_owned());
    let replacement = "- source: {kind: ConfigMap, fieldPath: data.a}\n  targets: [{select: {kind: ConfigMap}, \
                       fieldPaths: [data.a], options: {delimiter: \"\", index: 1}}]\n";
    vec![
        case(
            "copies",
            format!(
                "resources: [x.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |\n{}",
                copies.collect::<String>()
            ),
            "x",
        ),
        case("itself", "resources: [../w]\n".to_owned(), "x"),
        case(
            "replacements",
            format!("resources: [x.yaml]\nreplacements:\n{}", replacement.repeat(3000)),
            &"x".repeat(50_000),
        ),
        Case::new("kustomize-levels", levels.chain(leaves).chain([top])),
        Case::new(
            "kustomize-file",
            [
                ("w/kustomization.yaml", b"configMapGenerator:\n- name: x\n  files: [large]\n".to_vec()),
                ("w/large", vec![0; 60_000_000]),
            ],
        ),
    ]
}

fn schemas() -> Vec<Case> {
    let case = |name: &str, schema: String, values: String| {
        Case::new(
            &format!("schema-{name}"),
            [
                ("w/Chart.yaml", CHART.to_owned()),
                ("w/templates/c.yaml", config_map("x")),
                ("w/values.yaml", values),
                ("w/values.schema.json", schema),
            ],
        )
    };
    let doubled = (0..30).map(|at| {
        let next = at + 1;
        format!(r##""d{at}":{{"anyOf":[{{"$ref":"#/definitions/d{next}"}},{{"$ref":"#/definitions/d{next}"}}]}},"##)
    });
    let items = (0..100_000).map(|at| format!("{{k: {at}}},"));
    let patterns: Vec<String> = (0..3000).map(|at| format!(r#""k.*{at}.*":{{}}"#)).collect();
    let keys = (0..3000).map(|at| format!("k{at}: 1\n"));
    vec![
        case(
            "doubled",
            format!(
                r##"{{"definitions":{{{}"d30":{{"type":"string"}}}},"properties":{{"a":{{"$ref":"#/definitions/d0"}}}}}}"##,
                doubled.collect::<String>()
            ),
            "a: 1\n".to_owned(),
        ),
        case(
            "unique",
            r#"{"properties":{"a":{"uniqueItems":true}}}"#.to_owned(),
            format!("a: [{}]\n", items.collect::<String>()),
        ),
        case("patterns", format!("{{\"patternProperties\":{{{}}}}}", patterns.join(",")), keys.collect()),
        case(
            "large-pattern",
            r#"{"properties":{"a":{"pattern":"((a{100}){100}){100}"}}}"#.to_owned(),
            format!("a: {}\n", "a".repeat(100_000)),
        ),
        case("itself", r##"{"$ref":"#"}"##.to_owned(), "a: 1\n".to_owned()),
        case("address", r#"{"$ref":"http://127.0.0.1:1/x"}"#.to_owned(), "a: 1\n".to_owned()),
        case("file", r#"{"$ref":"file:///etc/passwd"}"#.to_owned(), "a: 1\n".to_owned()),
    ]
}

fn no_regular_files() -> Vec<Case> {
    let chart =
        || Case::new("", [("w/Chart.yaml", CHART.to_owned()), ("w/templates/c.yaml", config_map("x"))]);
    let manifest = || Case::new("", [("w/x.yaml", config_map("x"))]);
    [
        ("manifest", manifest(), Special::Pipe("w/y.yaml")),
        ("values", chart(), Special::Pipe("w/values.yaml")),
        ("template", chart(), Special::Pipe("w/templates/d.yaml")),
        ("chart", manifest(), Special::Pipe("w/Chart.yaml")),
        ("kustomization", manifest(), Special::Pipe("w/kustomization.yaml")),
        ("settings", manifest(), Special::Pipe("tiphys.toml")),
        ("archive", chart(), Special::Pipe("w/charts/x-1.0.0.tgz")),
        ("workflow", manifest(), Special::Pipe(".github/workflows/b.yml")),
        ("attributes", manifest(), Special::Pipe(".gitattributes")),
        ("ignored", chart(), Special::Pipe("w/.helmignore")),
        ("device", manifest(), Special::Device("w/z.yaml")),
    ]
    .into_iter()
    .map(|(name, case, special)| case.with(&format!("file-{name}"), special))
    .collect()
}

/// Names and texts that a terminal, a log or a comment would obey.
fn names() -> Vec<Case> {
    const TEXT: &str = "\\u001b[31mEVIL\\u001b]0;t\\u0007\\u202eRTL\\u2066\\u009b31m \\r\\n::error::x\\n::add-mask::x\\n<script>alert(1)</script> | [a](javascript:alert(1))";
    let named = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"x{TEXT}\"}}\n");
    let app = application("b", "w", "", "").replace("{name: b,", &format!("{{name: \"b{TEXT}\","));
    let revision = application("c", "w", "", "")
        .replace("targetRevision: HEAD", &format!("targetRevision: \"r{TEXT}\""));
    let folder = application("d", "w", "", "").replace("path: w", &format!("path: \"w{TEXT}\""));
    let failing = "{{ fail \"\\x1b]0;pwn\\x07\\x1b[31mRED\\u202eRTL\\n::error::x\" }}";
    vec![
        Case::new("name-object", [("w/x.yaml", named)]),
        Case::new("name-application", [("w/x.yaml", config_map("x")), ("apps/b.yaml", app)]),
        Case::new("name-revision", [("w/x.yaml", config_map("x")), ("apps/c.yaml", revision)]),
        Case::new("name-folder", [("w/x.yaml", config_map("x")), ("apps/d.yaml", folder)]),
        Case::new("name-failure", [("w/Chart.yaml", CHART), ("w/templates/c.yaml", failing)]),
        Case::new("name-file", [("w/x\u{1b}[31m\u{202e}.yaml", config_map("x").replace("v1", "v9"))]),
    ]
}

/// What tools beside Argo CD read.
fn scripts() -> Vec<Case> {
    let case = |name: &str, path: &str, text: String| {
        Case::new(&format!("tool-{name}"), [("w/x.yaml", config_map("x")), (path, text)])
    };
    let doubled =
        (0..40).map(|at| format!("  a{at} = \"${{local.a{next}}}${{local.a{next}}}\"\n", next = at + 1));
    vec![
        case("settings", "tiphys.toml", "a=".repeat(100_000)),
        case("compose", "docker-compose.yml", laughs()),
        case(
            "terraform-deep",
            "main.tf",
            format!("locals {{\n  a = {}{}\n}}\n", "[".repeat(50_000), "]".repeat(50_000)),
        ),
        case(
            "terraform-doubled",
            "main.tf",
            format!("locals {{\n{}  a40 = \"x\"\n}}\n", doubled.collect::<String>()),
        ),
        case("shell", "run.sh", format!("#!/bin/bash\nkubectl apply -f {}\n", "$(".repeat(20_000))),
        case(
            "workflow",
            ".github/workflows/a.yml",
            format!(
                "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n    - run: ${{{{ {}1{} }}}}\n",
                "(".repeat(20_000),
                ")".repeat(20_000)
            ),
        ),
        case("dockerfile", "Dockerfile", format!("FROM x\n{}", "RUN \\\n".repeat(300_000))),
        case(
            "ansible",
            "playbook.yml",
            format!("- hosts: all\n  tasks:\n  - shell: \"{{{{ {} }}}}\"\n", "(".repeat(20_000)),
        ),
        case(
            "flux",
            "flux/k.yaml",
            format!(
                "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: a, namespace: flux-system}}\n\
                 spec:\n  path: ./w\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n  postBuild: {{substitute: {{a: \"{}\"}}}}\n",
                "${a}".repeat(1000)
            ),
        ),
    ]
}
