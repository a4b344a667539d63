//! `integrations/scripts/`, run as jobs of GitHub and GitLab run them, against a server that answers as
//! theirs do.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::loopback::{Request, serve, without_proxy};
use crate::oracles::workspace_root;

const MARKER: &str = "<!-- tiphys check: apps/shop -->";

/// Comments of one pull request, and everything that was written.
#[derive(Clone, Default)]
struct Host {
    comments: Arc<Mutex<Vec<Value>>>,
    writes: Arc<Mutex<Vec<String>>>,
}

impl Host {
    fn with(bodies: &[(&str, &str)]) -> Self {
        let host = Self::default();
        let comments = bodies.iter().enumerate().map(|(id, (author, body))| {
            let number: u32 = if *author == "github-actions[bot]" { 42 } else { 7 };
            json!({"id": id + 1, "body": body, "user": {"login": author}, "author": {"id": number}})
        });
        *host.comments.lock().unwrap() = comments.collect();
        host
    }

    fn answer(&self, request: &Request) -> (u16, Vec<u8>) {
        let token =
            request.headers.iter().find(|header| header.contains("token") || header.contains("bearer"));
        if !token.is_some_and(|token| token.ends_with("good")) {
            return (403, b"{}".to_vec());
        }
        let mut comments = self.comments.lock().unwrap();
        if request.method == "GET" {
            let page = request.path.split("&page=").nth(1).and_then(|page| page.parse::<usize>().ok());
            let found = match page {
                Some(page) => comments.iter().skip((page - 1) * 100).take(100).cloned().collect(),
                None => json!({"id": 42}),
            };
            return (200, found.to_string().into_bytes());
        }
        self.writes.lock().unwrap().push(format!("{} {}", request.method, request.path));
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let written = if request.method == "POST" {
            let id = comments.len() + 1;
            comments.push(json!({"id": id, "user": {"login": "github-actions[bot]"}, "author": {"id": 42}}));
            id
        } else {
            request.path.rsplit('/').next().unwrap().parse().unwrap()
        };
        comments[written - 1]["body"] = body["body"].clone();
        (200, comments[written - 1].to_string().into_bytes())
    }

    /// Runs the script; returns its exit code and what it said.
    fn comment(&self, platform: Platform, token: &str, report: &str, found: &str) -> (Option<i32>, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        };
        let host = self.clone();
        let address = serve(move |request| host.answer(request));
        let mut command = Command::new("sh");
        command.arg(workspace_root().join("integrations/scripts/comment.sh"));
        command.arg(file("report.md", report)).args(["apps/shop", found]).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap());
        match platform {
            Platform::GitHub => command
                .envs([("GITHUB_ACTIONS", "true"), ("GITHUB_TOKEN", token), ("GITHUB_REPOSITORY", "a/b")])
                .env("GITHUB_EVENT_PATH", file("event.json", r#"{"pull_request": {"number": 5}}"#))
                .env("GITHUB_API_URL", address),
            Platform::GitLab => command
                .envs([("GITLAB_CI", "true"), ("TIPHYS_GITLAB_TOKEN", token)])
                .envs([("CI_PROJECT_ID", "3"), ("CI_MERGE_REQUEST_IID", "9")])
                .env("CI_API_V4_URL", address),
        };
        let output = without_proxy(&mut command).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }

    fn writes(&self) -> Vec<String> {
        self.writes.lock().unwrap().clone()
    }

    fn body(&self, id: usize) -> String {
        self.comments.lock().unwrap()[id - 1]["body"].as_str().unwrap().to_owned()
    }
}

#[derive(Clone, Copy)]
enum Platform {
    GitHub,
    GitLab,
}

/// Whether the programs that the scripts need are here.
///
/// # Panics
/// If not and `CI` is `true`: there a test that did not look is a failure.
fn has_programs() -> bool {
    let is_here = |program: &&str| {
        let silent = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        silent.is_ok_and(|status| status.success())
    };
    let missing: Vec<&str> = ["curl", "jq"].into_iter().filter(|program| !is_here(program)).collect();
    assert!(missing.is_empty() || std::env::var("CI").as_deref() != Ok("true"), "needs {missing:?}");
    if !missing.is_empty() {
        eprintln!("skipped: needs {missing:?}");
    }
    missing.is_empty()
}

#[test]
fn there_is_one_comment_and_it_is_changed() {
    if !has_programs() {
        return;
    }
    for (platform, list, change) in [
        (Platform::GitHub, "POST /repos/a/b/issues/5/comments", "PATCH /repos/a/b/issues/comments/1"),
        (
            Platform::GitLab,
            "POST /projects/3/merge_requests/9/notes",
            "PUT /projects/3/merge_requests/9/notes/1",
        ),
    ] {
        let host = Host::default();
        for (report, found) in [("nothing", "0"), ("\"one\" \\ ä", "1"), ("two", "1"), ("nothing", "0")] {
            let (code, said) = host.comment(platform, "good", report, found);
            assert_eq!(code, Some(0), "{said}");
        }
        assert_eq!(host.writes(), [list, change, change]);
        assert_eq!(host.body(1), format!("{MARKER}\nnothing\n"));
    }
}

#[test]
fn comments_of_others_are_left_alone_and_ours_is_found_behind_them() {
    if !has_programs() {
        return;
    }
    let stolen = format!("{MARKER}\nfrom somebody else");
    let quoted = format!("> {MARKER}");
    let ours = format!("{MARKER}\nold");
    let mut bodies = vec![("mallory", stolen.as_str()), ("github-actions[bot]", quoted.as_str())];
    bodies.extend([("people", "text"); 120]);
    bodies.push(("github-actions[bot]", &ours));
    let host = Host::with(&bodies);
    let (code, said) = host.comment(Platform::GitHub, "good", "new", "1");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(host.writes(), ["PATCH /repos/a/b/issues/comments/123"]);
    assert_eq!((host.body(1), host.body(2)), (stolen, quoted));
}

#[test]
fn a_token_that_may_only_read_fails_no_job() {
    if !has_programs() {
        return;
    }
    for platform in [Platform::GitHub, Platform::GitLab] {
        let host = Host::default();
        let (code, said) = host.comment(platform, "reads", "one", "1");
        assert!(code == Some(0) && said.contains("may not write comments"), "{said}");
        let (code, said) = host.comment(platform, "", "one", "1");
        assert!(code == Some(0) && said.contains("no comment: "), "{said}");
        assert!(host.writes().is_empty());
    }
}

#[test]
fn a_long_report_ends_between_two_findings() {
    if !has_programs() {
        return;
    }
    let finding =
        format!("<details><summary>one</summary>\n\n```yaml\n{}\n```\n</details>\n", "ä".repeat(900));
    let host = Host::default();
    host.comment(Platform::GitHub, "good", &format!("## head\n{}", finding.repeat(60)), "1");
    let body = host.body(1);
    assert!(body.chars().count() < 65_536 && body.contains("longer than a comment may be"), "{}", body.len());
    assert_eq!(body.matches("<details>").count(), body.matches("</details>").count());
    assert!(body.matches("<details>").count() > 20);
}

/// Runs the check with a program that ends with some code in its place.
fn check(code: u8) -> (Option<i32>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let program = format!("#!/bin/sh\necho \"$*\"\nexit {code}\n");
    fs::write(path("tiphys"), program).unwrap();
    fs::set_permissions(path("tiphys"), fs::Permissions::from_mode(0o755)).unwrap();
    let system = std::env::var("PATH").unwrap();
    let output = Command::new("sh")
        .arg(workspace_root().join("integrations/scripts/check.sh"))
        .env("PATH", format!("{}:{system}", folder.path().display()))
        .envs([("CHECK_PATH", "a b"), ("CHECK_BASE", "main"), ("CHECK_SEVERITY", "error")])
        .envs([("CHECK_ARGUMENTS", "--offline --rule C"), ("CHECK_OUTPUT", "text")])
        .env("CHECK_REPORTS", path("reports"))
        .output()
        .unwrap();
    let mut said = vec![String::from_utf8(output.stdout).unwrap()];
    let read = |name: &str| fs::read_to_string(Path::new(&path("reports")).join(name)).ok();
    said.extend(["report.md", "report.sarif", "report.xml"].into_iter().filter_map(read));
    (output.status.code(), said)
}

#[test]
fn the_check_leaves_reports_and_its_exit_code() {
    let expected = ["text", "markdown", "sarif", "junit"]
        .map(|form| format!("check a b --severity error --diff main --offline --rule C --output {form}\n"));
    for code in [0, 1] {
        assert_eq!(check(code), (Some(i32::from(code)), expected.to_vec()));
    }
    let (code, said) = check(2);
    assert!(code == Some(2) && said.len() == 2, "a check that could not run is no finding: {said:?}");
}
