//! Keys and known hosts for `ssh`, which Git's protocol runs over, and what it says. Keys are written to
//! files that only we can read, because `ssh` takes them from nowhere else.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{Access, SourceError};

/// So much of what `ssh` says is read.
const SAID_LIMIT: u64 = 16 * 1024;
/// So many of its last lines are told.
const SAID_LINES: usize = 3;

/// How lines begin that say nothing of why a call failed.
const ORNAMENT: [&str; 4] = ["Warning:", "Pseudo-terminal", "*", "@"];

/// One call of `ssh`, and what it said: Git's library hands on only some of that, and the reason is in the
/// rest.
pub(crate) struct Call {
    command: String,
    said: tempfile::NamedTempFile,
}

impl Call {
    /// The call of a program for an access; keys are kept in a folder.
    pub(crate) fn prepare(program: &str, access: &Access, folder: &Path) -> Result<Self, String> {
        let cannot = |error: io::Error| format!("what ssh says cannot be kept: {error}");
        fs::create_dir_all(folder).map_err(cannot)?;
        let said = tempfile::NamedTempFile::new_in(folder).map_err(cannot)?;
        let options = options(access, folder)?.unwrap_or_default();
        let path = quote_path(said.path()).ok_or("what ssh says lies at a path that cannot be handed on")?;
        Ok(Self { command: format!("{program}{options} 2>>{path}"), said })
    }

    /// The command that Git is to reach the host with.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// Why a fetch failed, if `ssh` or the host behind it said so.
    pub(crate) fn fault(&self, url: &str) -> Option<SourceError> {
        let mut text = Vec::new();
        self.said.reopen().ok()?.take(SAID_LIMIT).read_to_end(&mut text).ok()?;
        let mut reason = last_lines(&String::from_utf8_lossy(&text))?;
        if reason.contains("Permission denied (") {
            let reason = "the host takes none of the keys that are known for it";
            return Some(SourceError::Login { url: url.to_owned(), reason });
        }
        if reason.contains("Host key verification failed") {
            reason.push_str(
                "; the key of the host has to be in known_hosts (of an engine: the ConfigMap argocd-ssh-known-hosts-cm)",
            );
        }
        Some(SourceError::Fetch { url: url.to_owned(), reason: format!("ssh says: {reason}") })
    }
}

/// The last lines that say something: warnings and lines of decoration do not.
fn last_lines(text: &str) -> Option<String> {
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| line.strip_prefix("remote:").unwrap_or(line))
        .map(|line| line.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_owned())
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .filter(|line| !ORNAMENT.iter().any(|start| line.starts_with(start)))
        .collect();
    lines.drain(..lines.len().saturating_sub(SAID_LINES));
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// What an access says of how `ssh` is called.
fn options(access: &Access, folder: &Path) -> Result<Option<String>, String> {
    let Access { ssh_private_key, known_hosts, insecure_ignore_host_key, .. } = access;
    if ssh_private_key.is_none() && known_hosts.is_none() && !insecure_ignore_host_key {
        return Ok(None);
    }
    let keep = |what: &str, text: &str| {
        let path = write(folder, text).map_err(|error| format!("{what} cannot be written: {error}"))?;
        quote_path(&path).ok_or_else(|| format!("{what} lies at a path that cannot be handed on"))
    };
    let mut options = String::from(" -o BatchMode=yes");
    if let Some(key) = ssh_private_key {
        let key = if key.ends_with('\n') { key.clone() } else { format!("{key}\n") };
        options.push_str(&format!(" -o IdentitiesOnly=yes -i {}", keep("the private key", &key)?));
    }
    match (insecure_ignore_host_key, known_hosts) {
        (true, _) => options.push_str(" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"),
        (false, Some(hosts)) => {
            let file = keep("known_hosts", hosts)?;
            options.push_str(&format!(" -o StrictHostKeyChecking=yes -o UserKnownHostsFile={file}"));
        }
        (false, None) => {}
    }
    Ok(Some(options))
}

fn quote_path(path: &Path) -> Option<String> {
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
        let text = options(&access, folder.path()).expect("written").expect("said");
        assert!(text.contains("StrictHostKeyChecking=yes") && !text.contains("AAAA"), "{text}");
        let files: Vec<_> = fs::read_dir(folder.path()).expect("readable").flatten().collect();
        assert_eq!(files.len(), 2);
        #[cfg(unix)]
        for file in &files {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(file.metadata().expect("there").permissions().mode() & 0o077, 0);
        }
        assert_eq!(options(&Access::default(), folder.path()), Ok(None));
        let any = Access { insecure_ignore_host_key: true, ..access };
        assert!(options(&any, folder.path()).expect("written").is_some_and(|text| text.contains("=no")));
    }

    #[test]
    fn of_what_is_said_the_last_lines_count_that_say_something() {
        let changed = "@@@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@@@@@\nIT IS POSSIBLE\n\
            Host key for git.example.com has changed.\r\nHost key verification failed.\r\n";
        let expected =
            "IT IS POSSIBLE Host key for git.example.com has changed. Host key verification failed.";
        assert_eq!(last_lines(changed).as_deref(), Some(expected));
        let hosted = "Warning: Permanently added 'git.example.com'\nremote: \nremote: =====\nremote: ERROR: no such project\n";
        assert_eq!(last_lines(hosted).as_deref(), Some("ERROR: no such project"));
        let asked = "Warning: Permanently added 'git.example.com'\nPseudo-terminal will not be allocated\n";
        assert_eq!(last_lines(asked), None);
    }
}
