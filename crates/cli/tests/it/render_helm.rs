//! `tiphys render helm`: what its flags do beside rendering.

use std::{fs, path::Path, process::Command};

fn chart(folder: &Path) {
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("values.yaml", "level: low\n"),
        ("crds/crd.yaml", "kind: CustomResourceDefinition\n"),
        (
            "templates/two.yaml",
            "kind: A\nmetadata: {name: {{ .Release.Name }}}\n---\nkind: B\nlevel: {{ .Values.level }}\n",
        ),
        ("templates/hook.yaml", "kind: Job\nmetadata: {annotations: {helm.sh/hook: pre-install}}\n"),
    ];
    for (path, text) in files {
        let file = folder.join("web").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

/// Exit code, stdout and stderr of `tiphys render helm ARGS` in a folder.
fn run(folder: &Path, args: &[&str]) -> (i32, String, String) {
    run_with(folder, args, &[("KUBECONFIG", "none")])
}

/// The same with environment variables.
fn run_with(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tiphys"))
        .args(["render", "helm"])
        .args(args)
        .current_dir(folder)
        .env_remove("HELM_NAMESPACE")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_namespace_comes_from_where_helm_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    fs::write(folder.path().join("web/templates/two.yaml"), "said: {{ .Release.Namespace }}\n").unwrap();
    let config = "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u, namespace: ours}}\n- {name: b, context: {cluster: c, user: u}}\n";
    fs::write(folder.path().join("config"), config).unwrap();
    let kubeconfig = ("KUBECONFIG", "config");
    let said = |args: &[&str], variables: &[(&str, &str)]| {
        let (_, stdout, _) = run_with(folder.path(), &[&["web"], args].concat(), variables);
        stdout.lines().find_map(|line| line.strip_prefix("said: ").map(str::to_owned)).unwrap()
    };
    assert_eq!(said(&[], &[kubeconfig]), "ours");
    assert_eq!(said(&["--kube-context", "b"], &[kubeconfig]), "default");
    assert_eq!(said(&[], &[kubeconfig, ("HELM_KUBECONTEXT", "b")]), "default");
    assert_eq!(said(&["-n", ""], &[kubeconfig, ("HELM_NAMESPACE", "theirs")]), "theirs");
    assert_eq!(said(&["-n", "given"], &[kubeconfig, ("HELM_NAMESPACE", "theirs")]), "given");
}

#[test]
fn flags_are_read_as_helm_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.yaml", "level: a\nonly: a\n");
    write("b.yaml", "level: b\n");
    write("c,d.yaml", "level: cd\n");
    write(
        "web/templates/two.yaml",
        "said: {{ .Values.level }} {{ .Values.only }} {{ .Release.Namespace }} {{ .Release.Name }} {{ .Release.IsUpgrade }} {{ .Capabilities.APIVersions.Has \"x/v1\" }} {{ .Capabilities.APIVersions.Has \"y/v1\" }}\n",
    );
    let said = |args: &[&str]| {
        let (code, stdout, stderr) = run(folder.path(), &[args, &["-s", "templates/two.yaml"]].concat());
        assert_eq!(code, 0, "{args:?}: {stderr}");
        (stdout.lines().nth(2).unwrap().to_owned(), stderr)
    };
    for (args, expected) in [
        // Several files in one flag, quoted where a name holds a comma; an empty one names none.
        (&["web", "-f", "a.yaml,b.yaml", "-f", ""][..], "b a default release-name false false false"),
        (&["web", "-f", "a.yaml,\"c,d.yaml\""], "cd a default release-name false false false"),
        (&["web", "-a", "\"x/v1\",y/v1"], "low <nil> default release-name false true true"),
        // What is given twice; what is given empty.
        (&["web", "-n", "one", "-n", "two"], "low <nil> two release-name false false false"),
        (&["web", "--is-upgrade", "--is-upgrade"], "low <nil> default release-name true false false"),
        (&["web", "--is-upgrade", "--is-upgrade=false"], "low <nil> default release-name false false false"),
        (&["web", "-n", ""], "low <nil> default release-name false false false"),
        (&["x", "web", "--name-template", "", "--output-dir", ""], "low <nil> default x false false false"),
    ] {
        let expected = format!("said: {}", expected.replace("<nil>", ""));
        assert_eq!(said(args), (expected, String::new()), "{args:?}");
    }
    let (_, stderr) = said(&["web", "--force", "--hide-notes"]);
    assert_eq!(
        stderr,
        "Flag --force has been deprecated, use --force-replace instead\nFlag --hide-notes has been deprecated, this flag has no effect for 'helm template' and will be removed in Helm 5\n"
    );
    let (code, _, stderr) = run(folder.path(), &["web", "-f", "a\"b"]);
    assert_eq!(
        (code, stderr.as_str()),
        (
            1,
            "Error: invalid argument \"a\\\"b\" for \"-f, --values\" flag: parse error on line 1, column 2: bare \" in non-quoted-field\n"
        )
    );
    let (_, _, stderr) = run(folder.path(), &["UP", "web"]);
    assert!(stderr.starts_with(
        "level=ERROR msg=\"release name check failed\" error=\"release name \\\"UP\\\": invalid"
    ));
}

#[test]
fn documents_go_into_files() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    let (code, stdout, stderr) = run(
        folder.path(),
        &["web", "--output-dir", "out", "--include-crds", "--release-name", "--name", "x"],
    );
    assert_eq!((code, stderr.as_str()), (0, ""));
    let lines = [
        "out/web/crds/crd.yaml",
        "out/x/web/templates/two.yaml",
        "out/x/web/templates/two.yaml",
        "out/x/web/templates/hook.yaml",
    ];
    let expected: String = lines.iter().map(|file| format!("wrote {file}\n")).collect();
    assert_eq!(stdout, format!("{expected}\n"));
    let two = fs::read_to_string(folder.path().join("out/x/web/templates/two.yaml")).unwrap();
    assert_eq!(
        two,
        "---\n# Source: web/templates/two.yaml\nkind: A\nmetadata: {name: x}\n\n---\n# Source: web/templates/two.yaml\nkind: B\nlevel: low\n\n"
    );
    // Another run begins the files of templates anew.
    run(folder.path(), &["web", "--output-dir", "out", "--release-name", "--name", "x"]);
    assert_eq!(fs::read_to_string(folder.path().join("out/x/web/templates/two.yaml")).unwrap(), two);
}

#[test]
fn links_lead_through_the_repository_and_no_further() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
    fs::rename(folder.path().join("web"), folder.path().join("repo/web")).unwrap();
    fs::write(folder.path().join("repo/shared.yaml"), "kind: Shared\n").unwrap();
    let link = folder.path().join("repo/web/templates/link.yaml");
    std::os::unix::fs::symlink("../../shared.yaml", &link).unwrap();
    let (code, stdout, stderr) = run(folder.path(), &["repo/web", "-s", "templates/link.yaml"]);
    assert_eq!(
        (code, stdout.as_str()),
        (0, "---\n# Source: web/templates/link.yaml\nkind: Shared\n\n"),
        "{stderr}"
    );
    fs::remove_dir(folder.path().join("repo/.git")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["repo/web"]);
    assert!(code == 1 && stderr.contains("templates/link.yaml") && stderr.contains("outside"), "{stderr}");
}

#[test]
fn charts_beside_a_chart_are_read_within_its_repository() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    for place in ["repo/libs/common", "secret/common"] {
        write(&format!("{place}/Chart.yaml"), "apiVersion: v2\nname: common\nversion: 1.0.0\n");
        write(&format!("{place}/templates/a.yaml"), &format!("kind: A\nfrom: {place}\n"));
    }
    fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
    let outside = folder.path().join("secret/common").canonicalize().unwrap();
    let render = |address: &str| {
        let dependencies =
            format!("dependencies: [{{name: common, version: 1.0.0, repository: \"{address}\"}}]\n");
        write("repo/web/Chart.yaml", &format!("apiVersion: v2\nname: web\nversion: 1.0.0\n{dependencies}"));
        run(folder.path(), &["repo/web", "--offline"])
    };
    let (code, stdout, stderr) = render("file://../libs/common");
    assert!(code == 0 && stdout.contains("from: repo/libs/common"), "{stderr}");
    for address in [format!("file://{}", outside.display()), "file://../../secret/common".to_owned()] {
        let (code, stdout, stderr) = render(&address);
        assert_eq!((code, stdout.as_str()), (1, ""), "{address}");
        assert!(stderr.contains("common"), "{stderr}");
    }
}

#[test]
fn a_deprecated_chart_is_told_before_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let text = "apiVersion: v2\nname: old\nversion: 1.0.0\ndeprecated: true\ndependencies: [{name: gone, version: 1.0.0, repository: \"https://charts.example.test\"}]\n";
    fs::write(folder.path().join("Chart.yaml"), text).unwrap();
    for (compat, expected) in [
        ("helm4", "level=WARN msg=\"this chart is deprecated\"\n"),
        ("helm3", "WARNING: This chart is deprecated\n"),
    ] {
        let (code, _, stderr) = run(folder.path(), &[".", "--offline", "--compat", compat]);
        let sentence = if compat == "helm3" { "An error occurred" } else { "an error occurred" };
        assert!(code == 1 && stderr.starts_with(&format!("{expected}Error: {sentence}")), "{stderr}");
    }
    let (_, _, stderr) = run(folder.path(), &[".", "--offline", "--set", "a"]);
    assert!(stderr.starts_with("Error: failed parsing --set data"), "{stderr}");
}

#[test]
fn every_limit_of_templates_names_the_flag_that_raises_it() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    let template = folder.path().join("web/templates/large.yaml");
    fs::write(&template, "# {{ repeat 80000000 `a` | len }}").unwrap();
    let (code, _, told) = run(folder.path(), &["r", "web"]);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("limit of 67108864; --limit-memory raises the limit"), "{told}");
    let (code, _, told) = run(folder.path(), &["r", "web", "--limit-memory", "512"]);
    assert_eq!(code, 0, "{told}");
}

#[test]
fn names_come_from_templates() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    let (_, stdout, _) = run(folder.path(), &["--name-template", "{{ \"A\" | lower }}-1", "web"]);
    assert!(stdout.contains("metadata: {name: a-1}"), "{stdout}");
    let (_, stdout, _) = run(folder.path(), &["-g", "web"]);
    assert!(stdout.contains("metadata: {name: release-name}"), "{stdout}");
    for (flags, expected) in [
        (["-g", "x", "web"].as_slice(), "cannot set --generate-name and also specify a name"),
        (&["--name-template", "y", "x", "web"], "cannot set --name-template and also specify a name"),
    ] {
        assert_eq!(run(folder.path(), flags), (1, String::new(), format!("Error: {expected}\n")));
    }
}

#[test]
fn flags_that_need_the_network_or_another_program_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    for flag in ["--validate", "--enable-dns", "--post-renderer=cat", "--verify"] {
        let (code, stdout, stderr) = run(folder.path(), &["web", flag]);
        let name = flag.split_once('=').map_or(flag, |(name, _)| name);
        assert!(code == 1 && stdout.is_empty() && stderr.contains(name), "{flag}: {stderr}");
    }
    // What does not change the output is taken.
    let idle = "--debug --devel --wait --wait=watcher --wait-for-jobs --replace --atomic --rollback-on-failure --take-ownership --force-conflicts --force-replace --hide-notes --render-subchart-notes --server-side=false --timeout=5s --description=x --labels=a=b,c --color=never --dry-run=true --wait=false --qps=2.5 --burst-limit=-1 --kube-token=x --kube-insecure-skip-tls-verify --keyring=x --repository-cache=x --plain-http --username=x --post-renderer-args=x";
    let plain = run(folder.path(), &["web"]).1;
    for flag in idle.split(' ') {
        let (code, stdout, stderr) = run(folder.path(), &["web", flag]);
        assert!(code == 0 && stdout == plain, "{flag}: {stderr}");
    }
    for (flag, expected) in [
        ("--labels=a", "invalid argument \"a\" for \"-l, --labels\" flag: a must be formatted as key=value"),
        ("--labels=a=b,c=d,e", "e must be formatted as key=value"),
        ("--timeout=5", "time: missing unit in duration \"5\""),
        ("--dry-run=none", "invalid dry-run value (\"none\"). Must be \"server\" or \"client\""),
    ] {
        let (code, stdout, stderr) = run(folder.path(), &["web", flag]);
        assert!(code == 1 && stdout.is_empty() && stderr.contains(expected), "{flag}: {stderr}");
    }
    assert_eq!(run(folder.path(), &["web", "--dry-run=none", "--compat=helm3"]).0, 0);
    let (code, _, stderr) = run(folder.path(), &["web", "--dry-run=server", "--kube-token=x"]);
    assert!(code == 1 && stderr.contains("--kube-token is not supported"), "{stderr}");
    // As with Helm, a folder comes before a chart of that name in a repository.
    for flags in [&["--dry-run", "--skip-crds"], &["--repo=https://charts.example.test", "--version=1"]] {
        assert_eq!(run(folder.path(), &[&["web"], flags.as_slice()].concat()).0, 0);
    }
    let far = ["far", "--offline", "--repo=https://charts.example.test"];
    let (code, _, stderr) = run(folder.path(), &far);
    assert!(code == 1 && stderr.contains("chart far") && stderr.contains("offline"), "{stderr}");
    let (code, _, stderr) =
        run(folder.path(), &["web", "--offline", "-f", "https://example.test/values.yaml"]);
    assert!(code == 1 && stderr.contains("https://example.test/values.yaml"), "{stderr}");
}

#[test]
fn files_that_cannot_be_read_are_told_in_gos_words() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    for (args, expected) in [
        (["-f", "gone.yaml"], "open gone.yaml: no such file or directory"),
        (["-f", "web"], "read web: is a directory"),
        (["--set-file", "a=gone"], "failed parsing --set-file data: open gone: no such file or directory"),
        (
            ["--set-file", "a,level=gone"],
            "failed parsing --set-file data: key \"a\" has no value (cannot end with ,)",
        ),
        (["-f", "http://h:p/"], "parse \"http://h:p/\": invalid port \":p\" after host"),
        (
            ["--set-file", "level=nope%"],
            "failed parsing --set-file data: parse \"nope%\": invalid URL escape \"%\"",
        ),
    ] {
        let (code, _, stderr) = run(folder.path(), &[&["web"], args.as_slice()].concat());
        assert_eq!((code, stderr), (1, format!("Error: {expected}\n")), "{args:?}");
    }
    let (code, stdout, stderr) = run(folder.path(), &["web", "--set-file", "level="]);
    assert!(code == 0 && stdout.contains("level:") && !stdout.contains("low"), "{stdout}{stderr}");
}

#[test]
fn switches_may_be_given_as_off() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    let (_, with, _) = run(folder.path(), &["web", "--no-hooks=false", "--include-crds=true"]);
    assert!(with.contains("kind: Job") && with.contains("CustomResourceDefinition"), "{with}");
    let (_, without, _) = run(folder.path(), &["web", "--no-hooks=1", "--include-crds=0"]);
    assert!(!without.contains("kind: Job") && !without.contains("CustomResourceDefinition"), "{without}");
}

#[test]
fn what_is_no_yaml_is_printed_for_debugging() {
    let folder = tempfile::tempdir().unwrap();
    chart(folder.path());
    fs::remove_file(folder.path().join("web/templates/two.yaml")).unwrap();
    fs::write(folder.path().join("web/templates/hook.yaml"), "kind: Job\nodd\n\n").unwrap();
    let (code, stdout, hinted) = run(folder.path(), &["web"]);
    assert!(
        code == 1 && stdout.is_empty() && hinted.ends_with("Use --debug flag to render out invalid YAML\n")
    );
    let (code, stdout, stderr) = run(folder.path(), &["web", "--debug"]);
    assert_eq!((code, stdout.as_str()), (1, "---\n# Source: web/templates/hook.yaml\nkind: Job\nodd\n"));
    assert!(hinted.starts_with(stderr.trim_end()) && !stderr.contains("--debug"), "{stderr}");
}
