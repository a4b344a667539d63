//! Templates that are called again with the same data write the same without being executed, and only then.
//! With origins every call is executed, so that both ways can be held against each other.

use std::fmt::Write as _;

use proptest::prelude::*;
use tiphys_helm::{Chart, Compat, RenderOptions, ValuesSource, template};
use tiphys_vfs::MemTree;

const VALUES: &str =
    "name: n\nflag: true\nm: {a: 1, sub: {x: 1}, list: [{k: v}, w]}\nother: {sub: {y: 2}}\nempty: {}\n";

/// What the templates render to, or why they do not.
fn render(files: &[(String, String)], origins: bool) -> Result<String, String> {
    let mut tree = vec![("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"), ("values.yaml", VALUES)];
    tree.extend(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let chart = Chart::load_as(&MemTree::from_files(tree), "", Compat::Helm4).expect("the chart loads");
    let options = RenderOptions {
        release_name: "r".to_owned(),
        namespace: "default".to_owned(),
        seed: Some("seed".to_owned()),
        values: vec![ValuesSource::File("v.yaml".to_owned(), VALUES.as_bytes().into())],
        origins,
        ..RenderOptions::default()
    };
    template(&chart, &options).map(|output| output.stdout).map_err(|error| error.to_string())
}

fn both_renders(files: &[(&str, &str)]) -> String {
    let files: Vec<_> = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let printed = render(&files, false).expect("it renders");
    assert_eq!(printed, render(&files, true).expect("it renders"));
    printed
}

#[test]
fn what_says_which_template_runs_is_read_anew() {
    let helper = "{{ define \"which\" }}{{ .Template.Name }}{{ end }}{{ define \"outer\" }}{{ include \"which\" . }}{{ end }}\
                  {{ define \"whole\" }}{{ get . \"Template\" | toYaml }}{{ end }}{{ define \"names\" }}{{ keys . | join \" \" }}{{ end }}";
    let text = "a: {{ include \"outer\" . }}\nb: {{ include \"outer\" $ }}\nc: |\n{{ include \"whole\" . | indent 2 }}\n\
                d: {{ include \"names\" . }}\n";
    let printed =
        both_renders(&[("templates/_h.tpl", helper), ("templates/a.yaml", text), ("templates/b.yaml", text)]);
    assert_eq!(printed.matches("c/templates/a.yaml").count(), 4, "{printed}");
    assert_eq!(printed.matches("c/templates/b.yaml").count(), 4, "{printed}");
}

#[test]
fn what_is_changed_is_read_anew() {
    let helper = "{{ define \"m\" }}{{ toJson .Values.m }}{{ .Values.extra }}{{ end }}{{ define \"list\" }}{{ toJson . }}{{ end }}";
    for change in [
        "{{ $_ := set .Values \"extra\" \"e\" }}",
        "{{ $_ := set .Values.m.sub \"x\" 2 }}",
        "{{ $_ := unset .Values.m \"a\" }}",
        // What is put into a shared map is shared, and so is what two maps hold.
        "{{ $fresh := dict \"n\" 1 }}{{ $_ := set .Values.m \"new\" $fresh }}{{ $_ := include \"m\" . }}{{ $_ := set $fresh \"n\" 2 }}",
        "{{ $_ := merge (dict) .Values.m .Values.other }}",
        "{{ $_ := mergeOverwrite .Values.m (dict \"sub\" (dict \"x\" 3)) }}",
        "{{ $_ := set (index .Values.m.list 0) \"k\" \"changed\" }}",
        "{{ range .Values.m.list }}{{ if kindIs \"map\" . }}{{ $_ := set . \"k\" \"r\" }}{{ end }}{{ end }}",
        "{{ $words := list \"b\" \"a\" | join \",\" | splitList \",\" }}{{ $_ := set .Values.m \"w\" $words }}{{ $_ := include \"m\" . }}{{ $_ := sortAlpha $words }}",
    ] {
        let text =
            format!("before: '{{{{ include \"m\" . }}}}'\n{change}\nafter: '{{{{ include \"m\" . }}}}'\n");
        let printed = both_renders(&[("templates/_h.tpl", helper), ("templates/a.yaml", &text)]);
        let line = |key: &str| {
            printed.lines().find_map(|line| line.strip_prefix(key).map(str::to_owned)).unwrap_or_default()
        };
        assert_ne!(line("before: "), line("after: "), "{change}: {printed}");
    }
}

#[test]
fn random_words_are_drawn_anew() {
    let helper = "{{ define \"word\" }}{{ randAlphaNum 12 }}{{ end }}{{ define \"outer\" }}{{ include \"word\" . }}{{ end }}";
    let printed = both_renders(&[
        ("templates/_h.tpl", helper),
        ("templates/a.yaml", "a: {{ include \"outer\" . }}\nb: {{ include \"outer\" . }}\n"),
    ]);
    let words: Vec<_> =
        printed.lines().filter_map(|line| line.split_once(": ")).map(|(_, word)| word).collect();
    assert_ne!(words[1], words[2], "{printed}");
}

/// Parts of templates: those that read, and those that change what others read.
const PARTS: [&str; 22] = [
    "{{ .Values.name }}",
    "{{ toJson .Values }}",
    "{{ .Values.m.a }}{{ .Values.m.sub.x }}",
    "{{ if .Values.empty }}E{{ end }}",
    "{{ range $k, $v := .Values.m }}{{ $k }};{{ end }}",
    "{{ len .Values.m.list }}{{ hasKey .Values \"extra\" }}",
    "{{ include \"t0\" . }}",
    "{{ include \"t1\" . }}",
    "{{ include \"t2\" . }}",
    "{{ template \"t0\" . }}",
    "{{ template \"t1\" $ }}",
    "{{ include \"list\" .Values.m }}{{ include \"list\" .Values.other }}",
    "{{ include \"list\" (dict \"c\" .Values.m) }}",
    "{{ .Template.Name }}",
    "{{ tpl \"{{ .Values.name }}{{ include \\\"t0\\\" . }}\" . }}",
    "{{ randAlphaNum 4 }}",
    "{{ $_ := set .Values \"name\" (printf \"%sx\" .Values.name | trunc 40) }}",
    "{{ $_ := set .Values.empty \"k\" 1 }}",
    "{{ $_ := unset .Values.m \"a\" }}",
    "{{ $_ := set .Values \"extra\" (merge (dict) .Values.m .Values.other) }}",
    "{{ $_ := mergeOverwrite .Values.other (deepCopy .Values.m) }}",
    "{{ $_ := set .Values.m \"fresh\" (dict \"n\" (len (toJson .Values.m))) }}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn executed_or_not_the_same_is_written(
        helpers in prop::collection::vec(prop::collection::vec(0..PARTS.len(), 1..4), 3),
        bodies in prop::collection::vec(prop::collection::vec(0..PARTS.len(), 1..8), 1..4),
    ) {
        let joined = |parts: &[usize], below: usize| {
            let mut text = String::new();
            // Helpers call only earlier ones: endless recursion is not what is asked about.
            for part in parts.iter().map(|part| PARTS[*part]) {
                if (below..3).all(|other| !part.contains(&format!("t{other}"))) {
                    text.push_str(part);
                }
            }
            text
        };
        let mut library = "{{ define \"list\" }}{{ toJson . }}{{ end }}".to_owned();
        for (number, parts) in helpers.iter().enumerate() {
            write!(library, "{{{{ define \"t{number}\" }}}}{}{{{{ end }}}}", joined(parts, number)).unwrap();
        }
        let mut files = vec![("templates/_h.tpl".to_owned(), library)];
        for (number, parts) in bodies.iter().enumerate() {
            let text = format!("k{number}: |\n  {}\n", joined(parts, 3));
            files.push((format!("templates/b{number}.yaml"), text));
        }
        prop_assert_eq!(render(&files, false), render(&files, true));
    }
}
