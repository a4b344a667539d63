//! Executing small templates.

use std::sync::Arc;
use tiphys_gotemplate::{Env, Functions, TemplateSet, Value};

fn run(text: &str) -> String {
    let mut set = TemplateSet::new(Arc::new(Functions::builtins()));
    if let Err(error) = set.parse("t", text) {
        return error.to_string();
    }
    let data = serde_json::json!({"a": {"b": 1.0, "s": "x", "n": null}, "l": ["p", "q"], "big": 1e6});
    let data = Value::from_json(&data, tiphys_gotemplate::Numbers::Float64);
    Arc::new(set).execute("t", data, &Env::system(), None).unwrap_or_else(|error| error.to_string())
}

#[test]
fn statements() {
    assert_eq!(
        run("{{ .a.b }} {{ .a.s }} {{ .big }} {{ .a.n }} {{ .x }}"),
        "1 x 1e+06 <no value> <no value>"
    );
    assert_eq!(run("{{ range $i, $e := .l }}{{ $i }}={{ $e }};{{ end }}"), "0=p;1=q;");
    assert_eq!(run("{{ range 3 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ . }}{{ end }}"), "02");
    assert_eq!(run("a {{- /* c */ -}} b{{ define \"x\" }}[{{ . }}]{{ end }}{{ template \"x\" 5 }}"), "ab[5]");
    assert_eq!(
        run("{{ with .a }}{{ .s }}{{ end }}{{ with .x }}1{{ else with .l }}{{ len . }}{{ end }}"),
        "x2"
    );
    assert_eq!(run("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x | printf \"%03d\" }}"), "002");
}

#[test]
fn errors() {
    assert_eq!(
        run("{{ .a.n.c }}"),
        "template: t:1:5: executing \"t\" at <.a.n.c>: nil pointer evaluating interface {}.c"
    );
    assert_eq!(
        run("{{ .a.s.c }}"),
        "template: t:1:5: executing \"t\" at <.a.s.c>: can't evaluate field c in type interface {}"
    );
    assert_eq!(
        run("\n {{ eq 1 \"x\" }}"),
        "template: t:2:4: executing \"t\" at <eq 1 \"x\">: error calling eq: incompatible types for comparison: int and string"
    );
    assert_eq!(run("{{ nope }}"), "template: t:1: function \"nope\" not defined");
    assert_eq!(run("{{ if }}{{ end }}"), "template: t:1: missing value for if");
}
