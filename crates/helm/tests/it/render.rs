//! Whole charts, against what the real helm prints for them (written down from Helm 4.2).

use std::sync::Arc;

use tiphys_helm::{Chart, Compat, RenderOptions, ValuesSource, template};
use tiphys_vfs::MemTree;

fn options() -> RenderOptions {
    RenderOptions {
        release_name: "demo".to_owned(),
        namespace: "default".to_owned(),
        ..RenderOptions::default()
    }
}

fn render(files: &[(&str, &str)], options: &RenderOptions) -> Result<String, String> {
    let tree = MemTree::from_files(files.iter().copied());
    let chart = Chart::load(&tree, "").map_err(|error| error.to_string())?;
    template(&chart, options).map(|output| output.stdout).map_err(|error| error.to_string())
}

const CHART: (&str, &str) = ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");

#[test]
fn documents_are_split_sorted_and_hooks_come_last() {
    let text = "kind: Deployment\n---\nkind: Service\n---\n# nothing\n---\nkind: Job\nmetadata:\n  annotations:\n    helm.sh/hook: test\n";
    let files =
        [CHART, ("templates/a.yaml", text), ("templates/_p.tpl", "kind: No"), ("templates/NOTES.txt", "hi")];
    let expected = "---\n# Source: c/templates/a.yaml\nkind: Service\n\n---\n# Source: c/templates/a.yaml\nkind: Deployment\n\n---\n# Source: c/templates/a.yaml\n# nothing\n---\n# Source: c/templates/a.yaml\nkind: Job\nmetadata:\n  annotations:\n    helm.sh/hook: test\n\n";
    assert_eq!(render(&files, &options()).unwrap(), expected);
    let without = RenderOptions { no_hooks: true, ..options() };
    assert!(!render(&files, &without).unwrap().contains("Job"));
    let only = RenderOptions { show_only: vec!["templates/b.yaml".to_owned()], ..options() };
    assert_eq!(render(&files, &only), Err("could not find template templates/b.yaml in chart".to_owned()));
}

#[test]
fn an_empty_document_decodes_to_what_can_be_filled() {
    let text = "{{- $map := fromYaml \"\" }}{{ $_ := set $map \"a\" 1 }}a: {{ toJson $map }}\nb: {{ fromYamlArray \"# c\" | toJson }}\nc: {{ (fromJson \"{} x\").Error }}";
    let files = [CHART, ("templates/a.yaml", text)];
    let expected = "---\n# Source: c/templates/a.yaml\na: {\"a\":1}\nb: []\nc: invalid character 'x' after top-level value\n";
    assert_eq!(render(&files, &options()).unwrap(), expected);
}

#[test]
fn large_whole_floats_keep_the_digits_that_tell_them_apart() {
    let values =
        ("values.yaml", "id: 1152921504606846976\nmost: 9223372036854775807\nleast: -9223372036854775808\n");
    let text = "{{ toYaml .Values }}\nexact: {{ toYaml 1152921504606846976 }}\nsmall: {{ toYaml (float64 \"9007199254740991\") }}\n";
    let files = [CHART, values, ("templates/a.yaml", text)];
    let expected = "---\n# Source: c/templates/a.yaml\nid: 1152921504606847000\nleast: -9.223372036854776e+18\n\
        most: 9223372036854776000\nexact: 1152921504606846976\nsmall: 9007199254740991\n";
    assert_eq!(render(&files, &options()).unwrap(), expected);
}

#[test]
fn pretty_yaml_is_marshalled_without_json() {
    let values = ("values.yaml", "size: 20000000\nzero: -0.0\nshare: 0.5\nlist: [3, 1e6]\n");
    let text = "{{ toYamlPretty .Values }}\n{{ toYaml (pick .Values \"size\" \"zero\") }}\nvalue: {{ .Values.zero }}\nwhole: {{ toYamlPretty (int .Values.size) }}\nversion:\n  {{- toYamlPretty .Capabilities.KubeVersion | nindent 2 }}\nfiles:\n  {{- toYamlPretty (.Files.Glob \"f\") | nindent 2 }}\nbytes: {{ toYamlPretty (b64dec \"//79\") }}\nlong: {{ toYamlPretty (b64dec (repeat 12 \"//79AAAA\")) }}\nday: {{ toDate \"2006\" \"2020\" | toYamlPretty }}\n";
    let files = [CHART, values, ("f", "hi"), ("templates/a.yaml", text)];
    let options = RenderOptions { kube_version: Some("1.30".to_owned()), ..options() };
    let expected = "---\n# Source: c/templates/a.yaml\n\
        list:\n  - 3\n  - 1e+06\nshare: 0.5\nsize: 2e+07\nzero: -0\n\
        size: 20000000\nzero: 0\nvalue: -0\nwhole: 20000000\n\
        version:\n  version: v1.30\n  major: \"1\"\n  minor: \"30\"\n\
        files:\n  f:\n    - 104\n    - 105\nbytes: !!binary //79\nlong: !!binary |\n  \
        //79AAAA//79AAAA//79AAAA//79AAAA//79AAAA//79AAAA//79AAAA//79AAAA//79AA\n  AA//79AAAA//79AAAA//79AAAA\n\
        day: 2020-01-01T00:00:00Z\n";
    assert_eq!(render(&files, &options).unwrap(), expected);
}

#[test]
fn helm_3_writes_the_chart_as_json_by_the_names_of_its_file() {
    let chart = (
        "Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\nappVersion: \"7\"\nmaintainers: [{name: me, url: u}]\ndependencies: [{name: s, version: 1.0.0, condition: s.on, repository: \"\"}]\n",
    );
    let text =
        "a: {{ toJson .Chart }}\nb: {{ (.Chart | toJson | fromJson).name }}\nc: {{ .Chart.AppVersion }}\n";
    let files = [
        chart,
        ("templates/a.yaml", text),
        ("charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n"),
    ];
    let compat = Compat::Helm3;
    let chart = Chart::load_as(&MemTree::from_files(files), "", compat).unwrap();
    let expected = "---\n# Source: c/templates/a.yaml\na: {\"name\":\"c\",\"version\":\"1.0.0\",\"maintainers\":[{\"name\":\"me\",\"url\":\"u\"}],\"apiVersion\":\"v2\",\"appVersion\":\"7\",\"dependencies\":[{\"name\":\"s\",\"version\":\"1.0.0\",\"repository\":\"\",\"condition\":\"s.on\",\"enabled\":true}],\"IsRoot\":true}\nb: c\nc: 7\n";
    assert_eq!(template(&chart, &RenderOptions { compat, ..options() }).unwrap().stdout, expected);
}

#[test]
fn an_api_version_that_is_no_text_is_told_as_each_helm_tells_it() {
    let files = [("Chart.yaml", "apiVersion: {}\nname: c\nversion: 1.0.0\n")];
    for (compat, owner) in [(Compat::Helm4, "chartBase"), (Compat::Helm3, "Metadata")] {
        let error = Chart::load_as(&MemTree::from_files(files), "", compat).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into Go struct field {owner}.apiVersion of type string"
            )
        );
    }
}

#[test]
fn options_that_only_helm_4_takes() {
    let files = [CHART, ("templates/a.yaml", "a: {{ .Values.a }}\n")];
    for (value, helm3) in [
        (ValuesSource::SetJson("{\"a\": 1}".to_owned()), "failed parsing --set-json data {\"a\": 1}"),
        (ValuesSource::Set("a=1,b[=2".to_owned()), "failed parsing --set data: error parsing index: EOF"),
        (
            ValuesSource::SetString("a=1,b[0][=2".to_owned()),
            "failed parsing --set-string data: error parsing index: EOF",
        ),
        (ValuesSource::SetJson("a=1,b[0=2".to_owned()), "failed parsing --set-json data a=1,b[0=2"),
    ] {
        let given =
            |compat| render(&files, &RenderOptions { values: vec![value.clone()], compat, ..options() });
        assert!(given(Compat::Helm4).unwrap().contains("a: 1\n"), "{value:?}");
        assert_eq!(given(Compat::Helm3).unwrap_err(), helm3);
    }
    let named = |compat| {
        render(&files, &RenderOptions { release_name: "UP".to_owned(), compat, ..options() }).unwrap_err()
    };
    assert!(named(Compat::Helm4).starts_with("release name check failed: release name \"UP\": invalid"));
    assert!(named(Compat::Helm3).starts_with("release name \"UP\": invalid"));
}

#[test]
fn bytes_that_are_no_utf8_are_refused_where_yaml_is_read() {
    let files = [CHART, ("templates/a.yaml", "a: {{ b64dec \"6SB4\" }}\nb: {{ .Values.x }}\n")];
    let trailing = "error converting YAML to JSON: yaml: invalid trailing UTF-8 octet";
    let error = render(&files, &options()).unwrap_err();
    assert!(error.starts_with(&format!("YAML parse error on c/templates/a.yaml: {trailing}\n")), "{error}");
    let given = |bytes: &[u8], compat| {
        let values = vec![ValuesSource::File("v.yaml".to_owned(), Arc::from(bytes))];
        render(&files, &RenderOptions { values, compat, ..options() }).unwrap_err()
    };
    assert_eq!(given(b"# \xE9 x\n", Compat::Helm3), format!("failed to parse v.yaml: {trailing}"));
    for (bytes, reason) in [
        (b"# \xE9 x\n".as_slice(), "invalid trailing UTF-8 octet"),
        (b"# \xE9\n---\na: b\n", "incomplete UTF-8 octet sequence"),
        (b"# \x80\n", "invalid leading UTF-8 octet"),
        (b"# \xC0\x80\n", "invalid length of a UTF-8 sequence"),
        (b"# \xED\xA0\x80\n", "invalid Unicode character"),
    ] {
        let head =
            "failed to parse v.yaml: cannot unmarshal yaml document: error converting YAML to JSON: yaml";
        assert_eq!(given(bytes, Compat::Helm4), format!("{head}: {reason}"));
    }
    let text = "a: {{ (b64dec \"6SB4\" | fromYaml).Error | quote }}\n";
    let expected = format!("---\n# Source: c/templates/a.yaml\na: \"{trailing}\"\n");
    assert_eq!(render(&[CHART, ("templates/a.yaml", text)], &options()).unwrap(), expected);
}

#[test]
fn what_json_leaves_and_yaml_refuses_is_written_as_nothing() {
    let text =
        "a: {{ toYaml (dict \"k\" \"x\\x7fy\") | quote }}\nb: {{ toYaml (list \"x \\u0085 y\") | quote }}\n";
    let files = [CHART, ("templates/a.yaml", text)];
    assert_eq!(
        render(&files, &options()).unwrap(),
        "---\n# Source: c/templates/a.yaml\na: \"\"\nb: \"- x y\"\n"
    );
    let must = [CHART, ("templates/a.yaml", "{{ mustToYaml \"\\x7f\" }}")];
    let error = render(&must, &options()).unwrap_err();
    assert!(error.contains("error calling mustToYaml: yaml: control characters are not allowed"), "{error}");
}

#[test]
fn of_two_versions_of_a_subchart_the_one_that_is_wanted_comes_last() {
    let chart = |version: &str| format!("apiVersion: v2\nname: s\nversion: {version}\n");
    let (old, new) = (chart("1.0.0"), chart("2.0.0"));
    let wanted = "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: s, version: ^2}]\n";
    let files = [
        ("Chart.yaml", wanted),
        ("charts/a/Chart.yaml", &old),
        ("charts/a/values.yaml", "old: 1\nboth: 1\n"),
        ("charts/a/templates/a.yaml", "a: {{ .Chart.Version }} {{ toJson .Values }}"),
        ("charts/a/templates/old.yaml", "a: {{ .Chart.Version }}"),
        ("charts/b/Chart.yaml", &new),
        ("charts/b/values.yaml", "new: 2\nboth: 2\n"),
        ("charts/b/templates/a.yaml", "b: {{ .Chart.Version }} {{ toJson .Values }}"),
    ];
    let expected = "---\n# Source: c/charts/s/templates/a.yaml\nb: 2.0.0 {\"both\":1,\"global\":{},\"new\":2,\"old\":1}\n---\n# Source: c/charts/s/templates/old.yaml\na: 1.0.0\n";
    assert_eq!(render(&files, &options()).unwrap(), expected);
}

#[test]
fn values_have_the_methods_of_their_go_type() {
    let values = ("values.yaml", "a: {b: {c: 1}, d: x}\ne: z\n");
    let text = |expression: &str| {
        let files = [CHART, values, ("templates/a.yaml", expression)];
        render(&files, &options()).map(|text| text.lines().skip(2).collect::<Vec<_>>().join("|"))
    };
    let calls = "a: >-\n  {{ dig \"a\" \"d\" 0 .Values.AsMap }} {{ (.Values.Table \"a.b\").YAML | trim | quote }} {{ .Values.PathValue \"a.d\" }} {{ .Values.PathValue \"e\" }}";
    assert_eq!(text(calls).unwrap(), "a: >-|  x \"c: 1\" x z");
    for (call, reason) in [
        (".Values.Table \"a.d\"", "error calling Table: \"d\" is not a table"),
        (".Values.PathValue \"a.b\"", "error calling PathValue: \"b\" is not a value"),
        (".Values.PathValue \"x.y.z\"", "error calling PathValue: \"z\" is not a value"),
        (".Values.PathValue \"\"", "error calling PathValue: YAML path cannot be empty"),
    ] {
        let error = text(&format!("{{{{ {call} }}}}")).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_block_scalar_that_ends_the_values_ends_with_a_newline() {
    let text = ("templates/a.yaml", "a: {{ toJson .Values.text }}\n");
    let run = |compat| {
        let chart = Chart::load_as(
            &MemTree::from_files([CHART, ("values.yaml", "text: |\n  x\n  y"), text]),
            "",
            compat,
        );
        let options = RenderOptions { compat, ..options() };
        template(&chart.unwrap(), &options).unwrap().stdout.lines().last().map(str::to_owned)
    };
    assert_eq!(run(Compat::Helm4).as_deref(), Some(r#"a: "x\ny\n""#));
    assert_eq!(run(Compat::Helm3).as_deref(), Some(r#"a: "x\ny""#));
}

#[test]
fn the_version_of_kubernetes_is_a_text_where_it_stands_and_a_struct_elsewhere() {
    let text = "{{ $v := .Capabilities.KubeVersion }}a: {{ $v }}\nb: {{ quote $v }}\nc: {{ toJson $v }}\nd: {{ .Files.none }}\n";
    let files = [CHART, ("templates/a.yaml", text)];
    let options = RenderOptions { kube_version: Some("1.30".to_owned()), ..options() };
    let expected = "---\n# Source: c/templates/a.yaml\na: v1.30\nb: \"{v1.30 v1.30 1 30}\"\nc: {\"Version\":\"v1.30\",\"Major\":\"1\",\"Minor\":\"30\"}\nd: []\n";
    assert_eq!(render(&files, &options).unwrap(), expected);
}

#[test]
fn files_are_read_when_a_template_asks_for_them() {
    let files = [
        CHART,
        (
            "templates/a.yaml",
            "a: {{ .Files.Get \"conf/x\" }}{{ range $path, $_ := .Files.Glob \"**\" }}\n# {{ $path }}{{ end }}\n",
        ),
        ("conf/x", "\u{feff}text"),
        ("README.md", "more"),
        ("crds/d.yaml", "kind: CustomResourceDefinition\n"),
    ];
    let chart = Chart::load_ahead(Arc::new(MemTree::from_files(files)), "", Compat::Helm4).unwrap();
    let options = RenderOptions { include_crds: true, ..options() };
    let printed = template(&chart, &options).unwrap().stdout;
    assert_eq!(printed, render(&files, &options).unwrap());
    assert!(printed.contains("a: text\n# README.md\n# conf/x\n# crds/d.yaml\n"), "{printed}");
    assert!(printed.contains("kind: CustomResourceDefinition"), "{printed}");
}

#[test]
fn imports_without_a_table_are_told() {
    let chart = "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- {name: s, version: 1.0.0, import-values: [x, {child: a, parent: b}]}\n";
    let files = [("Chart.yaml", chart), ("charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n")];
    let tree = MemTree::from_files(files);
    let warnings = template(&Chart::load(&tree, "").unwrap(), &options()).unwrap().warnings;
    assert_eq!(
        warnings,
        [
            r#"level=WARN msg="ImportValues missing table" error="\"exports\" is not a table""#,
            r#"level=WARN msg="ImportValues missing table from chart" chart=s error="\"a\" is not a table""#,
        ]
    );
}

#[test]
fn an_empty_list_of_dependencies_is_followed_and_none_is_not() {
    let files = |dependencies: &'static str| {
        let vendored = "apiVersion: v2\nname: s\nversion: 1.0.0\ndependencies: [{name: t, version: 1.0.0, condition: on}]\n";
        [
            ("Chart.yaml", dependencies),
            ("charts/s/Chart.yaml", vendored),
            ("charts/s/values.yaml", "on: false\n"),
            ("charts/s/charts/t/Chart.yaml", "apiVersion: v2\nname: t\nversion: 1.0.0\n"),
            ("charts/s/charts/t/templates/a.yaml", "a: b\n"),
        ]
    };
    let none = render(&files("apiVersion: v2\nname: c\nversion: 1.0.0\n"), &options()).unwrap();
    assert_eq!(none, "---\n# Source: c/charts/s/charts/t/templates/a.yaml\na: b\n");
    let empty = "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: []\n";
    assert_eq!(render(&files(empty), &options()).unwrap(), "\n");
}

#[test]
fn subcharts_see_values_of_the_same_type() {
    let types = "{{ range list . .Values .Subcharts }}{{ typeOf . }},{{ end }}";
    let above = format!("a: {types}{{{{ typeOf .Subcharts.s }}}},{{{{ typeOf .Values.s }}}}");
    let below = format!("a: {types}{{{{ dig \"x\" 0 .Values.AsMap }}}}");
    let files = [
        CHART,
        ("templates/a.yaml", above.as_str()),
        ("charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n"),
        ("charts/s/values.yaml", "x: 1\n"),
        ("charts/s/templates/a.yaml", below.as_str()),
    ];
    let text = render(&files, &options()).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("a:")).collect();
    let types = "a: common.Values,common.Values,map[string]interface {},";
    let any = "map[string]interface {}";
    assert_eq!(lines, [format!("{types}1"), format!("{types}{any},{any}")]);
}

#[test]
fn templates_parsed_ahead_render_the_same() {
    let filler = "# some text that makes the file long enough for a thread\n".repeat(400);
    let body = format!("{{{{ include \"n\" . }}}}{{{{ .Template.Name }}}}: {{{{ .Values.x }}}}\n{filler}");
    let names: Vec<String> = (0..12).map(|number| format!("templates/t{number}.yaml")).collect();
    let mut files =
        vec![CHART, ("values.yaml", "x: 1"), ("templates/_h.tpl", "{{ define \"n\" }}a{{ end }}")];
    files.extend(names.iter().map(|name| (name.as_str(), body.as_str())));
    let run = |files: &[(&str, &str)], ahead: bool| {
        let tree = MemTree::from_files(files.iter().copied());
        let chart = if ahead {
            Chart::load_ahead(Arc::new(tree), "", Compat::Helm4).unwrap()
        } else {
            Chart::load_as(&tree, "", Compat::Helm4).unwrap()
        };
        template(&chart, &options()).map(|output| output.stdout).map_err(|error| error.to_string())
    };
    let text = run(&files, true);
    assert!(text.as_ref().is_ok_and(|text| text.contains("c/templates/t11.yaml: 1")));
    assert_eq!(text, run(&files, false));
    for bad in [
        "{{ if }}",
        "{{ define \"c/templates/z.yaml\" }}b{{ end }}{{ include .Template.Name . }}",
        "{{ fail .Template.Name }}",
    ] {
        let mut files = files.clone();
        files.push(("templates/z.yaml", bad));
        assert_eq!(run(&files, true), run(&files, false), "{bad}");
    }
}

#[test]
fn faults_of_large_charts_are_told_in_the_same_order_however_they_are_read() {
    let filler = "# some text that makes the file long enough for a thread\n".repeat(400);
    let large = "x".repeat(5 * 1024 * 1024 + 1);
    let names: Vec<String> = (0..12).map(|number| format!("templates/t{number}.yaml")).collect();
    let run = |more: &[(&str, &str)], ahead: bool| {
        let mut files = vec![CHART];
        files.extend(names.iter().map(|name| (name.as_str(), filler.as_str())));
        files.extend(more);
        let tree = MemTree::from_files(files);
        let chart = if ahead {
            Chart::load_ahead(Arc::new(tree), "", Compat::Helm4)
        } else {
            Chart::load_as(&tree, "", Compat::Helm4)
        };
        let printed = chart.and_then(|chart| template(&chart, &options())).map(|output| output.stdout);
        printed.map_err(|error| format!("{error}\n{:?}", error.debug_output()))
    };
    let is_large = |name: &str| format!("chart file \"{name}\" is larger than");
    for (more, told) in [
        (vec![("templates/u.yaml", large.as_str())], is_large("u.yaml")),
        (vec![("templates/u.yaml", &large), ("templates/w.yaml", &large)], is_large("u.yaml")),
        (vec![("templates/u.yaml", &large), ("values.yaml", "- 1\n")], is_large("u.yaml")),
        (vec![("templates/u.yaml", &large), ("z/conf", &large)], is_large("u.yaml")),
        (vec![("templates/u.yaml", "a: {"), ("templates/w.yaml", "b: {")], "u.yaml".to_owned()),
        (
            vec![("templates/u.yaml", "a: {"), ("templates/w.yaml", "{{ fail \"sooner\" }}")],
            "sooner".to_owned(),
        ),
    ] {
        let error = run(&more, true).unwrap_err();
        assert!(error.contains(&told), "{told}: {}", error.get(..200).unwrap_or(&error));
        assert_eq!(Err(error), run(&more, false));
    }
    let marked = [("templates/u.yaml", "\u{feff}kind: {{ print \"a\" | quote }}\n")];
    let printed = run(&marked, true);
    assert!(printed.as_ref().is_ok_and(|text| text.contains("c/templates/u.yaml\nkind: \"a\"\n")));
    assert_eq!(printed, run(&marked, false));
}

#[test]
fn helm_3_trims_documents_and_knows_no_order_for_webhooks() {
    let text = "kind: ValidatingWebhookConfiguration\n---\nkind: Certificate\n";
    let files = [CHART, ("templates/a.yaml", text)];
    let kinds = |compat| {
        let text = render(&files, &RenderOptions { compat, ..options() }).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("kind: ").map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(Compat::Helm4), ["ValidatingWebhookConfiguration", "Certificate"]);
    assert_eq!(kinds(Compat::Helm3), ["Certificate", "ValidatingWebhookConfiguration"]);
}

#[test]
fn values_reach_subcharts_by_table_alias_and_globals() {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- {name: sub, version: 1.x, alias: one}\n- {name: sub, version: 1.x, alias: two, condition: two.enabled}\n",
        ),
        ("values.yaml", "one: {color: red}\ntwo: {enabled: false}\nglobal: {zone: z1}\n"),
        ("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.2.3\n"),
        ("charts/sub/values.yaml", "color: blue\nsize: 3\n"),
        (
            "charts/sub/templates/a.yaml",
            "name: {{ .Chart.Name }}\ncolor: {{ .Values.color }}\nsize: {{ .Values.size }}\nzone: {{ .Values.global.zone }}\n",
        ),
    ];
    let one = "---\n# Source: c/charts/one/templates/a.yaml\nname: one\ncolor: red\nsize: 3\nzone: z1\n";
    assert_eq!(render(&files, &options()).unwrap(), one);
    let both = RenderOptions {
        values: vec![ValuesSource::Set("two.enabled=true,one.size=null".to_owned())],
        ..options()
    };
    let text = render(&files, &both).unwrap();
    assert!(text.contains("c/charts/two/templates/a.yaml\nname: two\ncolor: blue\nsize: 3"), "{text}");
    assert!(text.contains("name: one\ncolor: red\nsize: \n"), "{text}");
}

#[test]
fn sources_of_values_win_in_helms_order() {
    let files = [CHART, ("templates/a.yaml", "a: {{ .Values.a }} {{ kindOf .Values.a }}\n")];
    let file = ValuesSource::File("f".to_owned(), Arc::from(b"a: 1".as_slice()));
    let set = ValuesSource::Set("a=2".to_owned());
    let text = |values| {
        let text = render(&files, &RenderOptions { values, ..options() }).unwrap();
        text.lines().nth(2).unwrap().to_owned()
    };
    assert_eq!(text(vec![set.clone(), file.clone()]), "a: 2 int64");
    assert_eq!(text(vec![file.clone()]), "a: 1 float64");
    assert_eq!(text(vec![ValuesSource::SetString("a=3".to_owned()), set]), "a: 3 string");
}

#[test]
fn errors_read_as_helms_do() {
    let missing = (
        "Chart.yaml",
        "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- {name: db, version: 1.x, repository: \"https://example.test\"}\n",
    );
    let hint = "\n\nUse --debug flag to render out invalid YAML";
    for (files, expected) in [
        (
            vec![missing],
            "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: db".to_owned(),
        ),
        (
            vec![CHART, ("templates/a.yaml", "{{ required \"give a\" .Values.a }}")],
            format!("execution error at (c/templates/a.yaml:1:3): give a{hint}"),
        ),
        (
            vec![CHART, ("templates/a.yaml", "x: {{ .Values.a.b }}")],
            format!(
                "c/templates/a.yaml:1:13\n  executing \"c/templates/a.yaml\" at <.Values.a.b>:\n    nil pointer evaluating interface {{}}.b{hint}"
            ),
        ),
        (
            vec![CHART, ("templates/a.yaml", "a: {{ nope }}")],
            format!("parse error at (c/templates/a.yaml:1): function \"nope\" not defined{hint}"),
        ),
        (
            vec![CHART, ("values.schema.json", r#"{"required": ["a"]}"#)],
            "values don't meet the specifications of the schema(s) in the following chart(s):\nc:\n- at '': missing property 'a'\n".to_owned(),
        ),
        (
            vec![("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\nkubeVersion: \">=2\"\n")],
            format!("chart requires kubeVersion: >=2 which is incompatible with Kubernetes v1.36.0{hint}"),
        ),
        (
            vec![("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\ntype: library\n")],
            "library charts are not installable".to_owned(),
        ),
    ] {
        assert_eq!(render(&files, &options()), Err(expected));
    }
}

#[test]
fn a_seed_makes_random_functions_stable() {
    let files = [CHART, ("templates/a.yaml", "a: {{ randAlphaNum 12 }}\nb: {{ randAlphaNum 12 }}\n")];
    let seeded = RenderOptions { seed: Some("app".to_owned()), ..options() };
    let other = RenderOptions { seed: Some("other".to_owned()), ..options() };
    assert_eq!(render(&files, &seeded), render(&files, &seeded));
    assert_ne!(render(&files, &seeded), render(&files, &other));
    assert_ne!(render(&files, &options()), render(&files, &options()));
}

#[test]
fn a_template_given_nothing_reads_nothing() {
    let files = [
        CHART,
        ("values.yaml", "m: {a: b}\n"),
        (
            "templates/a.yaml",
            "{{ define \"n\" }}[{{ .Values.x }}]{{ end }}a: {{ include \"n\" (index .Values.m \"nope\") }}\n",
        ),
    ];
    assert_eq!(render(&files, &options()).unwrap(), "---\n# Source: c/templates/a.yaml\na: []\n");
}

#[test]
fn endless_recursion_ends_with_the_templates_name() {
    let files = [
        CHART,
        ("templates/a.yaml", "{{ define \"x\" }}{{ include \"x\" . }}{{ end }}{{ include \"x\" . }}"),
    ];
    let error = render(&files, &options()).unwrap_err();
    assert!(error.contains("rendering template has a nested reference name: x"), "{error}");
}

#[test]
fn what_functions_read_is_counted_by_what_it_means() {
    let bomb = "printf \"s: &s %s\\nd: [%s1]\" (repeat 1000000 \"x\") (repeat 100000 \"*s,\")";
    let array = "printf \"- &s %s\\n- [%s1]\" (repeat 1000000 \"x\") (repeat 100000 \"*s,\")";
    let dense = "printf \"[%s1]\" (repeat 2000000 \"{\\\"a\\\":1},\")";
    for text in [
        format!("{{{{ fromYaml ({bomb}) | len }}}}"),
        format!("{{{{ fromYamlArray ({array}) | len }}}}"),
        format!("{{{{ fromJson ({dense}) | len }}}}"),
        format!("{{{{ fromJsonArray ({dense}) | len }}}}"),
        format!("{{{{ mustFromJson ({dense}) | len }}}}"),
        "{{ splitList \"\" (repeat 3000000 \"x\") | len }}".to_owned(),
        "{{ regexSplit \"\" (repeat 3000000 \"x\") -1 | len }}".to_owned(),
    ] {
        let error = render(&[CHART, ("templates/a.yaml", &text)], &options()).unwrap_err();
        assert!(error.contains("memory") || error.contains("limit of 2000000"), "{text}: {error}");
        assert!(error.contains("c/templates/a.yaml:1:"), "it names the place: {error}");
    }
    let fits = "n: {{ fromYaml \"s: &s x\\nd: [*s,*s]\" | toJson }}";
    let expected = "---\n# Source: c/templates/a.yaml\nn: {\"d\":[\"x\",\"x\"],\"s\":\"x\"}\n";
    assert_eq!(render(&[CHART, ("templates/a.yaml", fits)], &options()).unwrap(), expected);
}
