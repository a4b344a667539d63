//! Git repositories: revisions as Argo CD names them, and submodules. The repositories are written
//! with gix itself.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use gix::{
    ObjectId,
    bstr::BString,
    objs::{Kind, Write, tree::EntryKind},
};
use tiphys_source::{GitCache, LocalRepositories, SourceError, WorkingTree};
use tiphys_vfs::FileTree;

struct Repo {
    inner: gix::Repository,
    url: String,
}

impl Repo {
    fn init(folder: &Path) -> Self {
        let inner = gix::init_bare(folder).expect("a repository can be made");
        let url = folder.to_str().expect("is text").to_owned();
        Self { inner, url }
    }

    /// Commits exactly these files (and submodules) to `main`.
    fn commit(&self, files: &[(&str, &str)], modules: &[(&str, ObjectId)]) -> ObjectId {
        let empty = self.inner.empty_tree().id;
        let mut editor = self.inner.edit_tree(empty).expect("a tree can be edited");
        for (path, text) in files {
            let blob = self.inner.write_blob(text).expect("a blob can be written").detach();
            editor.upsert(*path, EntryKind::Blob, blob).expect("the path is free");
        }
        for (path, commit) in modules {
            editor.upsert(*path, EntryKind::Commit, *commit).expect("the path is free");
        }
        self.commit_tree(editor.write().expect("a tree can be written").detach())
    }

    /// Commits a tree to `main`.
    fn commit_tree(&self, tree: ObjectId) -> ObjectId {
        let parents: Vec<ObjectId> =
            self.inner.rev_parse_single("refs/heads/main").ok().map(|id| id.detach()).into_iter().collect();
        let time = gix::date::Time::new(1, 0);
        let signature = gix::actor::Signature { name: "t".into(), email: "t@example.com".into(), time };
        let commit = gix::objs::Commit {
            tree,
            parents: parents.into_iter().collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: BString::from("change"),
            extra_headers: Vec::new(),
        };
        let id = self.inner.write_object(&commit).expect("a commit can be written").detach();
        self.point("refs/heads/main", id);
        id
    }

    fn point(&self, name: &str, id: ObjectId) {
        self.inner
            .reference(name, id, gix::refs::transaction::PreviousValue::Any, "test")
            .expect("a reference can be written");
    }
}

fn cache(folder: &tempfile::TempDir) -> GitCache {
    GitCache::new(folder.path().join("cache"), Duration::ZERO)
        .with_local_repositories(LocalRepositories::any())
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder can be made")
}

#[test]
fn a_folder_of_this_machine_is_read_only_if_it_is_allowed() {
    let place = folder();
    let origin = Repo::init(&place.path().join("origin"));
    origin.commit(&[("a.yaml", "x: 1")], &[]);
    let cache = GitCache::new(place.path().join("cache"), Duration::ZERO);
    for url in [origin.url.clone(), format!("file://{}", origin.url), format!(" {} ", origin.url)] {
        let error = cache.checkout(&url, "").err().expect("it is not allowed");
        assert!(matches!(error, SourceError::LocalFolder { .. }), "{url}: {error}");
        assert!(error.to_string().contains("--local-repositories"), "{error}");
    }
}

#[test]
fn revisions_are_branches_tags_commits_and_ranges() {
    let folder = folder();
    let repo = Repo::init(&folder.path().join("repo"));
    let mut commits = Vec::new();
    for tag in ["v1.0.0", "v1.2.0", "v1.10.0", "v2.0.0-rc.1"] {
        let id = repo.commit(&[("a.txt", tag)], &[]);
        repo.point(&format!("refs/tags/{tag}"), id);
        commits.push(id.to_string());
    }
    let git = cache(&folder);
    let at = |revision: &str| {
        let checkout = git.checkout(&repo.url, revision).expect(revision);
        let text = checkout.tree.read("a.txt").expect("is there");
        (checkout.revision, String::from_utf8_lossy(&text).into_owned())
    };
    assert_eq!(at("main").1, "v2.0.0-rc.1");
    assert_eq!(at("v1.2.0"), (commits[1].clone(), "v1.2.0".to_owned()));
    assert_eq!(at(&commits[0]).1, "v1.0.0");
    assert_eq!(at(&commits[0][..8]).1, "v1.0.0");
    assert_eq!(at("1.x").1, "v1.10.0");
    assert_eq!(at("~1.2").1, "v1.2.0");
    assert_eq!(at(">=1.0.0-0").1, "v2.0.0-rc.1");
    assert_eq!(at("*").1, "v1.10.0");
    let Err(error) = git.checkout(&repo.url, "^3") else { panic!("there is no 3") };
    assert!(matches!(error, SourceError::UnknownRevision { .. }), "{error}");
}

#[test]
fn ranges_are_of_tags_with_a_prefix() {
    let folder = folder();
    let repo = Repo::init(&folder.path().join("repo"));
    for tag in ["app1/v1.0.0", "app1/v1.0.1", "app2/v1.0.7", "v1.0.9", "app1/v2.0.0"] {
        let id = repo.commit(&[("a.txt", tag)], &[]);
        repo.point(&format!("refs/tags/{tag}"), id);
    }
    let git = cache(&folder);
    let at = |prefix: &str, constraint: &str| {
        let checkout = git.checkout(&repo.url, &tiphys_source::tag_revision(prefix, constraint));
        let text = checkout.map(|checkout| checkout.tree.read("a.txt").expect("is there"));
        text.map(|text| String::from_utf8_lossy(&text).into_owned()).map_err(|error| error.to_string())
    };
    assert_eq!(at("app1/", "v1.0.*").as_deref(), Ok("app1/v1.0.1"));
    assert_eq!(at("app2/", "v1.*").as_deref(), Ok("app2/v1.0.7"));
    assert_eq!(at("", "v1.0.*").as_deref(), Ok("v1.0.9"));
    assert_eq!(at("app1/", "main").as_deref(), Ok("app1/v2.0.0"), "no constraint");
    assert!(at("app3/", "v1.*").is_err());
}

#[test]
fn submodules_are_mounted_at_their_commits() {
    let folder = folder();
    let library = Repo::init(&folder.path().join("library"));
    let pinned = library.commit(&[("lib.yaml", "pinned")], &[]);
    library.commit(&[("lib.yaml", "newer")], &[]);
    let repo = Repo::init(&folder.path().join("repo"));
    let modules = "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../library\n";
    repo.commit(&[(".gitmodules", modules), ("app.yaml", "app")], &[("vendor/lib", pinned)]);
    let checkout = cache(&folder).checkout(&repo.url, "main").expect("is there");
    assert_eq!(&*checkout.tree.read("vendor/lib/lib.yaml").expect("is mounted"), b"pinned");
    let names: Vec<String> =
        checkout.tree.read_dir("vendor").expect("is there").into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["lib"]);
}

impl Repo {
    fn blob(&self, text: &str) -> ObjectId {
        self.inner.write_blob(text).expect("a blob can be written").detach()
    }

    /// A tree with any names.
    fn tree(&self, entries: &[(EntryKind, &str, ObjectId)]) -> ObjectId {
        let entry = |(kind, name, oid): &(EntryKind, &str, ObjectId)| gix::objs::tree::Entry {
            mode: (*kind).into(),
            filename: (*name).into(),
            oid: *oid,
        };
        let tree = gix::objs::Tree { entries: entries.iter().map(entry).collect() };
        self.inner.write_object(&tree).expect("a tree can be written").detach()
    }
}

#[test]
fn names_that_are_none_are_left_out_of_a_commit() {
    let folder = folder();
    let repo = Repo::init(&folder.path().join("repo"));
    let above = repo.tree(&[(EntryKind::Blob, "values.yaml", repo.blob("from above"))]);
    let inner = repo.tree(&[(EntryKind::Tree, "..", above), (EntryKind::Blob, "b.yaml", repo.blob("b"))]);
    let own = repo.blob("own");
    repo.commit_tree(repo.tree(&[(EntryKind::Tree, "a", inner), (EntryKind::Blob, "values.yaml", own)]));
    let checkout = cache(&folder).checkout(&repo.url, "main").expect("is there");
    assert_eq!(&*checkout.tree.read("values.yaml").expect("is there"), b"own");
    assert_eq!(tiphys_vfs::walk(&*checkout.tree, "").expect("a tree"), ["a/b.yaml", "values.yaml"]);
}

#[test]
fn commits_and_tags_that_are_none_are_refused() {
    let folder = folder();
    let repo = Repo::init(&folder.path().join("repo"));
    let write =
        |kind, text: &str| repo.inner.objects.write_buf(kind, text.as_bytes()).expect("it can be written");
    let (commit, tag) = (write(Kind::Commit, "no commit"), write(Kind::Tag, "no tag"));
    let tagged = write(
        Kind::Tag,
        &format!("object {commit}\ntype commit\ntag v2\ntagger t <t@example.com> 1 +0000\n\nx\n"),
    );
    repo.point("refs/heads/main", commit);
    repo.point("refs/tags/v1.0.0", tag);
    repo.point("refs/tags/v2.0.0", tagged);
    for revision in ["main", "v1.0.0", "v2.0.0", "v1.x", "v2.x", &tag.to_string()] {
        let error = cache(&folder).checkout(&repo.url, revision).map(|_| ()).expect_err("it is none");
        assert!(error.to_string().contains(&repo.url), "{revision}: {error}");
    }
}

#[test]
fn a_checkout_of_another_user_has_its_remotes() {
    let folder = folder();
    let repo = gix::init(folder.path()).expect("a repository can be made");
    let config = "[remote \"origin\"]\n\turl = https://git.example.com/acme/shop.git\n";
    std::fs::write(repo.git_dir().join("config"), config).expect("can be written");
    for path in [folder.path(), repo.git_dir()] {
        if std::os::unix::fs::chown(path, Some(4711), Some(4711)).is_err() {
            println!("skipped: needs root");
            return;
        }
    }
    let tree = WorkingTree::open(folder.path()).expect("a folder");
    assert_eq!(tree.remotes(), ["https://git.example.com/acme/shop.git"]);
}

#[test]
fn what_is_missing_in_a_checkout_is_said_with_how_it_comes() {
    let folder = folder();
    let run = |at: &Path, args: &[&str]| {
        let set =
            ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "uploadpack.allowFilter=true"];
        let status = Command::new("git").current_dir(at).args(set).args(args).status();
        assert!(status.expect("git is installed").success(), "{args:?}");
    };
    let origin = folder.path().join("origin");
    std::fs::create_dir(&origin).expect("a folder can be made");
    run(&origin, &["init", "-q", "-b", "main"]);
    run(&origin, &["config", "uploadpack.allowFilter", "true"]);
    for text in ["one", "two"] {
        std::fs::write(origin.join("a.txt"), text).expect("can be written");
        run(&origin, &["add", "."]);
        run(&origin, &["commit", "-q", "-m", text]);
    }
    let url = format!("file://{}", origin.display());
    for (name, flag) in [("shallow", "--depth=1"), ("partial", "--filter=blob:none")] {
        run(folder.path(), &["clone", "-q", flag, &url, name]);
    }
    let opened = |name: &str| WorkingTree::open(&folder.path().join(name)).expect("a folder");
    let error = opened("shallow").checkout(".", "HEAD~1").map(|_| ()).expect_err("is not there").to_string();
    assert!(error.contains("`git fetch --unshallow`"), "{error}");
    let before = opened("partial").checkout(".", "HEAD~1").expect("is there").tree;
    let error = before.read("a.txt").expect_err("is not there").to_string();
    assert!(error.contains("partial clone"), "{error}");
}

#[test]
fn a_commit_of_more_files_than_memory_holds_is_refused() {
    let folder = folder();
    let repo = Repo::init(&folder.path().join("repo"));
    let mut tree = repo.tree(&[(EntryKind::Blob, "f", repo.blob("f"))]);
    let names: Vec<String> = (100..1000).map(|number| number.to_string()).collect();
    for _ in 0..3 {
        tree =
            repo.tree(&names.iter().map(|name| (EntryKind::Tree, name.as_str(), tree)).collect::<Vec<_>>());
    }
    repo.commit_tree(tree);
    let cache = cache(&folder);
    let refused = || {
        let start = Instant::now();
        let error = cache.checkout(&repo.url, "main").map(|_| ()).expect_err("729 million files");
        assert!(matches!(&error, SourceError::TooMany { .. }), "{error}");
        start.elapsed()
    };
    // It is not listed at each look.
    let (first, second) = (refused(), refused());
    assert!(second < first / 4, "{first:?}, then {second:?}");
}

#[test]
fn head_of_a_working_tree_is_what_is_checked_out_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = Repo::init(folder.path());
    let first = repo.commit(&[("a", "1")], &[]);
    let second = repo.commit(&[("a", "2")], &[]);
    repo.point("refs/remotes/origin/main", first);
    repo.point("refs/remotes/origin/HEAD", first);
    let tree = WorkingTree::open(folder.path()).expect("a folder");
    let commit = |revision: &str| tree.checkout(&repo.url, revision).map(|found| found.revision);
    assert_eq!(commit("HEAD").expect("it has one"), second.to_string());
    assert_eq!(commit("HEAD~1").expect("it has one"), first.to_string());
    assert_eq!(tree.merge_base("HEAD", "origin/main").expect("they have one"), first.to_string());
    assert!(commit("HEAD~7").is_err() && commit("HEADS").is_err());
}
