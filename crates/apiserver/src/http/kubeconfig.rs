//! The file with which kubectl finds the server.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    path::Path,
};

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
    // Of an unpredictable name, created exclusively and for the owner alone: nothing that stands in the
    // folder already decides where the token goes.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
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
