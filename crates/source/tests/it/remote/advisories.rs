//! Weaknesses that were published for Argo CD, each as a test that it is not here: what comes from outside
//! while sources are fetched. The list is in `docs/security.md`.

use std::{io::Write, time::Duration};

use tiphys_source::{AccessTable, ChartRequest, Charts, SourceError};

use super::support::{Answer, Server, not_found, ok, sha256};

const PASSWORD: &str = "hunter2-of-the-repository";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder can be made")
}

fn charts(folder: &tempfile::TempDir) -> Charts {
    Charts::new(folder.path().join("charts"), AccessTable::default(), Duration::ZERO, false)
}

fn chart_request(repository: &str, name: &str) -> ChartRequest {
    ChartRequest {
        repository: repository.to_owned(),
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        pass_credentials: false,
    }
}

/// The error of a chart that a server offers under the given content.
fn chart_error(content: Vec<u8>) -> SourceError {
    let digest = sha256(&content);
    let index = format!(
        "apiVersion: v1\nentries:\n  web:\n  - {{name: web, version: 1.0.0, digest: {digest}, urls: [web-1.0.0.tgz]}}\n"
    );
    let server = Server::start(move |request| match request.path.as_str() {
        "/index.yaml" => ok(index.clone()),
        "/web-1.0.0.tgz" => ok(content.clone()),
        _ => not_found(),
    });
    let url = format!("http://{}", server.host);
    charts(&folder()).checkout(&chart_request(&url, "web")).map(drop).expect_err("it is refused")
}

/// A gzipped tar archive of one entry, whose name and size are taken as they are.
fn archive(name: &str, size: u64, kind: tar::EntryType, link: &str) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().expect("is GNU").name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_gnu_mut().expect("is GNU").linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_size(size);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_cksum();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(header.as_bytes()).expect("in memory");
    let zeros = vec![0_u8; 1 << 20];
    let mut left = size.next_multiple_of(512) + 1024;
    while left > 0 {
        let part = left.min(1 << 20);
        gzip.write_all(&zeros[..usize::try_from(part).expect("is small")]).expect("in memory");
        left -= part;
    }
    gzip.finish().expect("in memory")
}

#[test]
fn ghsa_6w87_credentials_of_a_registry_are_in_no_error() {
    let denied = || -> Answer { (401, vec![("WWW-Authenticate", "Basic realm=\"x\"".into())], Vec::new()) };
    let server = Server::start(move |_| denied());
    let url = format!("oci://me:{PASSWORD}@{}/web", server.host);
    let error = charts(&folder()).checkout(&chart_request(&url, "")).map(drop).expect_err("access is denied");
    assert!(!error.to_string().contains(PASSWORD), "{error}");
}

#[test]
fn cve_2023_40026_a_chart_cannot_place_files_outside_of_itself() {
    for name in ["../../outside.yaml", "/etc/outside.yaml", "web/../../outside.yaml"] {
        let error = chart_error(archive(name, 10, tar::EntryType::Regular, ""));
        assert!(matches!(error, SourceError::Archive { .. }), "{name}: {error}");
    }
}

#[test]
fn cve_2022_24904_an_archive_cannot_link_to_what_is_outside() {
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link] {
        let error = chart_error(archive("web/values.yaml", 0, kind, "/etc/passwd"));
        assert!(error.to_string().contains("refused"), "{error}");
    }
}

#[test]
fn cve_2023_40584_an_archive_cannot_unpack_without_end() {
    let bomb = archive("web/values.yaml", 200 << 20, tar::EntryType::Regular, "");
    assert!(bomb.len() < 4 << 20, "it is small as it comes");
    let error = chart_error(bomb);
    assert!(error.to_string().contains("larger than"), "{error}");
}

#[test]
fn cve_2024_29893_answers_of_a_registry_are_read_up_to_a_limit() {
    let endless = vec![b' '; 8 << 20];
    let server = Server::start(move |_| ok(endless.clone()));
    let url = format!("oci://{}/web", server.host);
    charts(&folder()).checkout(&chart_request(&url, "")).map(drop).expect_err("it is refused");
    // Not an OCI registry either: the index of a repository.
    let index = "x".repeat(129 << 20);
    let server = Server::start(move |_| ok(index.clone()));
    let url = format!("http://{}", server.host);
    let error = charts(&folder()).checkout(&chart_request(&url, "web")).map(drop).expect_err("it is refused");
    assert!(error.to_string().contains("larger") || error.to_string().contains("limit"), "{error}");
}
