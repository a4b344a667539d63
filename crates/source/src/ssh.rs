//! Keys and known hosts for `ssh`, which Git's protocol runs over. They are written to files that only we can
//! read, because `ssh` takes them from nowhere else.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::Access;

/// The command that Git is to reach hosts with, if an access says anything of it.
pub(crate) fn command(access: &Access, folder: &Path) -> Result<Option<String>, String> {
    let Access { ssh_private_key, known_hosts, insecure_ignore_host_key, .. } = access;
    if ssh_private_key.is_none() && known_hosts.is_none() && !insecure_ignore_host_key {
        return Ok(None);
    }
    let keep = |what: &str, text: &str| {
        let path = write(folder, text).map_err(|error| format!("{what} cannot be written: {error}"))?;
        quoted(&path).ok_or_else(|| format!("{what} lies at a path that cannot be handed on"))
    };
    let mut command = String::from("ssh -o BatchMode=yes");
    if let Some(key) = ssh_private_key {
        let key = if key.ends_with('\n') { key.clone() } else { format!("{key}\n") };
        command.push_str(&format!(" -o IdentitiesOnly=yes -i {}", keep("the private key", &key)?));
    }
    match (insecure_ignore_host_key, known_hosts) {
        (true, _) => command.push_str(" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"),
        (false, Some(hosts)) => {
            let file = keep("known_hosts", hosts)?;
            command.push_str(&format!(" -o StrictHostKeyChecking=yes -o UserKnownHostsFile={file}"));
        }
        (false, None) => {}
    }
    Ok(Some(command))
}

fn quoted(path: &Path) -> Option<String> {
    path.to_str().filter(|text| !text.contains('\'')).map(|text| format!("'{text}'"))
}

/// A file of a name that tells its content, so that two repositories do not write over each other.
fn write(folder: &Path, text: &str) -> io::Result<PathBuf> {
    let name: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(name);
    if path.is_file() {
        return Ok(path);
    }
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.persist(&path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_for_our_eyes_and_hosts_are_held_against_what_is_known() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let access = Access {
            ssh_private_key: Some("key".into()),
            known_hosts: Some("git.example.com ssh-ed25519 AAAA\n".into()),
            ..Access::default()
        };
        let text = command(&access, folder.path()).expect("written").expect("said");
        assert!(text.contains("StrictHostKeyChecking=yes") && !text.contains("AAAA"), "{text}");
        let files: Vec<_> = fs::read_dir(folder.path()).expect("readable").flatten().collect();
        assert_eq!(files.len(), 2);
        #[cfg(unix)]
        for file in &files {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(file.metadata().expect("there").permissions().mode() & 0o077, 0);
        }
        assert_eq!(command(&Access::default(), folder.path()), Ok(None));
        let any = Access { insecure_ignore_host_key: true, ..access };
        assert!(command(&any, folder.path()).expect("written").is_some_and(|text| text.contains("=no")));
    }
}
