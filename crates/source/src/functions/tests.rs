use tiphys_vfs::MemTree;

use super::*;

fn tree() -> MemTree {
    MemTree::from_files([
        ("app/f.sh", "#!/bin/sh\necho \"$1:$X:${SECRET:-none}:$(cat sub/data)\"; cat\n"),
        ("app/sub/data", "inside"),
        ("other", "outside"),
    ])
}

fn functions(given: &[&str]) -> Functions {
    let mut functions = Functions::default();
    for one in given {
        functions.allow(one, Path::new("/here")).expect("valid");
    }
    functions
}

fn executable(path: &str) -> FunctionProgram {
    FunctionProgram::Executable(path.to_owned())
}

/// Runs a program for `app`, with input `in`, argument `a` and variable `X`.
fn run(given: &str, program: &FunctionProgram, env: &[(&str, &str)]) -> Result<FunctionOutput, String> {
    let tree = tree();
    let env: Vec<(String, String)> = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let call = FunctionCall {
        program,
        args: &["a".to_owned()],
        env: &env,
        input: "in",
        config_file: None,
        tree: &tree,
        folder: "app",
        is_remote: false,
    };
    functions(&[given]).run_within(&call, Duration::from_secs(600))
}

#[test]
fn what_is_allowed_is_found_by_the_name_that_configurations_use() {
    let plugin = |api_version: &str, kind: &str| FunctionProgram::Plugin {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    };
    let image = |name: &str| FunctionProgram::Image(name.to_owned());
    let rows = [
        ("ksops", executable("ksops"), Some("ksops")),
        ("ksops", executable("./ksops"), None),
        ("ksops=/opt/wrapped -q", executable("ksops"), Some("/opt/wrapped")),
        ("img:v1=./run", image("img:v1"), Some("/here/./run")),
        ("img:v1=run", image("img:v1"), Some("run")),
        ("img:v1=run", image("img:v2"), None),
        ("e.com/v1/Tag=run", plugin("e.com/v1", "Tag"), Some("run")),
        ("/p/e.com/v1/tag/Tag", plugin("e.com/v1", "Tag"), Some("/p/e.com/v1/tag/Tag")),
        ("/p/e.com/v1/tag/Tag", plugin("e.com/v2", "Tag"), None),
        ("p/e.com/v1/tag/Tag", plugin("e.com/v1", "Tag"), None),
        ("/p/Tag", plugin("../..", "Tag"), None),
    ];
    for (given, program, expected) in rows {
        assert_eq!(functions(&[given]).find(&program).as_deref(), expected, "{given} {program:?}");
    }
    let mut none = Functions::default();
    assert!(
        none.is_empty()
            && none.allow("=x", Path::new("")).is_err()
            && none.allow("x=", Path::new("")).is_err()
    );
}

#[test]
fn a_program_of_the_repository_runs_in_a_copy_of_its_folder() {
    let done = run("./f.sh", &executable("./f.sh"), &[("X", "1")]).expect("runs");
    assert_eq!(done.output, "a:1:none:inside\nin");
    assert_eq!(done.failure, None);
    let up = run("../other", &executable("../other"), &[]).expect_err("leads out");
    assert!(up.contains("leads out of the kustomization's folder"), "{up}");
}

#[test]
fn failures_have_gos_words() {
    let rows = [
        ("no-such-program-here", "exec: \"no-such-program-here\": executable file not found in $PATH"),
        ("./nothing", "fork/exec ./nothing: no such file or directory"),
        ("/dev/null", "fork/exec /dev/null: permission denied"),
    ];
    for (name, expected) in rows {
        assert_eq!(run(name, &executable(name), &[]).expect_err("cannot start"), expected);
    }
    let image = FunctionProgram::Image("i".to_owned());
    let failed = run("i=false", &image, &[]).expect("runs");
    assert_eq!(failed.failure.as_deref(), Some("exit status 1"));
}

#[test]
fn a_repository_sets_no_variable_that_loads_code() {
    for name in
        ["LD_PRELOAD", "PATH", "BASH_ENV", "PYTHONSTARTUP", "NODE_OPTIONS", "JDK_JAVA_OPTIONS", "A B", ""]
    {
        let fault =
            run("i=cat", &FunctionProgram::Image("i".to_owned()), &[(name, "x")]).expect_err("refused");
        assert!(fault.contains("may not set the variable"), "{fault}");
    }
}

#[test]
fn what_is_fetched_is_not_run() {
    let tree = tree();
    let program = executable("./f.sh");
    let call = FunctionCall {
        program: &program,
        args: &[],
        env: &[],
        input: "",
        config_file: None,
        tree: &tree,
        folder: "app",
        is_remote: true,
    };
    let fault = functions(&["./f.sh"]).run(&call).expect_err("refused");
    assert!(fault.contains("remote base"), "{fault}");
}

#[test]
fn an_exec_plugin_gets_its_configuration_as_a_file() {
    let tree = MemTree::from_files([("x", "")]);
    let program = FunctionProgram::Plugin { api_version: "e.com/v1".into(), kind: "Tag".into() };
    let call = FunctionCall {
        program: &program,
        args: &[],
        env: &[],
        input: "not read",
        config_file: Some("kind: Tag\n"),
        tree: &tree,
        folder: "",
        is_remote: false,
    };
    let done = functions(&["e.com/v1/Tag=cat"]).run(&call).expect("runs");
    assert_eq!(done.output, "kind: Tag\n");
}

#[test]
fn a_program_that_takes_too_long_is_ended() {
    let tree = tree();
    let program = FunctionProgram::Image("i".to_owned());
    let args = ["1000".to_owned()];
    let call = FunctionCall {
        program: &program,
        args: &args,
        env: &[],
        input: "",
        config_file: None,
        tree: &tree,
        folder: "app",
        is_remote: false,
    };
    let fault = functions(&["i=sleep"]).run_within(&call, Duration::from_millis(50)).expect_err("too slow");
    assert!(fault.contains("takes longer"), "{fault}");
}
