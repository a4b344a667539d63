//! A server with a state folder loses no acknowledged write, wherever it is killed.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tiphys_apiserver::{ApiServer, ApiServerOptions, StateError};
use tiphys_value::{GroupVersionResource, json};
use tower::ServiceExt;

const STATE: &str = "TIPHYS_TEST_STATE";

fn open(folder: &Path) -> Result<ApiServer, StateError> {
    ApiServer::new(ApiServerOptions { state_dir: Some(folder.to_owned()), ..ApiServerOptions::default() })
}

/// Not a test of its own: the process that is killed. It says each name once its write is acknowledged.
#[tokio::test]
async fn writer() {
    let Some(folder) = std::env::var_os(STATE) else { return };
    let server = open(Path::new(&folder)).unwrap();
    for number in 0.. {
        let name = format!("w-{}-{number}", std::process::id());
        let body = json!({"metadata": {"name": name}}).to_string();
        let request = Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let response = server.service().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 201);
        println!("written {name}");
    }
}

#[test]
fn killed_anywhere_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    let gvr = GroupVersionResource::new("", "v1", "configmaps");
    let mut revision = 0;
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--nocapture"])
            .env(STATE, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let names = lines.filter_map(|line| Some(line.split_once("written ")?.1.to_owned()));
        // Another number of writes each time, so that the kill falls on other moments of a batch.
        acknowledged.extend(names.take(1 + round * 7));
        child.kill().unwrap();
        child.wait().unwrap();
        let server = open(folder.path()).unwrap();
        for name in &acknowledged {
            let found = server.client("test").get(&gvr, "default", name);
            assert!(found.is_ok(), "lost {name} in round {round}");
        }
        assert!(server.revision() > revision, "revisions are never given out twice");
        revision = server.revision();
    }
    assert!(acknowledged.len() > 400);
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
