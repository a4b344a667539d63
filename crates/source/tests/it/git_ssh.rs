//! Git hosts that are reached by ssh: a program stands in for `ssh` that looks at what it is handed, as
//! `sshd` does, and then runs what is asked for on this machine.
#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;
use tiphys_source::{Access, AccessTable, GitCache, SourceError};
use tiphys_vfs::FileTree as _;

const KEY: &str = "the key of the repository";
const HOSTS: &str = "git.example.com ssh-ed25519 AAAA";

/// Takes one key, from those who know the host's.
const STAND_IN: &str = r#"#!/bin/sh
known= key=
while [ $# -gt 0 ]; do
  case "$1" in
    -G) exit 0;;
    -i) key=$(cat "$2"); shift 2;;
    -o) case "$2" in UserKnownHostsFile=*) known=$(cat "${2#*=}");; esac; shift 2;;
    -p*) echo "port ${1#-p}" >> "$0.log"; shift;;
    -*) shift;;
    *) break;;
  esac
done
echo "host $1" >> "$0.log"
shift
if [ "$known" != "git.example.com ssh-ed25519 AAAA" ]; then echo 'Host key verification failed.' >&2; exit 255; fi
if [ "$key" != "the key of the repository" ]; then echo 'git@git.example.com: Permission denied (publickey).' >&2; exit 255; fi
case "$*" in *gone*) echo 'ERROR: Repository not found.' >&2; exit 1;; esac
exec sh -c "$*"
"#;

struct SshFixture {
    folder: TempDir,
}

impl SshFixture {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder can be made") };
        fs::write(place.ssh(), STAND_IN).expect("is writable");
        fs::set_permissions(place.ssh(), fs::Permissions::from_mode(0o755)).expect("is ours");
        let repository = place.folder.path().join("shop");
        fs::create_dir(&repository).expect("a folder can be made");
        fs::write(repository.join("a.txt"), "one").expect("is writable");
        git(&repository, &["init", "-q", "-b", "main"]);
        git(&repository, &["add", "-A"]);
        git(&repository, &["commit", "-q", "-m", "one"]);
        place
    }

    fn ssh(&self) -> PathBuf {
        self.folder.path().join("ssh")
    }

    fn url(&self, repository: &str) -> String {
        format!("ssh://git@git.example.com:2222{}/{repository}", self.folder.path().display())
    }

    fn text(&self, url: &str, access: Access) -> Result<String, SourceError> {
        let mut table = AccessTable::default();
        table.insert("ssh://git@git.example.com:2222", access);
        let cache = GitCache::new(self.folder.path().join("cache"), Duration::ZERO)
            .with_access(table)
            .with_ssh(self.ssh().display().to_string());
        let checkout = cache.checkout(url, "main")?;
        Ok(String::from_utf8_lossy(&checkout.tree.read("a.txt").expect("is there")).into_owned())
    }
}

fn git(folder: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(identity).args(args).current_dir(folder).output();
    let output = output.expect("git is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn access(key: &str, hosts: &str) -> Access {
    Access { ssh_private_key: Some(key.to_owned()), known_hosts: Some(hosts.to_owned()), ..Access::default() }
}

#[test]
fn a_repository_is_fetched_with_the_key_and_the_hosts_that_are_declared() {
    let place = SshFixture::new();
    assert_eq!(place.text(&place.url("shop"), access(KEY, HOSTS)).expect("is served"), "one");
    let log = fs::read_to_string(place.folder.path().join("ssh.log")).expect("it was called");
    assert!(log.contains("port 2222\nhost git@git.example.com\n"), "{log}");
}

#[test]
fn what_ssh_says_is_the_reason() {
    let place = SshFixture::new();
    let error = place.text(&place.url("shop"), access(KEY, "other hosts")).expect_err("is unknown");
    assert!(error.to_string().contains("ssh says: Host key verification failed.; the key of"), "{error}");
    let error = place.text(&place.url("shop"), access("another", HOSTS)).expect_err("is refused");
    assert!(matches!(error, SourceError::Login { .. }), "{error}");
    let error = place.text(&place.url("gone"), access(KEY, HOSTS)).expect_err("is gone");
    assert!(error.to_string().ends_with("ssh says: ERROR: Repository not found."), "{error}");
}
