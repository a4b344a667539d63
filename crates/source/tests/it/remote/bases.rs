//! Remote bases and files of kustomizations.

use std::{path::Path, sync::Arc, time::Duration};

use gix::objs::tree::EntryKind;
use tiphys_kustomize::{BuildOptions, build};
use tiphys_source::{Fetcher, LocalRepositories};
use tiphys_vfs::MemTree;

use super::support::{Server, not_found, ok};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: far\n";

fn options(folder: &Path, offline: bool) -> BuildOptions {
    let fetcher = Fetcher::new(folder.join("cache"), Duration::ZERO, offline, |_| None)
        .with_local_repositories(LocalRepositories::any());
    BuildOptions { remote_loader: Some(Arc::new(fetcher)), ..BuildOptions::default() }
}

/// Builds a kustomization with one resource.
fn built(resource: &str, options: &BuildOptions) -> Result<String, String> {
    let text = format!("namePrefix: eu-\nresources:\n- {resource}\n");
    let tree = MemTree::from_files([("kustomization.yaml", text.as_str())]);
    let built = build(&tree, "", options).map_err(|error| error.to_string())?;
    Ok(built.to_yaml())
}

/// A repository with a kustomization in `deploy/base`, tagged `v1`.
fn repository(folder: &Path) {
    let repository = gix::init_bare(folder).expect("a repository can be made");
    let mut editor = repository.edit_tree(repository.empty_tree().id).expect("a tree can be edited");
    for (path, text) in
        [("deploy/base/kustomization.yaml", "resources: [c.yaml]\n"), ("deploy/base/c.yaml", MAP)]
    {
        let blob = repository.write_blob(text).expect("a blob can be written");
        editor.upsert(path, EntryKind::Blob, blob).expect("the path is free");
    }
    let time = gix::date::Time::new(1, 0);
    let author = gix::actor::Signature { name: "t".into(), email: "t@example.com".into(), time };
    let commit = gix::objs::Commit {
        tree: editor.write().expect("a tree can be written").detach(),
        parents: Default::default(),
        author: author.clone(),
        committer: author,
        encoding: None,
        message: "base".into(),
        extra_headers: Vec::new(),
    };
    let id = repository.write_object(&commit).expect("a commit can be written").detach();
    repository
        .reference("refs/tags/v1", id, gix::refs::transaction::PreviousValue::Any, "test")
        .expect("a reference can be written");
}

#[test]
fn a_base_is_read_from_a_repository_at_a_revision() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let place = folder.path().join("repo.git");
    repository(&place);
    let url = format!("file://{}//deploy/base?ref=", place.display());
    let options = options(folder.path(), false);
    let shown = built(&format!("{url}v1"), &options).expect("is there");
    assert_eq!(shown, MAP.replace("far", "eu-far"));
    let error = built(&format!("{url}v2"), &options).expect_err("has no such tag");
    assert!(error.contains("no branch, tag or commit \"v2\"; it has v1"), "{error}");
}

#[test]
fn a_file_is_read_from_a_server() {
    let server = Server::start(|request| match request.path.as_str() {
        "/c.yaml" => ok(MAP),
        _ => not_found(),
    });
    let folder = tempfile::tempdir().expect("a folder can be made");
    let url = |name: &str| format!("http://{}/{name}", server.host);
    let online = options(folder.path(), false);
    assert_eq!(built(&url("c.yaml"), &online).expect("is served"), MAP.replace("far", "eu-far"));
    let error = built(&url("d.yaml"), &online).expect_err("is not served");
    assert!(error.contains("status code 404 (Not Found)"), "{error}");
    let before = server.paths().len();
    let error = built(&url("c.yaml"), &options(folder.path(), true)).expect_err("is offline");
    assert!(error.contains("working offline"), "{error}");
    assert_eq!(server.paths().len(), before);
}
