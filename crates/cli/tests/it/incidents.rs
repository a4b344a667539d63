//! Incidents that unfold in a rehearsal: each folder holds `bad` and `good`, or `base` and both as its
//! changes, and the stories; `dump` is a cluster that was there before.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

use crate::common::Repo;

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/incidents");
    let mut folders: Vec<PathBuf> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    // One alone, for whoever works on it.
    if let Ok(only) = std::env::var("TIPHYS_INCIDENT") {
        folders.retain(|folder| name_of(folder) == only);
    }
    folders.sort();
    assert!(!folders.is_empty());
    folders
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            assert!(fs::copy(entry.path(), &target).is_ok())
        }
    }
}

fn repo_of(folder: &Path) -> Repo {
    let repo = Repo::with(&[]);
    copy(folder, &repo.path(""));
    repo
}

/// Gives the commit a date, so that its name, which stories tell, is always the same.
fn date_commit(repo: &Repo) {
    const DATE: &str = "2026-01-01T00:00:00Z";
    let mut git = Command::new("git");
    git.args(["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]);
    git.args(["commit", "-q", "--amend", "--no-edit", "--date", DATE]).env("GIT_COMMITTER_DATE", DATE);
    assert!(git.current_dir(repo.path("")).status().unwrap().success());
}

/// A state of an incident as a repository, with the arguments that it is rehearsed with.
fn prepared(folder: &Path, state: &str) -> (Repo, Vec<String>) {
    let flags = fs::read_to_string(folder.join("flags")).unwrap_or_default();
    let mut args: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
    let dump = folder.join("dump");
    if !folder.join("base").is_dir() {
        let repo = repo_of(&folder.join(state));
        if dump.is_dir() {
            copy(&dump, &repo.run_dir().join("dump"));
            args.extend(["--from", "dump"].map(str::to_owned));
        }
        return (repo, args);
    }
    let repo = repo_of(&folder.join("base"));
    repo.git_init();
    date_commit(&repo);
    for entry in
        fs::read_dir(repo.path("")).unwrap().map(Result::unwrap).filter(|it| it.file_name() != ".git")
    {
        if entry.path().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap()
        } else {
            fs::remove_file(entry.path()).unwrap()
        }
    }
    copy(&folder.join(state), &repo.path(""));
    args.extend(["--diff", "HEAD"].map(str::to_owned));
    (repo, args)
}

fn run(repo: &Repo, command: &[&str], args: &[String]) -> (i32, String) {
    let args: Vec<&str> = command.iter().copied().chain(args.iter().map(String::as_str)).collect();
    let Output { status, stdout, stderr } = repo.command(&args).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    (status.code().unwrap(), text)
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn incidents_unfold_from_bad_repositories_and_stay_away_from_good_ones() {
    let mut faults = Vec::new();
    for folder in folders() {
        for (state, expected) in [("bad", 1), ("good", 0)] {
            let (repo, args) = prepared(&folder, state);
            let (code, text) = run(&repo, &["rehearse", "repo", "--offline"], &args);
            let name = format!("{}/{state}", name_of(&folder));
            if code != expected {
                faults.push(format!("{name}: exit code {code}, not {expected}\n{text}"));
            }
            let golden = folder.join(format!("{state}.txt"));
            if std::env::var_os("TIPHYS_BLESS").is_some() {
                fs::write(&golden, &text).unwrap();
            } else if fs::read_to_string(&golden).unwrap_or_default() != text {
                faults.push(format!("{name}: another story than {}\n{text}", golden.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// The ids of causes at a path of a report.
fn ids<'a>(causes: &'a Value, id: impl Fn(&'a Value) -> &'a Value) -> BTreeSet<&'a str> {
    causes.as_array().into_iter().flatten().filter_map(|cause| id(cause).as_str()).collect()
}

/// One vocabulary: what the story ends with is what the doctor names in the cluster that results. `APART` has
/// those of which the cluster alone does not tell; `docs/rehearse.md` says why.
#[test]
fn the_doctor_names_in_the_cluster_what_the_story_ends_with() {
    let mut faults = Vec::new();
    for folder in folders() {
        let name = name_of(&folder);
        let (repo, args) = prepared(&folder, "bad");
        let rehearse = ["rehearse", "repo", "--offline", "--output", "json", "--save", "end"];
        let (_, text) = run(&repo, &rehearse, &args);
        let story: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
        let told = ids(&story["story"]["causes"], |cause| &cause["mechanism"]["id"]);
        assert!(!told.is_empty(), "{name}: the story ends without a cause: {text}");
        let (_, text) = run(&repo, &["doctor", "--from", "end", "--output", "json"], &[]);
        let report: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
        let found = ids(&report["causes"], |cause| &cause["cause"]);
        let is_apart = APART.contains(&name.as_str());
        if told.is_disjoint(&found) != is_apart {
            faults.push(format!("{name}: the story ends with {told:?}, and the doctor names {found:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Incidents of which the cluster that results does not tell the same cause.
const APART: [&str; 2] = ["B2", "F5"];
