//! What a kubeconfig that nobody named may hold, and which files are never written over.

use std::{fs, io::ErrorKind, net::IpAddr, path::Path};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::exit::WrongUse;

/// What a cluster of our own needs. Anything else leads to a program, to another file or through another
/// machine.
const CLUSTER_FIELDS: [&str; 2] = ["server", "certificate-authority-data"];
const USER_FIELDS: [&str; 1] = ["token"];

/// Refuses a kubeconfig that was found, and not named, unless all it can do is speak to an address of this
/// machine.
///
/// # Errors
/// The reason.
pub(super) fn refuse_unsafe(file: &Path, server: &str) -> anyhow::Result<()> {
    let config = read(file)?;
    let refused = |reason: String| {
        anyhow::Error::from(WrongUse(format!(
            "{} is not used: {reason}; name a kubeconfig with --kubeconfig",
            file.display()
        )))
    };
    for (list, key, allowed) in
        [("clusters", "cluster", &CLUSTER_FIELDS[..]), ("users", "user", &USER_FIELDS[..])]
    {
        for entry in config[list].as_array().into_iter().flatten() {
            let fields = entry[key].as_object().into_iter().flatten();
            if let Some((field, _)) = fields.into_iter().find(|(field, _)| !allowed.contains(&field.as_str()))
            {
                return Err(refused(format!("a {key} in it has {field:?}, which Tiphys never writes")));
            }
        }
    }
    let servers = config["clusters"].as_array().into_iter().flatten();
    for address in servers.map(|entry| entry["cluster"]["server"].as_str().unwrap_or_default()) {
        if address.trim_end_matches('/') != server || !is_of_this_machine(address) {
            return Err(refused(format!("its server {address:?} is not the cluster that was started here")));
        }
    }
    Ok(())
}

/// Whether an address is one that only this machine answers.
fn is_of_this_machine(server: &str) -> bool {
    let Ok(uri) = server.parse::<http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    // The unspecified address is where a cluster listens for all; whoever connects to it reaches this
    // machine.
    host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

/// Refuses to write over a file that holds something else than the kubeconfig of an embedded cluster, and
/// takes an old one of those away: nobody shall take it for that of the next cluster.
///
/// # Errors
/// It holds something else, or cannot be read.
pub(super) fn refuse_foreign(file: &Path) -> anyhow::Result<()> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.with_context(|| format!("cannot read {}", file.display()))?,
    };
    if text.trim().is_empty() {
        return Ok(());
    }
    let is_ours = tiphys_yaml::from_yaml(&text).is_ok_and(|config| {
        config["current-context"] == "tiphys"
            && config["clusters"].as_array().is_some_and(|all| all.len() == 1)
    });
    if !is_ours {
        return Err(WrongUse(format!(
            "{} holds something else than an embedded cluster's kubeconfig; name another file with --kubeconfig",
            file.display()
        ))
        .into());
    }
    fs::remove_file(file).with_context(|| format!("cannot remove the old {}", file.display()))
}

/// The server of a kubeconfig of an embedded cluster.
pub(super) fn server(file: &Path) -> Option<String> {
    let config = read(file).ok()?;
    let server = config.pointer("/clusters/0/cluster/server")?.as_str()?;
    Some(server.trim_end_matches('/').to_owned())
}

fn read(file: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    match tiphys_yaml::from_yaml(&text) {
        Ok(config) => Ok(config),
        Err(error) => bail!("{} is no kubeconfig: {error}", file.display()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const SERVER: &str = "https://127.0.0.1:6443";

    fn verdict(cluster: &str, user: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        let text = format!(
            "clusters: [{{name: a, cluster: {{server: '{SERVER}'{cluster}}}}}]\nusers: [{{name: a, user: {{{user}}}}}]\n"
        );
        fs::write(&file, text).unwrap();
        refuse_unsafe(&file, SERVER).map_err(|error| error.to_string())
    }

    #[test]
    fn a_found_kubeconfig_holds_a_token_and_nothing_that_leads_elsewhere() {
        verdict("", "token: a").unwrap();
        verdict(", certificate-authority-data: aGk=", "token: a").unwrap();
        for (cluster, user, field) in [
            ("", "token: a, exec: {command: touch}", "exec"),
            ("", "auth-provider: {name: gcp}", "auth-provider"),
            ("", "tokenFile: /etc/passwd", "tokenFile"),
            ("", "client-key: /root/.ssh/id_rsa", "client-key"),
            ("", "username: a", "username"),
            (", proxy-url: 'http://10.0.0.1'", "token: a", "proxy-url"),
            (", certificate-authority: /etc/passwd", "token: a", "certificate-authority"),
            (", insecure-skip-tls-verify: true", "token: a", "insecure-skip-tls-verify"),
        ] {
            let error = verdict(cluster, user).unwrap_err();
            assert!(error.contains(&format!("{field:?}")), "{field}: {error}");
        }
    }

    #[test]
    fn only_addresses_of_this_machine_count() {
        for (server, expected) in [
            ("https://127.0.0.1:1", true),
            ("https://[::1]:6443", true),
            ("https://0.0.0.0:6443/", true),
            ("https://localhost:6443", false),
            ("https://10.0.0.7:6443", false),
            ("https://127.0.0.1.example.com", false),
            ("https://user@10.0.0.1#127.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_of_this_machine(server), expected, "{server}");
        }
    }
}
