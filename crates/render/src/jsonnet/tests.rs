use super::{
    nesting_limits::{MAX_BYTES, MAX_DEPTH},
    *,
};
use tiphys_vfs::MemTree;

fn task() -> Task {
    Task {
        path: "app/main.jsonnet".into(),
        folders: vec!["app".into(), "vendor".into(), "lib".into()],
        ext_vars: vec![JsonnetVar { name: "env".into(), value: "prod".into(), code: false }],
        tlas: vec![JsonnetVar { name: "n".into(), value: "1 + 1".into(), code: true }],
    }
}

fn text(files: &[(&str, &str)]) -> Result<String, String> {
    thread::run(task(), Arc::new(MemTree::from_files(files.iter().copied())))
        .map_err(|error| error.to_string())
}

#[test]
fn variables_arguments_and_imports_count() {
    let main = "local l = import 'l.libsonnet'; function(n) [{n: n, env: std.extVar('env'), l: l, s: importstr 's.txt'}]";
    let files = [
        ("app/main.jsonnet", main),
        ("app/s.txt", "text"),
        ("vendor/l.libsonnet", "'vendor'"),
        ("lib/l.libsonnet", "import 'inner/x.libsonnet'"),
        ("lib/inner/x.libsonnet", "{from: 'the last library'}"),
    ];
    assert_eq!(
        text(&files).expect("evaluates"),
        r#"[{"env": "prod", "l": {"from": "the last library"}, "n": 2, "s": "text"}]"#
    );
}

#[test]
fn faults_name_their_place() {
    let rows = [
        ("{a: b}", "app/main.jsonnet:1:5: unknown variable \"b\""),
        ("{\n  a: ", "app/main.jsonnet:2:"),
        ("error 'no ' + 'way'", "app/main.jsonnet:1:1: no way"),
        ("std.extVar('other')", "external variable \"other\" is not set"),
        ("import '../../etc/passwd'", "nothing outside the repository is read"),
        ("import '/etc/passwd'", "nothing outside the repository is read"),
        ("local f(x) = 1 + f(x); f(1)", "stack overflow"),
        ("local a = a; a", "infinite recursion"),
    ];
    for (main, expected) in rows {
        let fault = text(&[("app/main.jsonnet", main)]).expect_err(main);
        assert!(fault.contains(expected), "{main}: {fault}");
    }
}

#[test]
fn what_would_use_up_the_stack_is_refused() {
    let bodies = |count: usize| format!("{}a", "local a = 1;\n".repeat(count));
    let deep = ["{a:".repeat(100_000), "[".repeat(100_000), bodies(50_000), "if 1 then ".repeat(50_000)];
    for main in deep.into_iter().chain([" ".repeat(MAX_BYTES + 1)]) {
        assert!(text(&[("app/main.jsonnet", &main)]).is_err());
    }
    let wide = format!("[{} 1]", "(local a = ')'; function(x) x)(1), # {{{\n".repeat(20_000));
    assert!(text(&[("app/main.jsonnet", &wide)]).is_ok());
    assert_eq!(text(&[("app/main.jsonnet", &bodies(MAX_DEPTH - 1))]).as_deref(), Ok("1"));
    let sum = format!("{}1", "1 + ".repeat(100_000));
    assert_eq!(text(&[("app/main.jsonnet", &sum)]).as_deref(), Ok("100001"));
    let nested = "std.foldl(function(a, i) [a], std.range(1, 100000), [])";
    let fault = text(&[("app/main.jsonnet", nested)]).expect_err("too deep");
    assert!(fault.contains("stack overflow"), "{fault}");
    let minus = format!("{}1", "- ".repeat(2000));
    assert_eq!(text(&[("app/main.jsonnet", &minus)]).as_deref(), Ok("1"));
}
