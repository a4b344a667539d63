//! `tiphys … | head`: nobody listens any more, and that is no error.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Repo, application, config_map};

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let repo = Repo::with(&[
        ("apps/shop.yaml", &application("shop", "manifests")),
        ("manifests/a.yaml", &config_map("a", "1")),
    ]);
    let commands: [&[&str]; 7] = [
        &["graph", "repo"],
        &["graph", "repo", "--output", "json"],
        &["check", "repo", "--output", "json"],
        &["check", "--explain", "A"],
        &["render", "app", "repo/apps/shop.yaml"],
        &["render", "kustomize", "repo"],
        &["version"],
    ];
    for args in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = repo.command(args).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "{args:?}: {said}");
        assert_ne!(output.status.code(), Some(101), "{args:?}: {said}");
    }
}
