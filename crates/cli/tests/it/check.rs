//! `tiphys check` as a user runs it.

use std::{
    fs,
    process::{Command, Output},
};

use crate::common::{Repo, application, config_map};

fn check(repo: &Repo, args: &[&str]) -> (i32, String) {
    let mut all = vec!["check", "repo", "--offline"];
    all.extend(args);
    let Output { status, stdout, stderr } = repo.command(&all).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.code().unwrap(), text)
}

/// Two Applications that render one ConfigMap.
fn shared() -> Repo {
    Repo::with(&[
        ("apps/one.yaml", &application("one", "shared").replace("namespace: one", "namespace: shop")),
        ("apps/two.yaml", &application("two", "shared").replace("namespace: two", "namespace: shop")),
        ("shared/a.yaml", &config_map("a", "1")),
    ])
}

#[test]
fn findings_fail_the_check_and_health_does_not() {
    let repo = shared();
    let (code, text) = check(&repo, &["--rule", "B3"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("error[B3-two-owners]: ConfigMap/a in shop is rendered by"), "{text}");
    assert!(text.contains("shared/a.yaml:"), "{text}");
    fs::remove_file(repo.path("apps/two.yaml")).unwrap();
    assert_eq!(check(&repo, &["--rule", "B3"]).0, 0);
}

#[test]
fn wrong_use_is_told_from_findings() {
    let repo = shared();
    for (args, said) in [
        (&["--rule", "Z9"][..], "there is no rule"),
        (&["--baseline", "none.json"][..], "none.json"),
        (&["--diff", "nowhere"][..], "is no Git repository"),
        (&["--explain", "B3-two-owner"][..], "did you mean B3-two-owners?"),
    ] {
        let (code, text) = check(&repo, args);
        assert_eq!(code, 2, "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
    repo.write("tiphys.toml", "[check]\nseverety = \"error\"\n");
    assert_eq!(check(&repo, &[]).0, 2);
}

#[test]
fn comments_configuration_and_baseline_leave_findings_out() {
    let repo = shared();
    let (code, text) = check(&repo, &["--rule", "B3", "--baseline", "known.json", "--write-baseline"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = check(&repo, &["--rule", "B3", "--baseline", "known.json"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("1 known from before"), "{text}");

    repo.write("tiphys.toml", "[[check.rule]]\nid = \"B3\"\nseverity = \"off\"\nreason = \"for now\"\n");
    assert_eq!(check(&repo, &["--rule", "B3"]).0, 0);
    fs::remove_file(repo.path("tiphys.toml")).unwrap();

    let commented = format!("# tiphys:ignore-file B3-two-owners shared on purpose\n{}", config_map("a", "1"));
    repo.write("shared/a.yaml", commented);
    let (code, text) = check(&repo, &["--rule", "B3"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("1 suppressed by comment"), "{text}");
}

#[test]
fn the_verdict_can_be_had_in_several_ways() {
    let repo = shared();
    let (_, text) = check(&repo, &["--rule", "B3", "--brief"]);
    assert!(text.contains("error B3-two-owners shared/a.yaml:"), "{text}");
    assert!(!text.contains("= mechanism"), "{text}");
    let (_, text) = check(&repo, &["--rule", "B3", "--applications"]);
    assert!(text.contains("APPLICATION") && text.contains("one"), "{text}");
    let (code, text) = check(&repo, &["--rule", "B3", "--app", "three"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("there is no Application \"three\"; there are one, two"), "{text}");
    let (_, text) = check(&repo, &["--rule", "B3"]);
    assert!(text.contains("Tiphys goes on at 1 cause of it (B3-two-owners)"), "{text}");
    let (_, text) = check(&repo, &["--rule", "B3", "--argo-cd"]);
    assert!(!text.contains("Tiphys goes on"), "{text}");
    let (_, text) = check(&repo, &["--rule", "B3", "--output", "html"]);
    assert!(text.starts_with("<!doctype html>") && text.contains("default-src 'none'"), "{text}");
}

#[test]
fn entries_of_a_baseline_that_nothing_needs_are_named() {
    let repo = shared();
    check(&repo, &["--rule", "B3", "--baseline", "known.json", "--write-baseline"]);
    let known = fs::read_to_string(repo.path("../known.json")).unwrap();
    assert!(known.contains("\"rule\": \"B3-two-owners\"") && known.contains("shared/a.yaml"), "{known}");
    fs::remove_file(repo.path("apps/two.yaml")).unwrap();
    let (code, text) = check(&repo, &["--rule", "B3", "--baseline", "known.json"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("no longer needed in the baseline: B3-two-owners shared/a.yaml: "), "{text}");
}

#[test]
fn a_change_is_shown_alone() {
    let repo = shared();
    repo.git_init();
    let (code, text) = check(&repo, &["--rule", "B3", "--diff", "HEAD"]);
    assert_eq!(code, 0, "{text}");
    repo.write("shared/b.yaml", config_map("b", "1"));
    let (code, text) = check(&repo, &["--rule", "B3", "--diff", "HEAD"]);
    assert_eq!(code, 1, "{text}");
}

#[test]
fn programs_read_the_findings() {
    let repo = shared();
    let output =
        repo.command(&["check", "repo", "--offline", "--rule", "B3", "--output", "json"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["version"], 1);
    assert_eq!(found["findings"][0]["rule"], "B3-two-owners");
    assert_eq!(found["findings"][0]["primary"]["file"], "shared/a.yaml");
    let output =
        repo.command(&["check", "repo", "--offline", "--rule", "B3", "--output", "sarif"]).output().unwrap();
    let sarif: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "B3-two-owners");
}

#[test]
fn a_repository_without_anything_can_be_allowed() {
    let repo = Repo::with(&[
        ("notes.txt", "nothing here\n"),
        ("broken.yaml", "a: [\n"),
        ("binary.yaml", "\u{0}\u{1}"),
    ]);
    let (code, text) = check(&repo, &["--severity", "error", "--allow-empty"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("3 files"), "{text}");
}

/// The lines of a process until one holds a text. Fails after two minutes of silence.
fn wait_for(lines: &std::sync::mpsc::Receiver<String>, text: &str) {
    let mut seen = String::new();
    loop {
        let line = lines
            .recv_timeout(std::time::Duration::from_secs(120))
            .unwrap_or_else(|_| panic!("{text:?} does not come; there was:\n{seen}"));
        if line.contains(text) {
            return;
        }
        seen.push_str(&line);
        seen.push('\n');
    }
}

/// A check that watches a repository, and the lines that it prints.
fn watched(repo: &Repo, arguments: &[&str]) -> (std::process::Child, std::sync::mpsc::Receiver<String>) {
    use std::{
        io::{BufRead as _, BufReader},
        process::Stdio,
    };
    let mut command = repo.command(&["check", "repo", "--offline", "--watch"]);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let (sender, lines) = std::sync::mpsc::channel();
    let errors = (process.stderr.take().unwrap(), sender.clone());
    std::thread::spawn(move || {
        BufReader::new(errors.0).lines().map_while(Result::ok).for_each(|line| drop(errors.1.send(line)));
    });
    let output = process.stdout.take().unwrap();
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    (process, lines)
}

#[test]
fn watching_checks_again_after_every_edit() {
    let repo = shared();
    let (mut process, lines) = watched(&repo, &["--rule", "B3"]);
    wait_for(&lines, "error[B3-two-owners]");
    let two = fs::read_to_string(repo.path("apps/two.yaml")).unwrap();
    fs::remove_file(repo.path("apps/two.yaml")).unwrap();
    wait_for(&lines, "nothing found");
    repo.write("tiphys.toml", "[check]\nseverety = \"error\"\n");
    wait_for(&lines, "severety");
    repo.write("apps/two.yaml", two);
    repo.write("tiphys.toml", "");
    wait_for(&lines, "error[B3-two-owners]");
    repo.write("shared/a.yaml", config_map("b", "1"));
    wait_for(&lines, "ConfigMap/b in shop is rendered by");
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn watching_reads_edited_settings_of_the_engine_again() {
    let app = application("web", "web");
    let settings = |data: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: argocd-cm, namespace: argocd}}\ndata: {data}\n"
        )
    };
    let repo = Repo::with(&[
        ("apps/web.yaml", app.as_str()),
        ("web/kustomization.yaml", "resources: [../shared/settings.yaml]\n"),
        ("shared/settings.yaml", &config_map("web", "green")),
        ("engine/argocd-cm.yaml", &settings("{timeout.reconciliation: 60s}")),
    ]);
    let (mut process, lines) = watched(&repo, &["--severity", "info"]);
    wait_for(&lines, "D1-load-restriction");
    repo.write(
        "engine/argocd-cm.yaml",
        settings("{kustomize.buildOptions: --load-restrictor LoadRestrictionsNone}"),
    );
    wait_for(&lines, "nothing found");
    repo.write("engine/argocd-cm.yaml", settings("{timeout.reconciliation: 60s}"));
    wait_for(&lines, "D1-load-restriction");
    repo.write(
        "engine/argocd-cm.yaml",
        settings("{resource.customizations.health.example.com_Widget: 'if return'}"),
    );
    wait_for(&lines, "A1-health-script");
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn fixes_of_likely_findings_are_applied_when_somebody_asks_for_them() {
    let budget = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n\
        spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n";
    let repo = Repo::shop(&[("manifests/budget.yaml", budget)]);
    let told = "ask for policy/v1 (tiphys check --fix-likely does it)";
    repo.run(&["check", "repo", "--fix"]).expect(1, &[told, "--fix-likely applies 1 that are likely"]);
    let text = || std::fs::read_to_string(repo.path("manifests/budget.yaml")).unwrap();
    assert_eq!(text(), budget);
    // What is left is printed, not what was before.
    repo.run(&["check", "repo", "--fix-likely"]).expect(0, &["fixed manifests/budget.yaml", "nothing found"]);
    assert_eq!(text(), budget.replace("v1beta1", "v1"));
    repo.run(&["check", "repo"]).expect(0, &["nothing found"]);
}

#[test]
fn a_folder_with_nothing_to_check_is_most_likely_the_wrong_one() {
    let repo = Repo::with(&[("src/main.go", "package main\n"), ("notes/config.yaml", "colour: blue\n")]);
    repo.run(&["check", "repo"]).expect(2, &["nothing to check in repo: among its 2 files", "--allow-empty"]);
    repo.run(&["check", "repo", "--allow-empty"]).expect(0, &["nothing found"]);
    repo.run(&["check", "repo/none"]).expect(2, &["repo/none does not exist"]);
    repo.write("a.yaml", config_map("a", "1"));
    repo.run(&["check", "repo"]).expect(0, &["nothing found"]);
}

#[test]
fn a_comment_that_suppresses_nothing_is_told() {
    let repo = Repo::shop(&[(
        "manifests/b.yaml",
        "# tiphys:ignore E2 until the chart has it\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: b}\n",
    )]);
    repo.run(&["check", "repo"]).expect(1, &["unused-suppression", "this comment suppresses no finding"]);
    repo.run(&["check", "repo", "--rule", "B"]).expect(0, &["nothing found"]);
}

#[test]
fn revisions_are_known_of_both_sides_of_a_change() {
    let repo = Repo::with(&[("web/a.yaml", &config_map("a", "1"))]);
    repo.write(
        "web.yaml",
        application("web", "web").replace("targetRevision: HEAD", "targetRevision: relase"),
    );
    repo.git_init();
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(repo.path("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["update-ref", "refs/remotes/origin/release", "HEAD"]);
    repo.run(&["check", "repo", "--rule", "D2"]).expect(1, &["reads revision \"relase\""]);
    repo.run(&["check", "repo", "--rule", "D2", "--diff", "HEAD"])
        .expect(0, &["nothing found", "1 known from before"]);
}

#[test]
fn revisions_that_lack_what_is_wanted_are_told_of() {
    let repo = Repo::with(&[("web/a.yaml", &config_map("a", "1"))]);
    let read_at = |revision: &str| {
        let at =
            application("web", "web").replace("targetRevision: HEAD", &format!("targetRevision: {revision}"));
        repo.write("web.yaml", at);
    };
    read_at("relase");
    repo.git_init();
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(repo.path("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["branch", "release"]);
    // Nothing was fetched: nobody knows what there is where it comes from.
    assert_eq!(check(&repo, &["--rule", "D2"]).0, 0);
    git(&["update-ref", "refs/remotes/origin/release", "HEAD"]);
    let (code, text) = check(&repo, &["--rule", "D2"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("Application web reads revision \"relase\""), "{text}");
    read_at("release");
    assert_eq!(check(&repo, &["--rule", "D2"]).0, 0);

    // What came to the default branch since is not on the other one.
    fs::rename(repo.path("web"), repo.path("shop")).unwrap();
    let moved = fs::read_to_string(repo.path("web.yaml")).unwrap().replace("path: web", "path: shop");
    repo.write("web.yaml", moved);
    git(&["add", "-A"]);
    git(&["-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "moved"]);
    let (code, text) = check(&repo, &["--rule", "D2"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("Application web reads release, which has no folder shop"), "{text}");
    // A branch that is to become part of another one stands for that.
    git(&["checkout", "-q", "-b", "change"]);
    assert_eq!(check(&repo, &["--rule", "D2"]).0, 0);
}

#[test]
fn faults_of_the_configuration_are_said_once() {
    let repo = shared();
    repo.write("tiphys.toml", "[[check.rule]]\nid = \"e33\"\nseverity = \"off\"\n");
    let (code, text) = check(&repo, &[]);
    assert_eq!((code, text.matches("there is no rule").count()), (2, 1), "{text}");
    let (_, text) = check(&repo, &["--rule", "e3"]);
    assert!(text.contains("did you mean E3?"), "{text}");
}

#[test]
fn what_no_application_reaches_is_marked() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: x}}\n  \
        template:\n    metadata: {labels: {app: x}}\n    spec: {containers: [{name: x, image: \"bitnami/redis:7.2.4\"}]}\n";
    let repo = Repo::shop(&[
        ("charts/x/Chart.yaml", "apiVersion: v2\nname: x\nversion: 0.1.0\n"),
        ("charts/x/templates/x.yaml", deployment),
        ("manifests/a.yaml", &config_map("a", "1")),
    ]);
    let (_, text) = check(&repo, &["--rule", "E3"]);
    assert!(text.contains("no Application reaches this"), "{text}");
    let (_, text) = check(&repo, &["--rule", "E3", "--output", "json"]);
    assert!(text.contains("\"unreachable\": true"), "{text}");
}
