//! No template makes the parser or the executor panic, overflow the stack or run for ever.

use proptest::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tiphys_gotemplate::{Env, Functions, Limit, Limits, Numbers, TemplateSet, Value};

fn limits() -> Limits {
    Limits {
        depth: 200,
        output: 1 << 20,
        steps: 50_000,
        deadline: Some(Instant::now() + Duration::from_secs(20)),
        memory: 64 << 20,
        values: 50_000,
        work: 1000,
    }
}

fn run(text: &str, limits: Limits) -> Result<String, Option<Limit>> {
    let mut set = TemplateSet::new(Arc::new(Functions::sprig()));
    set.parse("t", text).map_err(|_| None)?;
    let data = serde_json::json!({"a": {"b": [1, "x", null]}, "s": "text", "n": 5});
    let env = Env { limits, ..Env::system() };
    let result = Arc::new(set).execute("t", Value::from_json(&data, Numbers::Float64), &env, None);
    result.map_err(|error| error.limit)
}

fn names() -> Vec<String> {
    let slow = ["genCA", "genPrivateKey", "genSelfSignedCert", "derivePassword", "bcrypt", "htpasswd"];
    let functions = Functions::sprig();
    let mut names: Vec<String> =
        functions.names().filter(|name| !slow.contains(name)).map(str::to_owned).collect();
    names.sort();
    names
}

fn operand() -> impl Strategy<Value = String> {
    let fixed = [
        ".",
        "$",
        ".a",
        ".a.b",
        ".s",
        ".n",
        ".nope",
        "nil",
        "true",
        "0",
        "-1",
        "3",
        "2.5",
        "1e9",
        "\"\"",
        "\"a,b\"",
        "\"%d%s\"",
        "\"[\"",
        "'c'",
        "$x",
        "(list 1 2)",
        "(dict \"k\" .)",
        "\"é\\xff\"",
    ];
    proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned)
}

fn pipeline() -> impl Strategy<Value = String> {
    let call = (proptest::sample::select(names()), proptest::collection::vec(operand(), 0..4))
        .prop_map(|(name, args)| format!("{name} {}", args.join(" ")));
    let one = prop_oneof![operand(), call];
    proptest::collection::vec(one, 1..4).prop_map(|commands| commands.join(" | "))
}

fn statement() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        pipeline().prop_map(|pipe| format!("{{{{ {pipe} }}}}")),
        pipeline().prop_map(|pipe| format!("{{{{ $x = {pipe} }}}}")),
        Just("{{ break }}".to_owned()),
        Just("text\n".to_owned()),
        Just("{{ template \"t\" . }}".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let body = proptest::collection::vec(inner, 0..3).prop_map(|parts| parts.concat());
        (proptest::sample::select(vec!["if", "with", "range"]), pipeline(), body.clone(), body).prop_map(
            |(keyword, pipe, body, other)| {
                format!("{{{{ {keyword} {pipe} }}}}{body}{{{{ else }}}}{other}{{{{ end }}}}")
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_text_parses_or_fails(text in "(\\{\\{|\\}\\}|[a-z .|()\"'`$:=,/*\\-\\n0-9é]|if |end|range |else|define |nil){0,40}") {
        let _ = run(&text, limits());
    }

    #[test]
    fn any_program_ends(statements in proptest::collection::vec(statement(), 1..5)) {
        let text = format!("{{{{ $x := 1 }}}}{}", statements.concat());
        let _ = run(&text, limits());
    }
}

#[test]
fn limits_are_named() {
    let tight = Limits { steps: 10_000, output: 10_000, depth: 100, ..Limits::default() };
    let limit = |text: &str| run(text, tight.clone()).unwrap_err();
    assert_eq!(limit("{{ range 100000000 }}{{ end }}"), Some(Limit::Steps));
    assert_eq!(limit("{{ range 9000 }}aaaaaaaaaa{{ end }}"), Some(Limit::Output));
    assert_eq!(limit("{{ repeat 100000 \"a\" }}"), Some(Limit::Output));
    assert_eq!(limit("{{ until 100000000 }}"), Some(Limit::Output));
    assert_eq!(
        limit("{{ define \"r\" }}{{ template \"r\" }}{{ end }}{{ template \"r\" }}"),
        Some(Limit::Depth)
    );
    let late = Limits { deadline: Some(Instant::now()), ..tight.clone() };
    assert_eq!(run("{{ range 100000000 }}{{ end }}", late).unwrap_err(), Some(Limit::Time));
}

/// A template that makes a value twice as large, sixty times, and then uses it.
fn doubled(start: &str, step: &str, used: &str) -> String {
    format!("{{{{ $x := {start} }}}}{{{{ range 60 }}}}{{{{ $x = {step} }}}}{{{{ end }}}}{{{{ {used} }}}}")
}

#[test]
fn values_that_grow_are_refused_before_they_are_too_large() {
    let limit = |text: &str| run(text, limits()).unwrap_err();
    for (start, step) in [
        ("\"a\"", "printf \"%s%s\" $x $x"),
        ("\"a\"", "cat $x $x"),
        ("\"a\"", "print $x $x"),
        ("list 1", "concat $x $x"),
        ("\"a\"", "regexReplaceAll \"a\" $x \"aa\""),
        ("\"a\"", "printf \"%[1]s%[1]s\" $x"),
    ] {
        assert_eq!(limit(&doubled(start, step, "len $x")), Some(Limit::Output), "{step}");
    }
    for text in [
        "{{ printf (repeat 100000 \"%[1]s\") (repeat 100000 \"a\") }}",
        "{{ printf (repeat 100 \"%900000[1]d\") 1 }}",
        "{{ regexReplaceAll \"a\" (repeat 100000 \"a\") (repeat 100000 \"b\") }}",
        "{{ regexReplaceAll \".*\" (repeat 100000 \"a\") (repeat 100000 \"$0\") }}",
        "{{ regexReplaceAllLiteral \"\" (repeat 100000 \"a\") (repeat 100000 \"b\") }}",
        "{{ wrapWith 1 (repeat 100000 \"b\") (repeat 100000 \"a \") }}",
        "{{ join (repeat 100000 \",\") (until 1000) }}",
    ] {
        assert_eq!(limit(text), Some(Limit::Output), "{text}");
    }
}

#[test]
fn what_is_shared_is_not_gone_through_without_end() {
    let limit = |text: &str| run(text, limits()).unwrap_err();
    let of_lists = |used: &str| doubled("list 1", "list $x $x", used);
    for used in [
        "toJson $x",
        "deepCopy $x",
        "$x",
        "printf \"%v\" $x",
        "toString $x",
        "join \"\" $x",
        "quote $x",
        "has 1 $x",
    ] {
        assert_eq!(limit(&of_lists(used)), Some(Limit::Memory), "{used}");
    }
    let of_maps = |used: &str| doubled("dict", "dict \"a\" $x \"b\" $x", used);
    for used in ["merge (dict) $x", "deepEqual $x (deepCopy $x)", "toPrettyJson $x", "print $x"] {
        assert_eq!(limit(&of_maps(used)), Some(Limit::Memory), "{used}");
    }
    let used_elsewhere = "len $x | print (first $x | kindOf) (default 1 $x | len)";
    assert_eq!(run(&of_lists(used_elsewhere), limits()).as_deref(), Ok("slice2 2"));
}

#[test]
fn memory_is_counted_though_every_value_is_small() {
    let kept = "{{ $d := dict }}{{ range $i, $e := until 1000 }}{{ $_ := set $d (print $i) (print $i (repeat 100000 \"a\")) }}{{ end }}";
    assert_eq!(run(kept, limits()).unwrap_err(), Some(Limit::Memory));
    let late = Limits { deadline: Some(Instant::now()), ..limits() };
    let slow = "{{ upper \"a\" }}".repeat(20);
    assert_eq!(run(&slow, late).unwrap_err(), Some(Limit::Time), "the clock is read between calls too");
}

#[test]
fn parts_of_a_text_are_counted_before_they_are_made() {
    let limit = |text: &str| run(text, limits()).unwrap_err();
    for used in [
        "splitList \",\" $x",
        "split \",\" $x",
        "regexSplit \",\" $x -1",
        "regexFindAll \",\" $x -1",
        "splitList \"\" $x",
    ] {
        let text = format!("{{{{ $x := repeat 600000 \",\" }}}}{{{{ {used} | len }}}}");
        assert_eq!(limit(&text), Some(Limit::Memory), "{used}");
        let text = format!("{{{{ $x := repeat 100 \"a,\" }}}}{{{{ {used} | len }}}}");
        assert!(run(&text, limits()).is_ok(), "{used}");
    }
    assert_eq!(run("{{ regexSplit \",\" \"a,b,c\" 2 | len }}", limits()).as_deref(), Ok("2"));
    let grown = "{{ $x := list }}{{ range until 20000 }}{{ $x = append $x 1 }}{{ end }}";
    assert_eq!(limit(grown), Some(Limit::Memory));
}

#[test]
fn what_yaml_indents_counts() {
    let deep = "{{ $d := until 20000 }}{{ range 900 }}{{ $d = dict \"a\" $d }}{{ end }}{{ toJson $d | len }}";
    assert_eq!(run(deep, Limits { steps: 1_000_000, ..limits() }).unwrap_err(), Some(Limit::Output));
}

#[test]
fn copies_are_counted_with_all_that_they_hold() {
    let made =
        "{{ $d := dict }}{{ range $i := until 1000 }}{{ $_ := set $d (print $i) (dict \"a\" 1) }}{{ end }}";
    let copied = format!("{made}{{{{ range until 400 }}}}{{{{ $c := deepCopy $d }}}}{{{{ end }}}}");
    assert_eq!(run(&copied, limits()).unwrap_err(), Some(Limit::Memory));
}

#[test]
fn long_lists_are_made_unique_in_one_pass() {
    let roomy = || Limits { memory: 512 << 20, values: 2_000_000, output: 64 << 20, ..limits() };
    assert_eq!(run("{{ until 300000 | uniq | len }}", roomy()).as_deref(), Ok("300000"));
    assert_eq!(run("{{ split \",\" (repeat 300000 \"a,\") | len }}", roomy()).as_deref(), Ok("300001"));
    assert_eq!(
        run(
            "{{ list 1 1.0 \"1\" 1 nil nil (list 1) (list 1) (dict \"a\" 1) (dict \"a\" 1) | uniq | len }}",
            limits()
        )
        .as_deref(),
        Ok("6")
    );
    let trimmed = "{{ trimAll (print (repeat 100000 \"a\") \"b\") (repeat 100000 \"b\") }}";
    assert_eq!(run(trimmed, limits()).as_deref(), Ok(""));
}

#[test]
fn slow_work_is_counted() {
    let tight = Limits { work: 150, ..limits() };
    let hashes = "{{ range until 20 }}{{ bcrypt \"x\" }}{{ end }}";
    assert_eq!(run(hashes, tight.clone()).unwrap_err(), Some(Limit::Time));
    assert!(run("{{ bcrypt \"x\" }}{{ htpasswd \"a\" \"b\" }}", tight).is_ok());
}

#[test]
fn deep_nesting_is_an_error() {
    for text in [
        format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{}{}", "{{ if 1 }}".repeat(100_000), "{{ end }}".repeat(100_000)),
        "{{ if 1 }}{{ else if 1 }}".repeat(50_000),
    ] {
        assert_eq!(run(&text, limits()), Err(None));
    }
}

#[test]
fn deep_and_cyclic_values_end() {
    let deep = "{{ $d := dict }}{{ range 40000 }}{{ $d = dict \"a\" $d }}{{ end }}";
    let roomy = || Limits { steps: 1_000_000, ..limits() };
    assert_eq!(run(deep, roomy()).as_deref(), Ok(""));
    for tail in ["{{ toJson $d }}", "{{ $d }}", "{{ deepEqual $d (deepCopy $d) }}", "{{ merge (dict) $d }}"] {
        let _ = run(&format!("{deep}{tail}"), roomy());
    }
    let cyclic = "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}";
    assert!(run(&format!("{cyclic}{{{{ mustToJson $d }}}}"), limits()).is_err());
    assert!(run(&format!("{cyclic}{{{{ $d }}}}"), limits()).unwrap().contains("VALUE NESTED TOO DEEP"));
    assert!(run(&format!("{cyclic}{{{{ deepCopy $d }}}}"), limits()).is_err());
}

#[test]
fn deep_json_is_read_or_refused() {
    let nested = |depth: usize| {
        format!("{{{{ print (repeat {depth} \"[\") (repeat {depth} \"]\") | mustFromJson | toJson | len }}}}")
    };
    assert_eq!(run(&nested(900), limits()).as_deref(), Ok("1800"));
    assert_eq!(run(&nested(100_000), limits()), Err(None));
}
