//! A server with a state folder loses no acknowledged write, wherever it is killed.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tiphys_apiserver::{ApiServer, ApiServerOptions, StateError};
use tiphys_value::{GroupVersionResource, Value, json};
use tower::ServiceExt;

const STATE: &str = "TIPHYS_TEST_STATE";
const ROUND: &str = "TIPHYS_TEST_ROUND";

fn open(folder: &Path) -> Result<ApiServer, StateError> {
    ApiServer::new(ApiServerOptions { state_dir: Some(folder.to_owned()), ..ApiServerOptions::default() })
}

async fn send(server: &ApiServer, method: &str, path: &str, body: &Value) -> u16 {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    server.service().oneshot(request).await.unwrap().status().as_u16()
}

/// Not a test of its own: the process that is killed. It says what it is about to write, and that it is
/// written once that is acknowledged: objects are created, changed, and some deleted again.
#[tokio::test]
async fn writer() {
    let Some(folder) = std::env::var_os(STATE) else { return };
    let server = open(Path::new(&folder)).unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let round = std::env::var(ROUND).unwrap();
    for number in 0.. {
        let name = format!("w-{round}-{number}");
        let object = format!("{maps}/{name}");
        let steps = [
            ("POST", maps, "1", json!({"metadata": {"name": name}, "data": {"step": "1"}})),
            ("PATCH", &object, "2", json!({"data": {"step": "2"}})),
            ("DELETE", &object, "gone", json!({})),
        ];
        for (method, path, step, body) in steps.into_iter().take(1 + number % 3) {
            println!("writing {name} {step}");
            let code = send(&server, method, path, &body).await;
            assert!(code == 200 || code == 201, "{code}");
            println!("written {name} {step}");
        }
    }
}

/// What the writers said: the last acknowledged state of every object, unless they were about to change it.
#[derive(Default)]
struct Told(BTreeMap<String, String>);

impl Told {
    /// Takes a line; returns whether it acknowledges something.
    fn hear(&mut self, line: &str) -> bool {
        let part = |word: &str| line.split_once(word).and_then(|(_, rest)| rest.split_once(' '));
        if let Some((name, _)) = part("writing ") {
            self.0.remove(name);
            return false;
        }
        let Some((name, step)) = part("written ") else { return false };
        self.0.insert(name.to_owned(), step.to_owned());
        true
    }

    fn is_kept_by(&self, server: &ApiServer) {
        let maps = GroupVersionResource::new("", "v1", "configmaps");
        for (name, step) in &self.0 {
            let found = server.client("test").get(&maps, "default", name);
            let found = found.map_or("gone".to_owned(), |object| {
                object["data"]["step"].as_str().unwrap_or_default().to_owned()
            });
            assert_eq!(found, *step, "{name}");
        }
    }
}

/// How many writers are killed: a few, or as many as `TIPHYS_KILLS` says.
fn kills() -> usize {
    std::env::var("TIPHYS_KILLS").ok().and_then(|number| number.parse().ok()).unwrap_or(15)
}

#[test]
fn killed_anywhere_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut told = Told::default();
    let mut revision = 0;
    for round in 0..kills() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "durability::writer", "--nocapture"])
            .env(STATE, folder.path())
            .env(ROUND, round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        // Another number of writes each time, and another moment after the last: the kill falls anywhere.
        let mut left = 1 + round * 7 % 61;
        while left > 0 {
            left -= usize::from(told.hear(&lines.next().expect("the writer goes on")));
        }
        let pause = Duration::from_micros((round as u64).wrapping_mul(7919) % 3000);
        std::thread::sleep(pause);
        child.kill().unwrap();
        for line in lines {
            told.hear(&line);
        }
        child.wait().unwrap();
        let server = open(folder.path()).unwrap();
        told.is_kept_by(&server);
        assert!(server.revision() > revision, "revisions are never given out twice");
        revision = server.revision();
    }
    assert!(told.0.len() > 10 * kills());
}

#[test]
fn a_folder_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let database = redb::Database::create(folder.path().join("cluster.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let meta: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("meta");
    transaction.open_table(meta).unwrap().insert("format", 99).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("has format 99") && error.contains("newer version"), "{error}");
}

#[test]
fn a_folder_in_use_says_by_whom() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).unwrap();
    let told = open(folder.path()).err().unwrap().to_string();
    assert!(told.contains(&format!("is used by process {}", std::process::id())), "{told}");
    drop(first);
    open(folder.path()).unwrap();
}

/// A folder with some objects in it.
fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = open(folder.path()).unwrap();
        for number in 0..20 {
            let map = json!({"metadata": {"name": format!("m{number}")}, "data": {"k": "v".repeat(500)}});
            assert_eq!(send(&server, "POST", "/api/v1/namespaces/default/configmaps", &map).await, 201);
        }
    });
    folder
}

const FILE: &str = "cluster.redb";

#[cfg(unix)]
#[test]
fn nobody_else_reads_the_state() {
    use std::os::unix::fs::PermissionsExt as _;
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("a/state");
    drop(open(&folder).unwrap());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join(FILE)), 0o600);
    // What an earlier version left open is closed; a folder with other things in it stays as it is.
    let open_to_all = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open_to_all(&folder, 0o755);
    open_to_all(&folder.join(FILE), 0o644);
    drop(open(&folder).unwrap());
    assert_eq!((mode(&folder), mode(&folder.join(FILE))), (0o700, 0o600));
    open_to_all(&folder, 0o755);
    std::fs::write(folder.join("other"), "x").unwrap();
    drop(open(&folder).unwrap());
    assert_eq!(mode(&folder), 0o755);
}

#[test]
fn an_empty_file_is_no_new_cluster() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE), "").unwrap();
    let error = open(folder.path()).err().unwrap();
    assert!(matches!(error, StateError::Empty { .. }), "{error}");
    assert!(error.to_string().contains("is empty: what was in it is lost"), "{error}");
    // One that was killed while it made the first file begins again.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cluster.redb.new"), "half").unwrap();
    assert!(open(folder.path()).is_ok());
}

#[test]
fn a_damaged_file_is_an_error_and_no_panic() {
    let folder = filled();
    let whole = std::fs::read(folder.path().join(FILE)).unwrap();
    let copy = tempfile::tempdir().unwrap();
    let mut refused = 0;
    // Every page has its first bytes changed once, and the file is cut once in each.
    for at in (0..whole.len()).step_by(4096) {
        for cut in [false, true] {
            let mut damaged = whole.clone();
            if cut {
                damaged.truncate(at.max(1));
            } else {
                let end = (at + 64).min(damaged.len());
                damaged[at..end].iter_mut().for_each(|byte| *byte = !*byte);
            }
            std::fs::write(copy.path().join(FILE), damaged).unwrap();
            if let Err(error) = open(copy.path()) {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(refused > 0, "some of these are seen");
    std::fs::write(copy.path().join(FILE), "this is no database, whatever else it is").unwrap();
    let error = open(copy.path()).err().unwrap();
    assert!(matches!(error, StateError::Database(_) | StateError::Damaged { .. }), "{error}");
}
