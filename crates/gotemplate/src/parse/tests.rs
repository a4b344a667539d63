//! Texts that are parsed together are parsed as if they were alone.

use std::sync::Arc;

use proptest::prelude::*;

use super::{List, Node, Parsing, Quoted, node::Source};
use crate::{Functions, ParseError};

/// Pieces of which templates are made, valid ones and others; many begin alike.
const PIECES: &[&str] = &[
    "text",
    "{{ .Values.a }}",
    "{{ .Values.a.b }}",
    "{{- .Values.a -}} \n",
    "{{ .Values.a | quote }}",
    "{{ (.Values.a | default 3).b }}",
    "{{ if .Values.a }}",
    "{{- if eq $x \"}}\" }}",
    "{{ with .b }}",
    "{{ else if .Values.a }}",
    "{{ else with .b }}",
    "{{ else if $y }}",
    "{{ else }}",
    "{{- end }}",
    "{{ end }}",
    "{{ range $i, $x := .list }}",
    "{{ range .list }}",
    "{{ break }}",
    "{{ continue }}",
    "{{ $x := 1 }}",
    "{{ $y := $x }}",
    "{{ $x }}",
    "{{ $x.a.b }}",
    "{{ ($z := 2) }}",
    "{{ $z }}",
    "{{ $x = 2 }}",
    "{{ `}}` }}",
    "{{ `}} }}` }}",
    "{{ \"plain\" }}",
    "{{ \"a\\tb\" }}",
    "{{ ` ` }}",
    "{{ template \"t\" }}",
    "{{ template \"t\" . }}",
    "{{ define \"d\" }}",
    "{{ block \"k\" . }}",
    "{{/* comment */}}",
    "{{ nofunction }}",
    "{{ .a b }}",
    "{{\u{c}define \"f\" }}",
    "{{ 1.2.3 }}",
    "{{ \"open }}",
    "\n",
];

/// Everything that an error or a trace may show of a text.
fn dump(result: Result<Vec<super::Tree>, ParseError>) -> String {
    let trees = match result {
        Ok(trees) => trees,
        Err(error) => return error.to_string(),
    };
    let mut out = String::new();
    for tree in trees {
        out += &format!("{} {} {}\n", tree.name(), tree.file(), tree.is_empty());
        show_list(&tree, &tree.source, tree.root, &mut out);
    }
    out
}

fn show_list(tree: &super::Tree, source: &Source, list: List, out: &mut String) {
    for node in source.nodes(list) {
        let (pos, shown) = (Quoted::Node(node).pos(source, 0), tree.quote(Quoted::Node(node), 0));
        *out += &format!("{pos} {shown}\n");
        if let Node::If(branch) | Node::With(branch) | Node::Range(branch) = node {
            let branch = source.branch(*branch);
            show_list(tree, source, branch.list, out);
            if let Some(list) = branch.else_list {
                show_list(tree, source, list, out);
            }
        }
    }
}

fn parse_alone(text: &str) -> String {
    let mut parsing = Parsing::new(Arc::new(Functions::sprig()));
    let draft = parsing.parse("t", text.into());
    let parts = parsing.finish();
    dump(draft.map(|draft| draft.trees(&parts)))
}

fn parse_together(texts: &[String]) -> Vec<String> {
    let mut parsing = Parsing::new(Arc::new(Functions::sprig()));
    let drafts: Vec<_> = texts.iter().map(|text| parsing.parse("t", text.as_str().into())).collect();
    let parts = parsing.finish();
    drafts.into_iter().map(|draft| dump(draft.map(|draft| draft.trees(&parts)))).collect()
}

proptest! {
    #[test]
    fn texts_parsed_together_are_parsed_as_alone(
        texts in prop::collection::vec(prop::collection::vec(prop::sample::select(PIECES), 0..12), 1..12)
    ) {
        let texts: Vec<String> = texts.into_iter().map(|pieces| pieces.concat()).collect();
        let together = parse_together(&texts);
        for (text, together) in texts.iter().zip(together) {
            prop_assert_eq!(parse_alone(text), together, "{}", text);
        }
    }
}

#[test]
fn an_action_that_was_read_before_is_refused_where_its_variables_are_unknown() {
    let texts = ["{{ $x := 1 }}{{ $x }}".to_owned(), "a\n{{ $x }}".to_owned()];
    assert_eq!(parse_together(&texts)[1], "template: t:2: undefined variable \"$x\"");
}

#[test]
fn what_an_action_declares_is_known_behind_it_where_it_was_read_before() {
    let texts = ["{{ $x := 1 }}".to_owned(), "{{ $x := 1 }}{{ $x }}".to_owned()];
    assert_eq!(parse_together(&texts)[1], parse_alone(&texts[1]));
}

#[test]
fn an_else_that_fits_one_control_structure_does_not_fit_another() {
    let texts =
        ["{{ if . }}{{ else if . }}{{ end }}".to_owned(), "{{ with . }}{{ else if . }}{{ end }}".to_owned()];
    assert_eq!(parse_together(&texts)[1], "template: t:1: unexpected <if> in input");
}

#[test]
fn strings_that_stand_alone_are_text() {
    let shown = parse_alone("{{ `a}}` }}{{ \"b\" -}} c{{ ` ` }}");
    assert_eq!(shown, "t t false\n4 a}}\n15 b\n22 c\n26 {{` `}}\n");
}

#[test]
fn only_what_is_space_to_a_template_stands_before_its_words() {
    assert_eq!(
        parse_alone("{{\u{c}define \"f\" }}x{{ end }}"),
        "template: t:1: unrecognized character in action: U+000C"
    );
    assert_eq!(parse_alone("{{\tdefine \"f\" }}x{{ end }}"), "f t false\n16 x\nt t true\n");
}
