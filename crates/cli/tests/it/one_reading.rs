//! `graph`, `diff` and `up` read a repository in one way: they know the same Applications, in the same
//! environments, and each renders to the same objects.
//!
//! `TIPHYS_REPOSITORIES` names a folder whose folders are read in place of the examples and incidents; best with
//! an optimised build: `TIPHYS_REPOSITORIES=FOLDER cargo test --release -p tiphys-cli --test it one_reading`.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Mutex,
};

use serde_json::Value;

use crate::common::Repo;

/// Environment, namespace and name of each Application, and what it renders to.
type Read = BTreeMap<(String, String, String), String>;

/// The examples, and every repository that shows an incident; or those that a person names.
fn repositories() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os("TIPHYS_REPOSITORIES") {
        let folders = fs::read_dir(named).expect("TIPHYS_REPOSITORIES is a folder");
        return folders.map(|entry| entry.expect("readable").path()).filter(|path| path.is_dir()).collect();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let incidents = root.join("crates/check/tests/incidents");
    let mut all = vec![root.join("examples/fleet"), root.join("examples/storefront")];
    for entry in fs::read_dir(incidents).expect("the incidents are here") {
        let folder = entry.expect("readable").path();
        all.extend(["bad", "good"].map(|state| folder.join(state)).into_iter().filter(|it| it.is_dir()));
    }
    assert!(all.len() > 200, "the incidents are many");
    all.sort();
    all
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("writable");
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let target = to.join(entry.file_name());
        let kind = entry.file_type().expect("a type");
        if kind.is_symlink() {
            let aim = fs::read_link(entry.path()).expect("readable");
            std::os::unix::fs::symlink(aim, target).expect("writable");
        } else if kind.is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("writable");
        }
    }
}

/// The repository with nothing but a note in its first commit, and everything in the second.
fn committed(from: &Path) -> Repo {
    let repo = Repo::with(&[("NOTE", "nothing yet\n")]);
    repo.git_init();
    copy(from, &repo.path(""));
    repo.commit();
    repo
}

fn entry(app: &Value, environment: &str, digest: &Value) -> ((String, String, String), String) {
    let text = |key: &str| app[key].as_str().unwrap_or_default().to_owned();
    let key = (environment.to_owned(), text("namespace"), text("name"));
    (key, digest.as_str().unwrap_or_default().to_owned())
}

/// Of Applications of one name in several environments the first.
fn gathered(all: impl Iterator<Item = ((String, String, String), String)>) -> Read {
    let mut read = Read::new();
    for (key, digest) in all {
        read.entry(key).or_insert(digest);
    }
    read
}

fn by_graph(repo: &Repo, chosen: &[&str]) -> Read {
    let run = repo.run(&[&["graph", "repo", "--offline", "--output", "json"], chosen].concat());
    let environments: Value = serde_json::from_str(&run.stdout()).unwrap_or_default();
    // What Flux applies is shown, and nobody else runs it.
    let environments = environments.as_array().into_iter().flatten();
    let environments = environments.filter(|environment| environment["engine"] == "Argo CD");
    let apps = environments.flat_map(|environment| {
        let name = environment["environment"].as_str().unwrap_or_default().to_owned();
        let apps = environment["applications"].as_array().cloned().unwrap_or_default().into_iter();
        // Of two with one name only one can run.
        let apps = apps.filter(|app| app["duplicate"] != true);
        apps.map(move |app| {
            let digest = if app["anyCluster"] == true { &Value::Null } else { &app["digest"] };
            entry(&app, &name, digest)
        })
    });
    gathered(apps)
}

fn by_diff(repo: &Repo, chosen: &[&str]) -> Read {
    let diff = ["diff", "HEAD~1..HEAD", "--repo", "repo", "--offline", "--output", "json"];
    let run = repo.run(&[&diff, chosen].concat());
    let apps: Value = serde_json::from_str(&run.stdout()).unwrap_or_default();
    let apps = apps.as_array().cloned().unwrap_or_default().into_iter();
    gathered(apps.filter(|app| app["kind"] == "Application").map(|app| {
        let environment = app["environment"].as_str().unwrap_or_default().to_owned();
        entry(&app, &environment, &app["digests"]["after"])
    }))
}

/// What `up` is going to run; nothing if it has nothing to run, and the environments to choose among if there
/// are several.
fn by_up(repo: &Repo, chosen: &[&str]) -> Result<Read, Vec<String>> {
    let up = ["up", "repo", "--once", "--offline", "--output", "json"];
    let mut command = repo.command(&[&up, chosen].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let events = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let plan = events.into_iter().find(|event| event["event"] == "plan");
    // What comes after the plan is the engine's.
    drop(child.kill());
    let told = child.wait_with_output().expect("it ends").stderr;
    let told = String::from_utf8_lossy(&told).into_owned();
    let choices = told.lines().filter_map(|line| line.trim().strip_prefix("--environment "));
    let choices: Vec<String> =
        choices.filter_map(|line| Some(line.split_once("   (")?.0.to_owned())).collect();
    if plan.is_none() && !choices.is_empty() {
        return Err(choices);
    }
    let apps = plan.and_then(|plan| plan["applications"].as_array().cloned()).unwrap_or_default();
    Ok(gathered(
        apps.iter().map(|app| entry(app, app["environment"].as_str().unwrap_or_default(), &app["digest"])),
    ))
}

/// The same without environments, which `diff` does not name where there are not several.
fn unnamed(read: &Read) -> Read {
    gathered(read.iter().map(|((_, namespace, name), digest)| {
        ((String::new(), namespace.clone(), name.clone()), digest.clone())
    }))
}

/// What is not as it should be in one repository.
fn differences(from: &Path) -> Vec<String> {
    let repo = committed(from);
    let all = by_up(&repo, &[]);
    let choices = all.as_ref().err().cloned().unwrap_or_default();
    let mut found = Vec::new();
    let chosen: Vec<Vec<&str>> = match choices.is_empty() {
        true => vec![Vec::new()],
        false => choices.iter().map(|choice| vec!["--environment", choice.as_str()]).collect(),
    };
    for chosen in chosen {
        let graph = by_graph(&repo, &chosen);
        let up = if chosen.is_empty() { all.clone() } else { by_up(&repo, &chosen) };
        let up = up.unwrap_or_default();
        let diff = by_diff(&repo, &chosen);
        // What is for any cluster stands for one in each that only the installation knows.
        let any: Vec<_> =
            graph.iter().filter(|(_, digest)| digest.is_empty()).map(|(key, _)| key.clone()).collect();
        let without = |mut read: Read| {
            read.retain(|(_, namespace, name), _| !any.iter().any(|it| it.1 == *namespace && it.2 == *name));
            read
        };
        let (graph, up, diff) = (without(graph), without(up), without(diff));
        if up != graph {
            found.push(format!("{} {chosen:?}: up {up:#?}\ngraph {graph:#?}", from.display()));
        }
        if unnamed(&diff) != unnamed(&graph) {
            found.push(format!("{} {chosen:?}: diff {diff:#?}\ngraph {graph:#?}", from.display()));
        }
    }
    found
}

#[test]
fn commands_read_a_repository_in_one_way() {
    let open = Mutex::new(repositories());
    let count = open.lock().expect("whole").len();
    assert!(count > 0, "there is something to read");
    let next = || open.lock().expect("whole").pop();
    let work = || std::iter::from_fn(next).flat_map(|from| differences(&from)).collect::<Vec<_>>();
    let found: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(found.is_empty(), "{} differences in {count} repositories\n{}", found.len(), found.join("\n"));
}
