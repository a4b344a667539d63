//! Standard output that cannot be written: `tiphys … | head` is no error, for nobody listens any more; a full
//! disk is one.

use crate::common::{Repo, application, config_map};

const COMMANDS: [&[&str]; 7] = [
    &["graph", "repo"],
    &["graph", "repo", "--output", "json"],
    &["check", "repo", "--output", "json"],
    &["check", "--explain", "A"],
    &["render", "app", "repo/apps/shop.yaml", "--repo", "repo"],
    &["render", "kustomize", "repo"],
    &["version"],
];

fn repo() -> Repo {
    Repo::with(&[
        ("apps/shop.yaml", &application("shop", "manifests")),
        ("manifests/a.yaml", &config_map("a", "1")),
        ("kustomization.yaml", "resources: [manifests/a.yaml]\n"),
    ])
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let repo = repo();
    for args in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = repo.command(args).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "{args:?}: {said}");
        assert_ne!(output.status.code(), Some(101), "{args:?}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let repo = repo();
    for args in COMMANDS.into_iter().chain([["completion", "bash"].as_slice()]) {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = repo.command(args).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = "Error: cannot write to standard output: No space left on device";
        assert!(said.contains(told) && output.status.code() == Some(1), "{args:?}: {said}");
    }
}
