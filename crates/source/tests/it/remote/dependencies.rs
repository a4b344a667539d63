//! Dependencies of charts that are not vendored.

use std::{collections::BTreeMap, path::Path, time::Duration};

use tiphys_helm::{Chart, RenderOptions, template};
use tiphys_source::{Access, ChartRequest, DeclaredAccess, Fetcher};
use tiphys_vfs::MemTree;

use super::support::{Server, chart, chart_with, not_found, ok, sha256};

const MISSING: &str = "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: db\n";

fn fetcher(folder: &Path, offline: bool, variables: &[(&str, String)]) -> Fetcher {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Fetcher::new(folder, Duration::from_secs(60), offline, move |name| variables.get(name).cloned())
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder can be made")
}

/// A repository with `db` in versions 1.0.0 and 1.4.0, the latter with a digest.
fn repository(tampered: bool) -> Server {
    let newest = chart_with("db", "1.4.0", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: db}\n");
    let digest = if tampered { sha256(b"other") } else { sha256(&newest) };
    let index = format!(
        "apiVersion: v1\nentries:\n  db:\n  - {{version: 1.0.0, urls: [db-1.0.0.tgz]}}\n  - {{version: 1.4.0, urls: [db-1.4.0.tgz], digest: {digest}}}\n"
    );
    Server::start(move |request| match request.path.as_str() {
        "/index.yaml" => ok(index.clone()),
        "/db-1.0.0.tgz" => ok(chart("db", "1.0.0")),
        "/db-1.4.0.tgz" => ok(newest.clone()),
        _ => not_found(),
    })
}

fn parent(repository: &str, version: &str) -> MemTree {
    let text = format!(
        "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {{name: db, version: \"{version}\", repository: \"{repository}\"}}\n"
    );
    let files = [
        ("web/Chart.yaml", text.as_str()),
        ("db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 2.1.0\n"),
        (
            "db/templates/c.yaml",
            "kind: ConfigMap\napiVersion: v1\nmetadata: {name: local-{{ .Chart.Version }}}\n",
        ),
    ];
    MemTree::from_files(files)
}

/// What a chart with a dependency renders to.
fn render(fetcher: &Fetcher, tree: &MemTree) -> Result<String, String> {
    let mut chart = Chart::load(tree, "web").expect("is a chart");
    fetcher.complete(&mut chart, tree, "", false).map_err(|error| error.to_string())?;
    let options = RenderOptions { release_name: "r".into(), ..RenderOptions::default() };
    Ok(template(&chart, &options).expect("renders").stdout)
}

#[test]
fn a_repository_serves_the_newest_version_that_fits() {
    let server = repository(false);
    let folder = folder();
    let tree = parent(&format!("http://{}", server.host), "^1.0.0");
    let online = fetcher(folder.path(), false, &[]);
    let shown = render(&online, &tree).expect("can be fetched");
    assert_eq!(
        shown,
        "---\n# Source: web/charts/db/templates/c.yaml\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: db}\n"
    );
    assert_eq!(server.paths(), ["/index.yaml", "/db-1.4.0.tgz"]);
    let offline = fetcher(folder.path(), true, &[]);
    assert_eq!(render(&offline, &tree).expect("was fetched before"), shown);
    assert_eq!(server.paths().len(), 2);
}

#[test]
fn aliases_and_credentials_come_from_helms_file() {
    let server = repository(false);
    let folder = folder();
    let file = folder.path().join("repositories.yaml");
    let text = format!(
        "repositories:\n- {{name: team, url: \"http://{}\", username: user, password: secret}}\n",
        server.host
    );
    std::fs::write(&file, text).expect("can be written");
    let variables = [("HELM_REPOSITORY_CONFIG", file.to_str().expect("is text").to_owned())];
    let fetcher = fetcher(&folder.path().join("cache"), false, &variables);
    for alias in ["@team", "alias:team"] {
        assert!(render(&fetcher, &parent(alias, "1.4.0")).expect("can be fetched").contains("charts/db"));
    }
    let basic = Some("Basic dXNlcjpzZWNyZXQ=".to_owned());
    assert_eq!(server.authorizations("/db-1.4.0.tgz"), [basic]);
    let error = render(&fetcher, &parent("@other", "1.4.0")).expect_err("is not known");
    let reason = "no repository definition for @other. Please add the missing repos via 'helm repo add'";
    assert_eq!(error, format!("{MISSING}{reason}"));
}

#[test]
fn what_a_command_says_of_a_host_comes_before_helms_file() {
    let server = repository(false);
    let url = format!("http://{}", server.host);
    let folder = folder();
    let config = folder.path().join("repositories.yaml");
    let text = format!("repositories: [{{name: team, url: \"{url}\", username: u, password: p}}]\n");
    std::fs::write(&config, text).expect("can be written");
    let fetched = |address: &str, access: Access| {
        let variables = [("HELM_REPOSITORY_CONFIG", config.to_str().expect("is text").to_owned())];
        let fetcher = fetcher(folder.path(), false, &variables).with_access(address, access);
        let wanted = ChartRequest {
            repository: address.to_owned(),
            name: "db".into(),
            version: "1.4.0".into(),
            pass_credentials: false,
        };
        fetcher.chart_archive(&wanted).expect("is served");
        server.authorizations("/index.yaml").pop().flatten().expect("a login is sent")
    };
    let given = Access { username: Some("v".into()), password: Some("q".into()), ..Access::default() };
    assert_eq!(fetched("@team", Access::default()), "Basic dTpw");
    assert_eq!(fetched("@team", given.clone()), "Basic djpx");
    assert_eq!(fetched(&url, given), "Basic djpx");
}

#[test]
fn folders_of_the_tree_serve_file_addresses() {
    let folder = folder();
    let fetcher = fetcher(folder.path(), true, &[]);
    let shown = render(&fetcher, &parent("file://../db", ">=2")).expect("stands in the tree");
    assert!(shown.contains("name: local-2.1.0"), "{shown}");
    let error = render(&fetcher, &parent("file://../db", "^1")).expect_err("does not fit");
    assert!(error.contains("db has version 2.1.0, wanted is ^1"), "{error}");
    let error = render(&fetcher, &parent("file://../../db", "*")).expect_err("leads outside");
    assert!(error.starts_with(MISSING), "{error}");
}

#[test]
fn failures_begin_with_helms_text() {
    let empty = folder();
    let tree = parent("http://127.0.0.1:1/charts", "1.0.0");
    let error = render(&fetcher(empty.path(), true, &[]), &tree).expect_err("is offline");
    assert!(error.starts_with(MISSING) && error.contains("run without --offline"), "{error}");

    let mut chart = Chart::load(&tree, "web").expect("is a chart");
    let refused =
        fetcher(empty.path(), false, &[]).complete(&mut chart, &tree, "", false).expect_err("nobody listens");
    assert!(refused.is_transient() && refused.to_string().starts_with(MISSING), "{refused}");

    let server = repository(true);
    let tree = parent(&format!("http://{}", server.host), "1.4.0");
    let error = render(&fetcher(empty.path(), false, &[]), &tree).expect_err("has another digest");
    assert!(error.starts_with(MISSING) && error.contains("SHA-256"), "{error}");
}

#[test]
fn a_dependency_without_a_version_is_refused_as_by_helm() {
    let server = repository(false);
    let cache = folder();
    let error = render(&fetcher(cache.path(), false, &[]), &parent(&format!("http://{}", server.host), ""))
        .expect_err("has none");
    let expected = "dependency \"db\" has an invalid version/constraint format: improper constraint: \"\"";
    assert!(error.contains(expected), "{error}");
    assert_eq!(server.paths(), [""; 0]);
}

/// What is sent to the other host on which a dependency's archive lies.
fn sent_elsewhere(pass_credentials: bool) -> Vec<Option<String>> {
    let files = Server::start(|_| ok(chart("db", "1.0.0")));
    let target = format!("http://{}/db-1.0.0.tgz", files.host);
    let index = format!("apiVersion: v1\nentries: {{db: [{{version: 1.0.0, urls: ['{target}']}}]}}\n");
    let server = Server::start(move |_| ok(index.clone()));
    let url = format!("http://{}", server.host);
    let folder = folder();
    let fetcher = fetcher(folder.path(), false, &[]);
    let access = Access { username: Some("user".into()), password: Some("pass".into()), ..Access::default() };
    fetcher.declare(vec![DeclaredAccess {
        url: url.clone(),
        exact: true,
        access,
        ..DeclaredAccess::default()
    }]);
    let tree = parent(&url, "1.0.0");
    let mut chart = Chart::load(&tree, "web").expect("is a chart");
    fetcher.complete(&mut chart, &tree, "", pass_credentials).expect("it is served");
    files.authorizations("/db-1.0.0.tgz")
}

#[test]
fn credentials_of_a_dependency_stay_with_their_host_unless_told_otherwise() {
    assert_eq!(sent_elsewhere(false), [None]);
    assert_eq!(sent_elsewhere(true), [Some("Basic dXNlcjpwYXNz".to_owned())]);
}
