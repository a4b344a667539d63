//! OCI registries.

use std::time::Duration;

use tiphys_identity::{Azure, AzureLogin, Identity};
use tiphys_source::{Access, AccessTable, ChartRequest, Charts, OciReference, Registry, SourceError};
use tiphys_vfs::FileTree;

use super::support::{Answer, Server, chart, not_found, ok, sha256};

const LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

fn manifest(layer: &[u8], media_type: &str) -> String {
    format!(
        r#"{{"schemaVersion":2,"layers":[{{"mediaType":"{media_type}","digest":"sha256:{}","size":{}}}],"annotations":{{"a":"b"}}}}"#,
        sha256(layer),
        layer.len()
    )
}

/// A registry with `team/web` in three versions, which wants a token.
fn registry() -> Server {
    let layer = chart("web", "1.1.0");
    let manifest = manifest(&layer, LAYER);
    let blob = format!("/v2/team/web/blobs/sha256:{}", sha256(&layer));
    let by_digest = format!("/v2/team/web/manifests/sha256:{}", sha256(manifest.as_bytes()));
    let host: std::sync::Arc<std::sync::OnceLock<String>> = std::sync::Arc::default();
    let own = host.clone();
    let server = Server::start(move |request| -> Answer {
        let path = request.path.as_str();
        if path.starts_with("/token?") {
            let scoped =
                path.contains("scope=repository%3Ateam%2Fweb%3Apull") && path.contains("service=tests");
            let known = request.authorization.as_deref() == Some("Basic dXNlcjpwYXNz");
            return if scoped && known { ok(r#"{"token":"t0k"}"#) } else { (401, Vec::new(), Vec::new()) };
        }
        if request.authorization.as_deref() != Some("Bearer t0k") {
            let host = own.get().cloned().unwrap_or_default();
            let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"tests\"");
            return (401, vec![("WWW-Authenticate", challenge)], Vec::new());
        }
        match path {
            "/v2/team/web/tags/list" => {
                let next = "</v2/team/web/tags/list?last=1.0.0>; rel=\"next\"".to_owned();
                (200, vec![("Link", next)], br#"{"tags":["1.0.0","latest"]}"#.to_vec())
            }
            "/v2/team/web/tags/list?last=1.0.0" => ok(r#"{"tags":["1.1.0","2.0.0-rc.1","1.0.5_build.1"]}"#),
            "/v2/team/web/manifests/1.1.0" | "/v2/team/web/manifests/1.0.5_build.1" => ok(manifest.clone()),
            _ if path == by_digest => ok(manifest.clone()),
            _ if path == blob => ok(layer.clone()),
            _ => not_found(),
        }
    });
    host.set(server.host.clone()).expect("is set once");
    server
}

fn access(server: &Server) -> AccessTable {
    let mut table = AccessTable::default();
    let access = Access {
        username: Some("user".into()),
        password: Some("pass".into()),
        plain_http: true,
        ..Access::default()
    };
    table.insert(&format!("oci://{}", server.host), access);
    table
}

fn request(server: &Server, version: &str) -> ChartRequest {
    let repository = format!("oci://{}/team", server.host);
    ChartRequest { repository, name: "web".to_owned(), version: version.to_owned(), pass_credentials: false }
}

#[test]
fn a_constraint_is_resolved_over_all_pages_of_tags() {
    let server = registry();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let charts = Charts::new(folder.path(), access(&server), Duration::ZERO, false);
    let chart = charts.fetch(&request(&server, "^1.0.0")).expect("is served");
    assert_eq!(chart.version, "1.1.0");
    assert!(chart.tree().expect("is a chart").is_file("Chart.yaml"));
    let below_the_host = ChartRequest {
        repository: format!("oci://{}", server.host),
        name: "team/web".to_owned(),
        ..request(&server, "1.1.0")
    };
    assert_eq!(charts.fetch(&below_the_host).expect("is served").version, "1.1.0");
    assert_eq!(charts.fetch(&request(&server, "1.0.5+build.1")).expect("is served").version, "1.0.5+build.1");
    let error = charts.fetch(&request(&server, "v1.1.0")).expect_err("no tag is called so");
    assert!(matches!(error, SourceError::UnknownChart { .. }), "{error}");
    let blobs = server.paths().iter().filter(|path| path.contains("/blobs/")).count();
    assert_eq!(blobs, 1, "the layer was kept");
    let error = charts.fetch(&request(&server, "^3")).expect_err("has no 3");
    assert!(
        error.to_string().contains("its newest versions are 2.0.0-rc.1, 1.1.0, 1.0.5+build.1"),
        "{error}"
    );

    let offline = Charts::new(folder.path(), AccessTable::default(), Duration::ZERO, true);
    let before = server.paths().len();
    assert_eq!(offline.fetch(&request(&server, "^1.0.0")).expect("was fetched").version, "1.1.0");
    assert!(matches!(offline.fetch(&request(&server, "1.0.0")), Err(SourceError::Offline { .. })));
    assert_eq!(server.paths().len(), before);
}

#[test]
fn artifacts_are_pulled_by_tag_and_by_digest() {
    let server = registry();
    let client = Registry::new(access(&server));
    let mut reference =
        OciReference::parse(&format!("oci://{}/team/web:1.1.0", server.host)).expect("is one");
    let digest = client.digest(&reference).expect("is there");
    reference.tag = digest.clone();
    let artifact = client.pull(&reference, &[LAYER], &|_| None).expect("is served");
    assert_eq!((artifact.manifest_digest.as_str(), artifact.media_type.as_str()), (digest.as_str(), LAYER));
    assert_eq!(artifact.annotations["a"], "b");
    let error = client.pull(&reference, &["application/other"], &|_| None).expect_err("has no such layer");
    assert!(error.to_string().contains("has 0 layers of type application/other instead of one"), "{error}");
    reference.tag = "9.9.9".to_owned();
    let error = client.digest(&reference).expect_err("is not there");
    assert!(matches!(error, SourceError::UnknownChart { .. }), "{error}");
}

#[test]
fn wrong_credentials_are_denied() {
    let server = registry();
    let mut table = AccessTable::default();
    let access = Access { username: Some("user".into()), plain_http: true, ..Access::default() };
    table.insert(&format!("oci://{}", server.host), access);
    let reference = OciReference::parse(&format!("oci://{}/team/web:1.1.0", server.host)).expect("is one");
    let error = Registry::new(table).digest(&reference).expect_err("the password is missing");
    assert!(matches!(error, SourceError::Denied { status: 401, .. }), "{error}");
}

#[test]
fn a_registry_of_azure_hands_out_a_password_for_a_token() {
    let layer = chart("web", "1.1.0");
    let promised = manifest(&layer, LAYER);
    let own: std::sync::Arc<std::sync::OnceLock<String>> = std::sync::Arc::default();
    let host = own.clone();
    let server = Server::start(move |request| -> Answer {
        let authorization = request.authorization.as_deref();
        match request.path.as_str() {
            "/acme/oauth2/v2.0/token" => ok(r#"{"access_token":"of-azure","expires_in":3600}"#),
            "/oauth2/exchange" => ok(r#"{"refresh_token":"password"}"#),
            path if path.starts_with("/oauth2/token?") => {
                let login = "Basic MDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwOnBhc3N3b3Jk";
                let is_known = authorization == Some(login);
                if is_known { ok(r#"{"access_token":"t0k"}"#) } else { (401, Vec::new(), Vec::new()) }
            }
            _ if authorization == Some("Bearer t0k") => ok(promised.clone()),
            path => {
                let realm = match path.contains("/fooled/") {
                    true => "evil.example.com",
                    false => host.get().expect("is set"),
                };
                let challenge = format!("Bearer realm=\"http://{realm}/oauth2/token\",service=\"tests\"");
                (401, vec![("WWW-Authenticate", challenge)], Vec::new())
            }
        }
    });
    own.set(server.host.clone()).expect("is set once");
    let azure = Azure {
        login: AzureLogin::Secret("s3cret".into()),
        tenant: "acme".into(),
        client: "tiphys".into(),
        authority: Some(format!("http://{}", server.host)),
        resource: "devops".into(),
    };
    let mut table = AccessTable::default();
    let access = Access { identity: Some(Identity::Azure(azure)), plain_http: true, ..Access::default() };
    table.insert(&format!("oci://{}", server.host), access);
    let digest = |path: &str| {
        let reference = OciReference::parse(&format!("oci://{}/{path}:1.1.0", server.host)).expect("is one");
        Registry::new(table.clone()).digest(&reference)
    };
    assert!(digest("team/web").expect("is let in").starts_with("sha256:"));
    let error = digest("fooled/web").expect_err("another host is sent nothing").to_string();
    assert!(error.contains("names another host for its tokens"), "{error}");
}

#[test]
fn a_layer_that_differs_from_its_digest_is_refused() {
    let promised = manifest(b"other bytes", LAYER);
    let server = Server::start(move |request| {
        if request.path.contains("/manifests/") { ok(promised.clone()) } else { ok(chart("web", "1.0.0")) }
    });
    let mut table = AccessTable::default();
    table.insert(&format!("oci://{}", server.host), Access { plain_http: true, ..Access::default() });
    let reference = OciReference::parse(&format!("oci://{}/web:1.0.0", server.host)).expect("is one");
    let error = Registry::new(table).pull(&reference, &[LAYER], &|_| None).expect_err("is tampered");
    assert!(matches!(error, SourceError::Digest { .. }), "{error}");
}

#[test]
fn applications_name_charts_and_artifacts() {
    let server = registry();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let charts = Charts::new(folder.path(), access(&server), Duration::ZERO, false);
    let wanted = |repository: &str, name: &str, version: &str| ChartRequest {
        repository: repository.to_owned(),
        name: name.to_owned(),
        version: version.to_owned(),
        pass_credentials: false,
    };
    let team = format!("{}/team", server.host);
    let chart = charts.checkout(&wanted(&team, "web", "1.x")).expect("is served");
    assert_eq!(chart.revision, "1.1.0");
    assert!(chart.tree.is_file("Chart.yaml"));
    let address = format!("oci://{}/team/web", server.host);
    let artifact = charts.checkout(&wanted(&address, "", "1.1.0")).expect("is served");
    assert!(artifact.revision.starts_with("sha256:") && artifact.tree.is_file("Chart.yaml"));
    let offline = Charts::new(folder.path(), AccessTable::default(), Duration::ZERO, true);
    let kept = offline.checkout(&wanted(&address, "", "1.1.0")).expect("was fetched");
    assert_eq!(kept.revision, artifact.revision);
    assert!(matches!(offline.checkout(&wanted(&address, "", "1.0.0")), Err(SourceError::Offline { .. })));
}
