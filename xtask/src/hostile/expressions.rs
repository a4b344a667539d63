//! Expressions and programs of a repository: jq, Lua, Jsonnet, CEL, and the templates of ApplicationSets.

use super::repository::{Case, application, config_map};

/// The inputs.
pub(super) fn cases() -> Vec<Case> {
    [jq(), lua(), jsonnet(), cel(), sets()].into_iter().flatten().collect()
}

fn jq() -> Vec<Case> {
    let case = |(name, expression): (&str, &str)| {
        let differences =
            format!("  ignoreDifferences:\n  - kind: ConfigMap\n    jqPathExpressions: ['{expression}']\n");
        let files = [("w/x.yaml", config_map("x")), ("apps/a.yaml", application("a", "w", "", &differences))];
        Case::new(&format!("jq-{name}"), files)
    };
    [
        ("endless", ".data | [limit(1e12;repeat(1))]"),
        ("recursion", "def f: f; f"),
        ("range", "[range(1e9)] | length"),
        ("repeat", ".data.a * 1e9"),
        ("until", "until(false;.)"),
        ("splits", r#"[range(100000)|tostring]|join(",")|splits("")"#),
    ]
    .map(case)
    .into()
}

fn lua() -> Vec<Case> {
    let case = |(name, script): (&str, &str)| {
        let settings = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: argocd-cm, namespace: argocd}}\ndata:\n  \
             resource.customizations.health.ConfigMap: |\n    {script}\n"
        );
        let root = application("a", "w", "", "") + "---\n" + &application("root", "apps", "", "");
        Case::new(
            &format!("lua-{name}"),
            [("w/x.yaml", config_map("x")), ("apps/cm.yaml", settings), ("apps/a.yaml", root)],
        )
    };
    [
        ("endless", "while true do end return {}"),
        ("text", "return {status=string.rep(\"x\",1e9)}"),
        ("table", "local t={} for i=1,1e9 do t[i]=i end return {}"),
        ("pattern", "return {status=string.find(string.rep(\"a\",100000),string.rep(\"a*\",100)..\"b\")}"),
        ("recursion", "local function f() return f()+1 end f() return {}"),
        ("coroutine", "local c=coroutine.wrap(function() while true do end end) c() return {}"),
        ("caught", "while true do pcall(function() while true do end end) end"),
    ]
    .map(case)
    .into()
}

fn jsonnet() -> Vec<Case> {
    let case = |(name, program): (&str, &str)| {
        let app = application("a", "w", "    directory: {jsonnet: {}}\n", "");
        Case::new(&format!("jsonnet-{name}"), [("w/x.jsonnet", program.to_owned()), ("apps/a.yaml", app)])
    };
    [
        ("recursion", "local f(x)=f(x+1); f(0)"),
        ("text", "std.repeat(\"x\",1000000000)"),
        ("array", "std.length(std.makeArray(1000000000,function(i)i))"),
        ("doubled", "local d(x)=[x,x]; std.foldl(function(a,b)d(a),std.range(1,40),1)"),
        ("itself", "import \"x.jsonnet\""),
    ]
    .map(case)
    .into()
}

/// A definition with a rule, and an object with a text.
fn cel() -> Vec<Case> {
    let case = |(name, rule, text): (&str, String, String)| {
        let rule = serde_json::Value::from(rule);
        let definition = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: foos.example.com}}\nspec:\n  \
             group: example.com\n  scope: Namespaced\n  names: {{plural: foos, singular: foo, kind: Foo, listKind: FooList}}\n  \
             versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, \
             properties: {{spec: {{type: object, x-kubernetes-validations: [{{rule: {rule}}}], properties: {{s: {{type: string}}}}}}}}}}}}\n\
             ---\napiVersion: example.com/v1\nkind: Foo\nmetadata: {{name: x, namespace: shop}}\nspec: {{s: \"{text}\"}}\n"
        );
        Case::new(&format!("cel-{name}"), [("w/x.yaml", definition)])
    };
    let nested = "abcdefg"
        .chars()
        .rev()
        .fold("g".to_owned(), |inner, name| format!("[1,2,3,4,5,6,7,8,9,10].map({name},{inner})"));
    let short = "a".to_owned();
    [
        ("replace", format!("self.s.replace(\"\",\"{}\").size() > 0", "b".repeat(60_000)), "a".repeat(90_000)),
        ("precision", "\"%.999999999f\".format([1.5]) == \"\"".into(), short.clone()),
        ("width", "\"%999999999d\".format([1]) == \"\"".into(), short.clone()),
        ("nested", format!("{nested}.size() > 0"), short.clone()),
        ("chain", format!("{} != \"\"", vec!["self.s"; 5000].join("+")), "a".repeat(10_000)),
        ("pattern", format!("self.s.matches(\"{}b\")", "(a*)*".repeat(50)), "a".repeat(10_000)),
        ("deep", "(".repeat(5000) + "true" + &")".repeat(5000), short.clone()),
        ("split", "self.s.split(\"\").size() > 0".into(), "a".repeat(1_000_000)),
        ("join", "self.s.split(\"\").map(x, self.s).join(\"\").size() > 0".into(), "a".repeat(10_000)),
        ("negations", "!".repeat(20_000) + "true", short.clone()),
        ("division", "1 / 0 == 1".into(), short.clone()),
        ("remainder", "-9223372036854775808 / -1 == 1".into(), short.clone()),
        ("index", "[1][9223372036854775807] == 1".into(), short.clone()),
        ("substring", "\"é\".substring(1, 1) == \"\" && \"é\".charAt(0) != \"\"".into(), short.clone()),
        ("duration", "duration(\"9223372036854775807s\") > duration(\"1s\")".into(), short.clone()),
        ("time", "timestamp(\"9999-12-31T23:59:59Z\") + duration(\"99999h\") > timestamp(\"1970-01-01T00:00:00Z\")".into(), short.clone()),
        ("quantity", "quantity(\"1e999999999\").isGreaterThan(quantity(\"1\"))".into(), short.clone()),
        ("range", "cidr(\"::/0\").containsIP(\"1.1.1.1\")".into(), short.clone()),
        ("address", "url(\"http://[\").getHost() == \"\"".into(), short),
    ]
    .map(case)
    .into()
}

fn sets() -> Vec<Case> {
    let case = |name: &str, generators: &str, of_template: &str, more: &str| {
        let set = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: s, namespace: argocd}}\nspec:\n  goTemplate: true\n  \
             generators: {generators}\n{more}  template: {{metadata: {{name: '{of_template}'}}, spec: {{project: default, destination: \
             {{server: 'https://kubernetes.default.svc', namespace: shop}}, source: {{repoURL: 'https://git.example.com/org/repo.git', path: w}}}}}}\n"
        );
        Case::new(&format!("set-{name}"), [("w/x.yaml", config_map("x")), ("apps/s.yaml", set)])
    };
    let list = |key: &str, count: usize| {
        let elements: Vec<String> = (0..count).map(|at| format!("{{{key}: '{at}'}}")).collect();
        format!("{{list: {{elements: [{}]}}}}", elements.join(","))
    };
    let one = "[{list: {elements: [{i: '0'}]}}]";
    let matrix = format!("[{{matrix: {{generators: [{},{}]}}}}]", list("i", 3000), list("j", 3000));
    let in_yaml = "[{list: {elements: [{i: '0'}], elementsYaml: '{{ repeat 10000000 \"- {a: 1}\\n\" }}'}}]";
    vec![
        case("list", &format!("[{}]", list("i", 20_000)), "x{{.i}}", ""),
        case("matrix", &matrix, "x{{.i}}-{{.j}}", ""),
        case("yaml", in_yaml, "x", ""),
        case("loops", one, "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}x", ""),
        case("patch", one, "x", "  templatePatch: '{{ repeat 100000000 \"x\" }}'\n"),
    ]
}
