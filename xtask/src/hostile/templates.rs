//! Charts whose templates ask for much with few words.

use super::repository::{CHART, Case};

/// What is asked for, between `{{` and `}}`.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("split-list", r#"splitList "" (repeat 3000000 "x") | len"#),
    ("regex-split", r#"regexSplit "" (repeat 3000000 "x") -1 | len"#),
    ("split", r#"split "x" (repeat 2000000 "x") | len"#),
    ("from-json", r#"fromJsonArray (printf "[%s1]" (repeat 4000000 "1,")) | len"#),
    ("from-yaml", r#"fromYamlArray (printf "[%s1]" (repeat 3000000 "{},")) | len"#),
    ("from-toml", r#"fromToml (printf "a=[%s1]" (repeat 3000000 "1,")) | len"#),
    ("aliases", r#"fromYaml (printf "s: &s %s\nd: [%s1]" (repeat 1000000 "x") (repeat 100000 "*s,")) | len"#),
    ("authority", r#"range until 1000 }}{{ genCA "x" 1 | len }}{{ end"#),
    ("bcrypt", r#"range until 10000 }}{{ bcrypt "x" | len }}{{ end"#),
    ("passwords", r#"range until 10000 }}{{ derivePassword 1 "long" "p" "u" "s" | len }}{{ end"#),
    ("until", "until 100000000 | len"),
    ("until-step", "untilStep 0 1000000000 1 | len"),
    ("loops", "range until 30000 }}{{ range until 30000 }}{{ end }}{{ end"),
    ("repeat", r#"repeat 100 (repeat 1000 (repeat 1000 (repeat 1000 "x"))) | len"#),
    ("replace", r#"replace "" (repeat 100000 "y") (repeat 100000 "x") | len"#),
    ("indent", r#"indent 1000000 (repeat 100000 "\n") | len"#),
    ("wrap", r#"wrapWith 1 (repeat 100000 "z") (repeat 100000 "x") | len"#),
    ("width", r#"printf "%999999999d" 1 | len"#),
    ("precision", r#"printf "%.999999999f" 1.5 | len"#),
    (
        "to-json",
        r#"$x := dict "a" (repeat 1000000 "x") }}{{ $y := list }}{{ range until 3000 }}{{ $y = append $y $x }}{{ end }}{{ toJson $y | len"#,
    ),
    (
        "to-yaml",
        r#"$x := list (repeat 100000 "x") }}{{ range until 20 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x | len"#,
    ),
    ("deep-copy", "$x := list 1 }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ deepCopy $x | len"),
    (
        "merge",
        r#"$x := dict "a" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ mustMergeOverwrite (dict) $x | len"#,
    ),
    ("deep-equal", "$x := list 1 }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ deepEqual $x $x"),
    ("print", r#"$x := list 1 }}{{ range until 40 }}{{ $x = list $x $x }}{{ end }}{{ printf "%v" $x | len"#),
    ("hashes", r#"range until 2000 }}{{ sha256sum (repeat 2000000 "x") }}{{ end"#),
    ("pattern", r#"regexMatch "(a*)*(a*)*(a*)*b" (repeat 1000000 "a")"#),
    ("large-pattern", r#"regexMatch "((((a{100}){100}){100}){100})" "a""#),
    ("replace-pattern", r#"regexReplaceAll "x" (repeat 100000 "x") (repeat 100000 "y") | len"#),
    ("shuffle", r#"range until 300000 }}{{ shuffle (repeat 100 "x") | len }}{{ end"#),
    ("cycle-yaml", r#"$d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d | len"#),
    ("cycle-print", r#"$d := dict }}{{ $_ := set $d "d" $d }}{{ printf "%v" $d | len"#),
    ("cycle-copy", r#"$d := dict }}{{ $_ := set $d "d" $d }}{{ deepCopy $d | len"#),
    ("sort", r#"sortAlpha (splitList "," (repeat 1000000 "a,")) | len"#),
    ("unique", "uniq (until 60000) | len"),
    ("without", "without (until 60000) 1 | len"),
    ("has", "range until 20000 }}{{ has 1 (until 20000) }}{{ end"),
    ("chunk", "chunk 1 (until 1000000) | len"),
    ("dates", r#"range until 300000 }}{{ dateInZone "2006-01-02" now "Europe/Berlin" | len }}{{ end"#),
    ("versions", r#"semverCompare (repeat 100000 ">1.0.0 || ") "1.0.0""#),
    ("base32", r#"b32enc (repeat 30000000 "x") | len"#),
    ("encrypt", r#"encryptAES "k" (repeat 30000000 "x") | len"#),
    ("itself", r#"include "w.itself" ."#),
];

/// One chart for each.
pub(super) fn cases() -> Vec<Case> {
    let chart = |(name, expression): &(&str, &str)| {
        let template = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata: {{a: '{{{{ {expression} }}}}'}}\n"
        );
        let files = [
            ("w/Chart.yaml", CHART.to_owned()),
            ("w/values.yaml", String::new()),
            ("w/templates/c.yaml", template),
            (
                "w/templates/_h.tpl",
                "{{ define \"w.itself\" }}{{ include \"w.itself\" . }}{{ end }}".to_owned(),
            ),
        ];
        Case::new(&format!("template-{name}"), files)
    };
    EXPRESSIONS.iter().map(chart).collect()
}
