//! What a stranger's repository may not do to whoever looks at it: command the terminal or the runner of a
//! workflow, fill the memory, hang, end the program, or have Secrets shown.

use crate::common::{Repo, Run, URL, application};
use tiphys_diag::sanitize;

/// Escapes, marks of direction, line breaks with workflow commands, markup: as YAML writes it between double
/// quotes.
const EVIL: &str = "\\u001b[31mEVIL\\u001b]0;t\\u0007\\u202eRTL\\u2066\\u200b \\r\\n::error file=x::pwned\\n::add-mask::x\\n\\n# heading <script>alert(1)</script> | x | [a](javascript:alert(1)) ![i](http://evil.example/x.png) @everyone\\u009b31m ##[error]x";

/// A repository in which all that has a name has that one.
fn evil_names() -> Repo {
    let name = format!("x{EVIL}");
    let app = |name: &str, path: &str, revision: &str, url: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: \"{name}\", namespace: argocd}}\nspec:\n  project: default\n  destination: {{server: https://kubernetes.default.svc, namespace: n}}\n  source: {{repoURL: \"{url}\", path: \"{path}\", targetRevision: \"{revision}\"}}\n"
        )
    };
    let other = format!("https://git.example.com/org/other.git{EVIL}");
    let template = "{{ fail \"\\x1b]0;pwn\\x07\\x1b[31mRED\\u202eRTL\\n::error::x\" }}";
    let repo = Repo::with(&[
        (
            "w/x.yaml",
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"{name}\"}}\ndata: {{a: b}}\n"),
        ),
        (
            "w/broken.yaml",
            &format!(
                "apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {{selector: {{a: \"{EVIL}\"}}, ports: [{{port: \"{EVIL}\"}}]}}\n"
            ),
        ),
        ("apps/a.yaml", &application("a", "w")),
        ("apps/b.yaml", &app(&name, &format!("w{EVIL}"), &format!("r{EVIL}"), URL)),
        ("apps/c.yaml", &app("c", "w", "HEAD", &other)),
        ("apps/h.yaml", &application("h", "h")),
        ("h/Chart.yaml", "apiVersion: v2\nname: ch\nversion: 1.0.0\n"),
        ("h/templates/c.yaml", template),
        ("names/\u{1b}[31m\u{202e}evil\u{9b}.yaml", "a: [\n"),
        ("apps/names.yaml", &application("names", "names")),
        (
            "live.yaml",
            &format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: \"{name}\", namespace: n}}\nstatus: {{phase: Failed, message: \"{EVIL}\", reason: \"{EVIL}\"}}\n"
            ),
        ),
    ]);
    repo.git_init();
    repo.write(
        "w/x.yaml",
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"{name}\"}}\ndata: {{a: \"{EVIL}\"}}\n"),
    );
    repo
}

fn assert_clean(command: &[&str], run: &Run) {
    let text = run.text();
    assert_ne!(run.code(), Some(101), "{command:?} panics: {text}");
    let raw: Vec<char> = text.chars().filter(|c| sanitize::replacement(*c).is_some()).collect();
    assert!(raw.is_empty(), "{command:?} writes {raw:?}:\n{text:?}");
    let is_github = command.contains(&"github");
    // What stands before another file is no command.
    let is_command =
        |line: &&str| line.trim_start().starts_with("::") && !line.trim_start().starts_with("::: ");
    let obeyed = text.lines().find(is_command);
    let is_ours = |line: &str| {
        is_github && ["::error ", "::warning ", "::notice "].iter().any(|it| line.starts_with(it))
    };
    assert!(obeyed.is_none_or(is_ours), "{command:?} commands a runner: {obeyed:?}");
    assert!(!text.contains("##["), "{command:?} commands a runner:\n{text}");
}

#[test]
fn hostile_names_command_nobody_in_any_form() {
    let repo = evil_names();
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for form in ["text", "json", "sarif", "github", "markdown", "junit"] {
        commands.push(vec!["check", "repo", "--offline", "--severity", "info", "--output", form]);
    }
    for form in ["text", "json", "markdown"] {
        commands.push(vec!["diff", "HEAD", "--repo", "repo", "--offline", "--output", form]);
    }
    for form in ["text", "json", "dot", "mermaid", "waves"] {
        commands.push(vec!["graph", "repo", "--offline", "--output", form]);
    }
    for form in ["text", "json"] {
        commands.push(vec!["health", "repo/live.yaml", "--output", form]);
        commands.push(vec!["why", "a/ConfigMap/none", "--repo", "repo", "--offline", "--output", form]);
    }
    commands.push(vec!["why", "none/ConfigMap/none", "--repo", "repo", "--offline"]);
    commands.push(vec!["render", "helm", "x", "repo/h"]);
    commands.push(vec!["render", "app", "repo/apps/b.yaml", "--offline"]);
    commands.push(vec!["render", "kustomize", "repo/w"]);
    commands.push(vec!["up", "repo", "--once", "--offline", "--timeout", "20s"]);
    for command in &commands {
        assert_clean(command, &repo.run(command));
    }
}

#[test]
fn in_markdown_names_stay_text() {
    let repo = evil_names();
    for command in [
        vec!["check", "repo", "--offline", "--severity", "info", "--output", "markdown"],
        vec!["diff", "HEAD", "--repo", "repo", "--offline", "--output", "markdown"],
    ] {
        let text = repo.run(&command).stdout();
        // Blocks of code show what is there.
        let mut is_code = false;
        for line in text.lines() {
            if line.starts_with("```") {
                is_code = !is_code;
            } else if !is_code {
                // The line of a summary is HTML, in which Markdown means nothing.
                let is_html = line.starts_with("<details><summary>");
                let markup = ["<script>", "@everyone", "](javascript:", "![i]"];
                for markup in &markup[..if is_html { 2 } else { 4 }] {
                    // An escaped bracket ends no link.
                    let line = line.replace("\\]", "");
                    assert!(!line.contains(markup), "{command:?} has {markup}: {line}");
                }
                assert!(!line.starts_with("# heading"), "{command:?}: {line}");
            }
        }
    }
}

const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {secret.example/token: CANARYnote1}}\nstringData: {a: {b: CANARYsnippet}, c: CANARYvalue1}\n";

#[test]
fn values_of_secrets_are_shown_only_where_that_is_asked_for() {
    let settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm, namespace: argocd}\ndata: {resource.sensitive.mask.annotations: secret.example/token}\n";
    let url = application("u", "w").replace(URL, "https://user:CANARYurl@git.invalid/x.git");
    let good = SECRET.replace("a: {b: CANARYsnippet}, ", "");
    let repo = Repo::with(&[
        ("w/s.yaml", SECRET),
        ("good/s.yaml", &good),
        ("apps/w.yaml", &application("w", "w")),
        ("apps/good.yaml", &application("good", "good")),
        ("apps/u.yaml", &url),
        ("apps/cm.yaml", settings),
    ]);
    repo.git_init();
    repo.write(
        "good/s.yaml",
        good.replace("CANARYvalue1", "CANARYvalue2").replace("CANARYnote1", "CANARYnote2"),
    );
    let silent = |command: &[&str]| {
        let text = repo.run(command).text();
        assert!(!text.contains("CANARY"), "{command:?}:\n{text}");
        text
    };
    for form in ["text", "json", "sarif", "github", "markdown", "junit"] {
        let text = silent(&["check", "repo", "--offline", "--severity", "info", "--output", form]);
        assert!(text.contains("w/s.yaml"), "the Secret is found at fault:\n{text}");
    }
    let diff = silent(&["diff", "HEAD", "--repo", "repo", "--offline"]);
    assert!(diff.contains("Secret") && diff.contains("++++++++"), "{diff}");
    silent(&["diff", "HEAD", "--repo", "repo", "--offline", "--output", "markdown"]);
    silent(&["why", "good/Secret/s", "--repo", "repo", "--offline"]);
    silent(&["why", "good/Secret/s", ".stringData.c", "--repo", "repo", "--offline", "--output", "json"]);
    let shown = |command: &[&str], value: &str| {
        let text = repo.run(command).text();
        assert!(text.contains(value), "{command:?}:\n{text}");
    };
    shown(&["check", "repo", "--offline", "--severity", "info", "--show-secrets"], "CANARYsnippet");
    shown(&["diff", "HEAD", "--repo", "repo", "--offline", "--show-secrets"], "CANARYnote2");
    shown(&["why", "good/Secret/s", "--repo", "repo", "--offline", "--show-secrets"], "CANARYvalue2");
    shown(&["render", "app", "repo/apps/good.yaml", "--offline"], "CANARYvalue2");
}

#[test]
fn a_rule_at_which_the_library_panics_is_an_error_of_its_object() {
    let definition = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.ex.com}
spec:
  group: ex.com
  scope: Namespaced
  names: {plural: foos, singular: foo, kind: Foo, listKind: FooList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-validations: [{rule: \"RULE\"}], properties: {s: {type: string}}}}}}
";
    let object = "apiVersion: ex.com/v1\nkind: Foo\nmetadata: {name: x}\nspec: {s: a}\n";
    let rule = r#"\"%.999999999f\".format([1.5]) == \"\""#;
    let repo = Repo::shop(&[
        ("manifests/crd.yaml", &definition.replace("RULE", rule)),
        ("manifests/y.yaml", object),
    ]);
    let run = repo.run(&["check", "repo", "--offline"]);
    assert!(matches!(run.code(), Some(0 | 1)), "{}", run.text());
    let run = repo.once(&["--offline"]);
    assert!(run.code() != Some(101) && !run.text().contains("panicked"), "{}", run.text());
}

#[test]
fn aliases_of_a_long_scalar_are_refused_by_name() {
    let bomb = format!("s: &s \"{}\"\nd: [{}1]\n", "x".repeat(80_000), "*s,".repeat(38_000));
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    let repo = Repo::shop(&[("manifests/x.yaml", &format!("{head}{bomb}"))]);
    repo.run(&["check", "repo", "--offline"]).expect(1, &["manifests/x.yaml:4:", "MiB of memory"]);
    repo.run(&["render", "app", "repo/root.yaml", "--offline"])
        .expect(1, &["manifests/x.yaml:4:", "MiB of memory"]);
    let chart = Repo::with(&[
        ("w/Chart.yaml", "apiVersion: v2\nname: ch\nversion: 1.0.0\n"),
        ("w/values.yaml", &bomb),
        ("w/templates/c.yaml", head),
    ]);
    chart.run(&["render", "helm", "x", "repo/w"]).expect(1, &["values.yaml", "MiB of memory"]);
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let repo = Repo::shop(&[
        ("k/kustomization.yaml", "resources: [pipe.yaml]\n"),
        ("apps/k.yaml", &application("k", "k")),
        ("c/Chart.yaml", "apiVersion: v2\nname: ch\nversion: 1.0.0\n"),
    ]);
    for pipe in ["manifests/pipe.yaml", "k/pipe.yaml", "c/values.yaml", "tiphys.toml"] {
        let made = std::process::Command::new("mkfifo").arg(repo.path(pipe)).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is there");
    }
    let ends = |args: &[&str]| {
        let mut child = repo
            .command(args)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        for _ in 0..600 {
            if child.try_wait().unwrap().is_some() {
                let output = child.wait_with_output().unwrap();
                let text = [output.stdout, output.stderr].concat();
                return String::from_utf8_lossy(&text).into_owned();
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        child.kill().unwrap();
        panic!("{args:?} waits for the pipe");
    };
    ends(&["check", "repo", "--offline"]);
    std::fs::remove_file(repo.path("tiphys.toml")).unwrap();
    ends(&["check", "repo", "--offline"]);
    let text = ends(&["render", "kustomize", "repo/k"]);
    assert!(text.contains("pipe.yaml"), "{text}");
    ends(&["render", "app", "repo/root.yaml", "--offline"]);
    ends(&["render", "helm", "x", "repo/c"]);
}
