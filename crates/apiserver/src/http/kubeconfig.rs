//! The file with which kubectl finds the server.

use std::{io, net::SocketAddr, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use tiphys_value::json;

/// Writes a kubeconfig with the server's address, authority and token: readable by its owner only,
/// and complete or not there at all.
pub fn write_kubeconfig(path: &Path, address: SocketAddr, ca_pem: &str, token: &str) -> io::Result<()> {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "tiphys", "preferences": {},
        "clusters": [{"name": "tiphys", "cluster": {
            "server": format!("https://{address}"), "certificate-authority-data": STANDARD.encode(ca_pem),
        }}],
        "users": [{"name": "tiphys", "user": {"token": token}}],
        "contexts": [{"name": "tiphys", "context": {"cluster": "tiphys", "user": "tiphys", "namespace": "default"}}],
    });
    let text = serde_json::to_string_pretty(&config).map_err(io::Error::other)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    write_private(&temporary, text.as_bytes())?;
    std::fs::rename(&temporary, path)
}

#[cfg(unix)]
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(not(unix))]
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/kubeconfig");
        write_kubeconfig(&path, ([127, 0, 0, 1], 1).into(), "pem", "secret").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("https://127.0.0.1:1"), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
