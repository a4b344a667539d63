//! Every scalar of a rendered object names the template text and the values that made it. A named
//! value is right if changing it changes the field.

use std::sync::Arc;

use tiphys_helm::{Chart, RenderOptions, ValuesSource, template};
use tiphys_value::{FieldPath, OriginKind, RenderedObject, Segment, Value};
use tiphys_vfs::MemTree;

const HELPERS: &str = r#"{{- define "web.name" -}}{{ .Release.Name }}-{{ .Values.nameSuffix }}{{- end }}
{{- define "web.labels" -}}
app: {{ include "web.name" . }}
tier: {{ .Values.tier | quote }}
{{- end }}
"#;

const DEPLOYMENT: &str = r#"{{- $image := .Values.image }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "web.name" . }}
  labels:
    {{- include "web.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  template:
    spec:
      containers:
        - name: web
          image: "{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}"
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
          ports:
          {{- range .Values.ports }}
            - containerPort: {{ . }}
          {{- end }}
"#;

const VALUES: &str = "nameSuffix: web
tier: front
replicas: 1
image:
  repository: nginx
  tag: \"1\"
resources:
  limits:
    cpu: 100m
ports:
  - 80
  - 443
";

fn chart() -> Chart {
    let tree = MemTree::from_files([
        ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("charts/web/values.yaml", VALUES),
        ("charts/web/templates/_helpers.tpl", HELPERS),
        ("charts/web/templates/deployment.yaml", DEPLOYMENT),
    ]);
    Chart::load(&tree, "charts/web").unwrap()
}

fn render(extra: Vec<ValuesSource>) -> RenderedObject {
    let options = RenderOptions {
        release_name: "r".to_owned(),
        namespace: "default".to_owned(),
        values: extra,
        origins: true,
        ..RenderOptions::default()
    };
    template(&chart(), &options).unwrap().objects().remove(0)
}

/// The chain of a field, one line each: kind, place, detail.
fn chain(object: &RenderedObject, path: &str) -> Vec<String> {
    let path: FieldPath = path.parse().unwrap();
    let show =
        |origin: &tiphys_value::Origin| format!("{:?} {} {}", origin.kind, origin.location, origin.detail);
    object.origins.lookup(&path).iter().map(show).collect()
}

#[test]
fn a_field_names_action_includes_and_values() {
    let file = "image:\n  tag: \"2\"\n";
    let object = render(vec![
        ValuesSource::File("env/prod.yaml".to_owned(), Arc::from(file.as_bytes())),
        ValuesSource::Set("replicas=3".to_owned()),
    ]);
    assert_eq!(
        chain(&object, ".spec.replicas"),
        [
            "Template charts/web/templates/deployment.yaml:9:16 web/templates/deployment.yaml",
            "Values --set replicas=3 .Values.replicas",
        ]
    );
    assert_eq!(
        chain(&object, ".spec.template.spec.containers[0].image"),
        [
            "Template charts/web/templates/deployment.yaml:14:22 web/templates/deployment.yaml",
            "Values charts/web/values.yaml:5:15 .Values.image.repository",
            "Values env/prod.yaml:2:8 .Values.image.tag",
        ]
    );
    assert_eq!(
        chain(&object, ".spec.template.spec.containers[0].resources.limits.cpu")[1..],
        ["Values charts/web/values.yaml:9:10 .Values.resources.limits.cpu"]
    );
    assert_eq!(
        chain(&object, ".spec.template.spec.containers[0].ports[1].containerPort")[1..],
        ["Values charts/web/values.yaml:12:5 .Values.ports[1]"]
    );
}

#[test]
fn included_text_keeps_its_own_place() {
    let object = render(Vec::new());
    let chain = chain(&object, ".metadata.labels.tier");
    assert_eq!(chain[0], "Template charts/web/templates/_helpers.tpl:4:10 web.labels");
    assert!(chain[1].starts_with("Include charts/web/templates/deployment.yaml:7:"), "{chain:?}");
    assert_eq!(chain[2], "Values charts/web/values.yaml:2:7 .Values.tier");
}

/// The `--set` text that gives the value at `path` another value of its type.
fn change(detail: &str, value: &Value) -> Option<String> {
    let path: FieldPath = detail.strip_prefix(".Values")?.parse().ok()?;
    let steps: String = path
        .0
        .iter()
        .map(|segment| match segment {
            Segment::Key(key) => format!(".{key}"),
            Segment::Index(index) => format!("[{index}]"),
        })
        .collect();
    let changed = if value.is_number() { "7".to_owned() } else { "changed".to_owned() };
    Some(format!("{}={changed}", steps.trim_start_matches('.')))
}

#[test]
fn changing_a_named_value_changes_the_field() {
    let object = render(Vec::new());
    let paths = FieldPath::leaves(&object.value);
    let mut named = 0;
    for path in &paths {
        let chain = object.origins.lookup(path);
        assert!(chain.iter().any(|origin| origin.kind == OriginKind::Template), "{path} has no template");
        let before = path.get(&object.value).unwrap();
        for origin in chain.iter().filter(|origin| origin.kind == OriginKind::Values) {
            named += 1;
            let changed = render(vec![ValuesSource::Set(change(&origin.detail, before).unwrap())]);
            let after = path.get(&changed.value);
            assert_ne!(after, Some(before), "{path} names {} wrongly", origin.detail);
        }
    }
    assert!(named >= 9, "only {named} values named");
}

#[test]
fn plain_text_has_the_line_and_column_where_it_stands() {
    let object = render(Vec::new());
    let place = |path: &str| {
        let location = &object.origins.lookup(&path.parse().unwrap())[0].location;
        (location.line, location.column)
    };
    assert_eq!(place(".kind"), (3, 7));
    assert_eq!(place(".spec.template.spec.containers[0].name"), (13, 17));
    assert_eq!((object.location.line, object.location.column), (2, 1));
}

/// Renders one template with values; for each field of its object the values that it names.
fn values_named(values: &str, template_text: &str) -> impl Fn(&str) -> Vec<String> {
    let tree = MemTree::from_files([
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("values.yaml", values),
        ("templates/a.yaml", template_text),
        ("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
        ("charts/sub/values.yaml", "global: {zone: b, own: c}\n"),
        (
            "charts/sub/templates/b.yaml",
            "kind: Sub\nzone: {{ .Values.global.zone }}\nown: {{ .Values.global.own }}\n",
        ),
    ]);
    let options = RenderOptions { release_name: "r".to_owned(), origins: true, ..RenderOptions::default() };
    let objects = template(&Chart::load(&tree, "").unwrap(), &options).unwrap().objects();
    move |path: &str| {
        let path: FieldPath = path.parse().unwrap();
        let object = objects.iter().find(|object| path.get(&object.value).is_some()).unwrap();
        let chain = object.origins.lookup(&path);
        chain.iter().filter(|it| it.kind == OriginKind::Values).map(|it| it.detail.clone()).collect()
    }
}

#[test]
fn merged_and_reread_tables_keep_the_origin_of_each_value() {
    let values =
        "size: 3\ndefaults: {port: 80, probe: {path: /a, delay: 5}, fixed: none}\nprobe: {path: /b}\n";
    let text = r#"
{{- define "more" }}
fixed: here
size: {{ .Values.size }}
nested:
  size: {{ add .Values.size 1 }}
{{- end }}
{{- $all := mergeOverwrite (deepCopy .Values.defaults) (dict "probe" .Values.probe) (include "more" . | fromYaml) }}
{{- $again := toYaml $all | fromYaml }}
kind: A
one:
  {{- toYaml $all | nindent 2 }}
two:
  {{- toYaml (dict "inner" $again) | nindent 2 }}
{{- define "context" }}{{ mergeOverwrite (dict "inner" .all) (dict "other" .more) | toJson }}{{ end }}
{{- $context := include "context" (dict "all" $all "more" .Values.size) | fromJson }}
three:
  inner:
    port: {{ $context.inner.port }}
    probe:
      path: {{ $context.inner.probe.path }}
      delay: {{ $context.inner.probe.delay }}
    fixed: {{ $context.inner.fixed }}
    size: {{ $context.inner.size }}
    nested:
      size: {{ $context.inner.nested.size }}
"#;
    let named = values_named(values, text);
    for (path, expected) in [
        ("port", vec![".Values.defaults.port"]),
        ("probe.path", vec![".Values.probe.path"]),
        ("probe.delay", vec![".Values.defaults.probe.delay"]),
        ("fixed", vec![]),
        ("size", vec![".Values.size"]),
        ("nested.size", vec![".Values.size"]),
    ] {
        assert_eq!(named(&format!(".one.{path}")), expected, "{path}");
        assert_eq!(named(&format!(".two.inner.{path}")), expected, "{path}");
        assert_eq!(named(&format!(".three.inner.{path}")), expected, "{path}");
    }
}

#[test]
fn keys_of_reread_tables_name_the_table_they_stand_in() {
    let values = "ports: {web: {port: 80, target: {name: a}}, list: [{n: 1}]}\nsize: 3\n";
    let text = r#"
{{- define "context" }}{{ mergeOverwrite (dict "fixed" (dict "size" .Values.size)) .Values | toYaml }}{{ end }}
{{- $context := include "context" . | fromYaml }}
kind: A
{{- range $name, $port := $context.ports }}
{{ $name }}: {key: {{ $name }}}
{{- end }}
none: {{ $context.ports.web.host | default "any" }}
fixed: {{ $context.fixed.size }}
absent: {{ $context.name | default .Chart.Name }}
item: {{ (index $context.ports.list 0).m | default "z" }}
"#;
    let named = values_named(values, text);
    assert_eq!(named(".web.key"), [".Values.ports.web"]);
    assert_eq!(named(".item"), [".Values.ports.list[0]", ".Values.ports.list[0].m"]);
    assert_eq!(named(".none"), [".Values.ports.web.host"]);
    assert_eq!(named(".fixed"), [".Values.size"]);
    assert!(named(".absent").is_empty());
}

#[test]
fn what_is_absent_below_absent_tables_is_named() {
    let text = r#"
kind: A
port: {{ (((.Values.service).metrics).http).port | default 80 }}
"#;
    let named = values_named("service: {}\n", text);
    assert_eq!(named(".port").last().unwrap(), ".Values.service.metrics.http.port");
}

#[test]
fn what_a_function_picks_is_all_that_is_named() {
    let values = "a: 1\nb: 2\nkey: a\nlist: [x, y]\ndeep: {er: 5}\nflag: false\n";
    let text = r#"{{- $both := dict "a" .Values.a "b" .Values.b "deep" .Values.deep }}
kind: A
get: {{ get $both "a" }}
index: {{ index $both .Values.key }}
dig: {{ dig "deep" "er" 0 $both }}
first: {{ first .Values.list }}
last: {{ last .Values.list }}
pluck: {{ pluck "b" $both | first }}
default: {{ .Values.a | default .Values.b }}
coalesce: {{ coalesce .Values.flag .Values.a .Values.b }}
ternary: {{ ternary .Values.a .Values.b .Values.flag }}
"#;
    let named = values_named(values, text);
    for (path, expected) in [
        ("get", vec![".Values.a"]),
        ("index", vec![".Values.a", ".Values.key"]),
        ("dig", vec![".Values.deep.er"]),
        ("first", vec![".Values.list[0]"]),
        ("last", vec![".Values.list[1]"]),
        ("pluck", vec![".Values.b"]),
        ("default", vec![".Values.a"]),
        ("coalesce", vec![".Values.a", ".Values.flag"]),
        ("ternary", vec![".Values.b", ".Values.flag"]),
    ] {
        let mut found = named(&format!(".{path}"));
        found.sort();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn texts_executed_by_tpl_are_named() {
    let values = "size: 3\ntexts:\n  one: plain\n  two: \"{{ .Values.size }}-{{ .Release.Name }}\"\n";
    let text = "kind: A\ntexts:\n  {{- tpl (toYaml .Values.texts) . | nindent 2 }}\nalone: {{ tpl .Values.texts.two . }}\n";
    let named = values_named(values, text);
    assert_eq!(named(".texts.one"), [".Values.texts.one"]);
    for path in [".texts.two", ".alone"] {
        let mut found = named(path);
        found.sort();
        assert!(found.contains(&".Values.size".to_owned()) && found.len() == 2, "{path}: {found:?}");
    }
}

#[test]
fn a_global_is_named_where_it_counts() {
    let named = values_named("global: {zone: a}\n", "kind: A\n");
    assert_eq!(named(".zone"), [".Values.global.zone"]);
    assert_eq!(named(".own"), [".Values.sub.global.own"]);
}
