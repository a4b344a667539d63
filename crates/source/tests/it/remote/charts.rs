//! Chart repositories with an index.

use std::{sync::Arc, time::Duration};

use tiphys_kustomize::RemoteLoader;
use tiphys_source::{Access, AccessTable, ChartRequest, Charts, Fetcher, SourceError};
use tiphys_vfs::FileTree;

use super::support::{Answer, Server, chart, not_found, ok, sha256};
use crate::tls::{certified, certified_by};

fn request(repository: &str, version: &str) -> ChartRequest {
    ChartRequest {
        repository: repository.to_owned(),
        name: "web".to_owned(),
        version: version.to_owned(),
        pass_credentials: false,
    }
}

fn charts(folder: &tempfile::TempDir, access: AccessTable) -> Charts {
    Charts::new(folder.path(), access, Duration::from_secs(60), false)
}

fn offline(folder: &tempfile::TempDir) -> Charts {
    Charts::new(folder.path(), AccessTable::default(), Duration::ZERO, true)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder can be made")
}

/// An index of `web` 1.0.0 and 1.1.0, the latter with a digest.
fn index(digest: &str) -> String {
    format!(
        "apiVersion: v1\nentries:\n  web:\n  - {{version: 1.0.0, urls: [web-1.0.0.tgz]}}\n  - {{version: 1.1.0, urls: [web-1.1.0.tgz], digest: {digest}}}\n"
    )
}

fn repository() -> Server {
    let newest = chart("web", "1.1.0");
    let index = index(&sha256(&newest));
    Server::start(move |request| match request.path.as_str() {
        "/charts/index.yaml" => ok(index.clone()),
        "/charts/web-1.0.0.tgz" => ok(chart("web", "1.0.0")),
        "/charts/web-1.1.0.tgz" => ok(newest.clone()),
        _ => not_found(),
    })
}

#[test]
fn the_newest_matching_version_is_fetched_once() {
    let server = repository();
    let url = format!("http://{}/charts", server.host);
    let folder = folder();
    let charts = charts(&folder, AccessTable::default());
    for _ in 0..2 {
        let chart = charts.fetch(&request(&url, "^1")).expect("is served");
        assert_eq!(chart.version, "1.1.0");
        assert_eq!(chart.digest, sha256(&chart.archive));
        let tree = chart.tree().expect("is a chart");
        assert!(tree.is_file("Chart.yaml"));
    }
    assert_eq!(charts.fetch(&request(&url, "1.0.0")).expect("is served").version, "1.0.0");
    assert_eq!(server.paths(), ["/charts/index.yaml", "/charts/web-1.1.0.tgz", "/charts/web-1.0.0.tgz"]);
}

#[test]
fn offline_serves_what_was_fetched_and_names_what_was_not() {
    let server = repository();
    let url = format!("http://{}/charts/", server.host);
    let folder = folder();
    let error = offline(&folder).fetch(&request(&url, "")).expect_err("nothing is there yet");
    assert!(matches!(error, SourceError::Offline { .. }), "{error}");
    charts(&folder, AccessTable::default()).fetch(&request(&url, "1.1.0")).expect("is served");
    let before = server.paths().len();
    assert_eq!(offline(&folder).fetch(&request(&url, "~1.1")).expect("was fetched").version, "1.1.0");
    let error = offline(&folder).fetch(&request(&url, "1.0.0")).expect_err("was never fetched");
    assert!(error.to_string().contains("chart web 1.0.0"), "{error}");
    assert_eq!(server.paths().len(), before);
}

#[test]
fn a_wrong_digest_is_refused_and_nothing_is_kept() {
    let promised = index(&sha256(b"something else"));
    let server = Server::start(move |request| match request.path.as_str() {
        "/index.yaml" => ok(promised.clone()),
        _ => ok(chart("web", "1.1.0")),
    });
    let url = format!("http://{}", server.host);
    let folder = folder();
    let error =
        charts(&folder, AccessTable::default()).fetch(&request(&url, "1.1.0")).expect_err("is tampered");
    assert!(matches!(error, SourceError::Digest { .. }), "{error}");
    assert!(offline(&folder).fetch(&request(&url, "1.1.0")).is_err());
}

#[test]
fn missing_charts_and_versions_are_named() {
    let server = repository();
    let url = format!("http://{}/charts", server.host);
    let folder = folder();
    let charts = charts(&folder, AccessTable::default());
    let error = charts.fetch(&request(&url, "^2")).expect_err("has no 2");
    assert!(
        error.to_string().ends_with("has no chart web version \"^2\"; its newest versions are 1.1.0, 1.0.0")
    );
    let wanted = ChartRequest { name: "we".to_owned(), ..request(&url, "") };
    let error = charts.fetch(&wanted).expect_err("has no such chart");
    assert!(error.to_string().ends_with("it has no chart of that name, but web"), "{error}");
    let error = charts.fetch(&request("ftp://x", "")).expect_err("is no repository");
    assert!(matches!(error, SourceError::BadUrl { .. }));
}

/// What is sent to a repository behind a password and to the other host on which its archives lie, where
/// everything of the repository may have the password, or this chart.
fn split_repository(
    access_everywhere: bool,
    pass_credentials: bool,
) -> (Vec<Option<String>>, Vec<Option<String>>) {
    let files = Server::start(|_| ok(chart("web", "1.0.0")));
    let target = format!("http://{}/web-1.0.0.tgz", files.host);
    let index = format!("apiVersion: v1\nentries: {{web: [{{version: 1.0.0, urls: ['{target}']}}]}}\n");
    let server = Server::start(move |request| -> Answer {
        match request.authorization.as_deref() {
            Some("Basic dXNlcjpwYXNz") => ok(index.clone()),
            _ => (401, Vec::new(), Vec::new()),
        }
    });
    let url = format!("http://{}", server.host);
    let mut table = AccessTable::default();
    table.insert(
        &url,
        Access {
            username: Some("user".into()),
            password: Some("pass".into()),
            pass_credentials_all: access_everywhere,
            ..Access::default()
        },
    );
    let folder = folder();
    let wanted = ChartRequest { pass_credentials, ..request(&url, "") };
    charts(&folder, table).fetch(&wanted).expect("the password is right");
    (server.authorizations("/index.yaml"), files.authorizations("/web-1.0.0.tgz"))
}

#[test]
fn credentials_stay_with_their_host_unless_told_otherwise() {
    let login = Some("Basic dXNlcjpwYXNz".to_owned());
    assert_eq!(split_repository(false, false), (vec![login.clone()], vec![None]));
    assert_eq!(split_repository(true, false), (vec![login.clone()], vec![login.clone()]));
    assert_eq!(split_repository(false, true), (vec![login.clone()], vec![login]));
}

#[test]
fn a_refused_password_is_told_without_showing_it() {
    let server = Server::start(|_| (401, Vec::new(), Vec::new()));
    let url = format!("http://user:hunter2@{}", server.host);
    let folder = folder();
    let error = charts(&folder, AccessTable::default()).fetch(&request(&url, "")).expect_err("is refused");
    assert!(matches!(error, SourceError::Denied { status: 401, .. }), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

/// The version of a chart that a host with such a certificate serves.
fn fetched_over_tls(config: Arc<rustls::ServerConfig>, access: Access) -> Result<String, SourceError> {
    let archive = chart("web", "1.1.0");
    let index = index(&sha256(&archive));
    let server = Server::start_tls(config, move |request| match request.path.as_str() {
        "/index.yaml" => ok(index.clone()),
        _ => ok(archive.clone()),
    });
    let url = format!("https://localhost:{}", server.host.rsplit(':').next().expect("has a port"));
    let mut table = AccessTable::default();
    table.insert(&url, access);
    charts(&folder(), table).fetch(&request(&url, "")).map(|chart| chart.version)
}

#[test]
fn certificates_are_checked_against_the_given_authority() {
    let (config, pem) = certified();
    let fetch = |access| fetched_over_tls(config.clone(), access);
    let error = fetch(Access::default()).expect_err("nobody vouches for it");
    assert!(matches!(error, SourceError::Fetch { .. }), "{error}");
    let trusting = Access { ca_pem: Some(pem), ..Access::default() };
    assert_eq!(fetch(trusting).expect("is vouched for"), "1.1.0");
    let careless = Access { insecure_skip_verify: true, ..Access::default() };
    assert_eq!(fetch(careless).expect("anything goes"), "1.1.0");
}

/// What `openssl req -x509` makes says that it is an authority; people declare it for the host that shows it.
#[test]
fn a_host_may_show_the_authority_that_is_declared_for_it() {
    let authority = |params: &mut rcgen::CertificateParams| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    };
    let expired = |params: &mut rcgen::CertificateParams| {
        authority(params);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    };
    let of_another = |params: &mut rcgen::CertificateParams| {
        authority(params);
        params.subject_alt_names = vec![rcgen::SanType::DnsName("other".try_into().expect("is a name"))];
    };
    let fetch = |(config, pem): (Arc<rustls::ServerConfig>, String), declared: Option<String>| {
        let access = Access { ca_pem: Some(declared.unwrap_or(pem)), ..Access::default() };
        fetched_over_tls(config, access).map_err(|error| error.to_string())
    };
    assert_eq!(fetch(certified_by(authority), None).as_deref(), Ok("1.1.0"));
    let foreign = fetch(certified_by(authority), Some(certified_by(authority).1)).expect_err("is another");
    assert!(foreign.contains("CaUsedAsEndEntity"), "{foreign}");
    let old = fetch(certified_by(expired), None).expect_err("has expired");
    assert!(old.contains("Expired") || old.contains("expired"), "{old}");
    let misnamed = fetch(certified_by(of_another), None).expect_err("is of another host");
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
}

#[test]
fn a_kustomization_gets_the_files_of_a_chart() {
    let server = repository();
    let url = format!("http://{}/charts", server.host);
    let folder = folder();
    let fetcher = Fetcher::new(folder.path(), Duration::from_secs(60), false, |_| None);
    for repository in [&url, &format!("{url}/")] {
        let tree = RemoteLoader::chart(&fetcher, repository, "web", "~1.0").expect("is served");
        let text = tree.read("Chart.yaml").expect("is at the root");
        assert!(String::from_utf8_lossy(&text).contains("1.0.0"));
    }
    let error = RemoteLoader::chart(&fetcher, &url, "web", "9.9.9").err().expect("there is no such version");
    assert!(error.to_string().contains("9.9.9"), "{error}");
}
