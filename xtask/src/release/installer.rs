//! `packaging/install.sh`, run against the files of a release that a server of this machine has.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

use super::{
    SUMS,
    archive::{Entries, gzip, sha256},
    archive_name, checksum_lines,
    loopback::{serve, without_proxy},
};
use crate::oracles::workspace_root;

/// A release whose program is a shell script, and where to install it.
struct Release {
    folder: tempfile::TempDir,
    address: String,
}

impl Release {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        fs::create_dir(&files).unwrap();
        for target in targets() {
            let mut entries = Entries::default();
            let program = "#!/bin/sh\necho \"tiphys 0.0.0 $*\"\n";
            entries.add_file(&format!("{}/tiphys", archive_name(&target)), 0o755, program);
            let file = files.join(format!("{}.tar.gz", archive_name(&target)));
            fs::write(file, gzip(&entries.to_tar(0).unwrap()).unwrap()).unwrap();
        }
        let served = files.clone();
        let address =
            serve(move |request| match fs::read(served.join(request.path.trim_start_matches('/'))) {
                Ok(content) => (200, content),
                Err(_) => (404, Vec::new()),
            });
        let release = Self { folder, address };
        release.sum_up();
        release
    }

    fn sum_up(&self) {
        fs::write(self.files().join(SUMS), checksum_lines(&self.files()).unwrap()).unwrap();
    }

    fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("bin dir/tiphys")
    }

    /// Runs the installer; returns whether it went well, and what it said.
    fn install(&self, more: &[&str]) -> (bool, String) {
        let script = workspace_root().join("packaging/install.sh");
        let mut command = Command::new("sh");
        command.arg(script).args(["--base-url", &self.address, "--dir"]);
        command.arg(self.program().parent().unwrap()).args(more);
        let output = without_proxy(&mut command).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }
}

fn targets() -> Vec<String> {
    let machines = ["x86_64", "aarch64"];
    let systems = ["unknown-linux-musl", "apple-darwin"];
    machines
        .iter()
        .flat_map(|machine| systems.iter().map(move |system| format!("{machine}-{system}")))
        .collect()
}

#[test]
fn a_release_is_installed_and_replaced() {
    let release = Release::new();
    for _ in 0..2 {
        let (is_ok, said) = release.install(&[]);
        assert!(is_ok && said.contains("tiphys 0.0.0 version is in"), "{said}");
    }
    let (is_ok, said) = release.install(&["--version", super::VERSION]);
    assert!(is_ok, "{said}");
    assert_eq!(fs::metadata(release.program()).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_dir(release.program().parent().unwrap()).unwrap().count(), 1, "nothing else stays");
}

#[test]
fn an_archive_with_another_checksum_is_refused() {
    let release = Release::new();
    for target in targets() {
        let file = release.files().join(format!("{}.tar.gz", archive_name(&target)));
        fs::write(&file, [fs::read(&file).unwrap(), vec![0]].concat()).unwrap();
    }
    let (is_ok, said) = release.install(&[]);
    assert!(!is_ok && said.contains("Nothing was installed"), "{said}");
    assert!(!release.program().exists());
}

#[test]
fn another_list_of_checksums_is_refused() {
    let release = Release::new();
    let (is_ok, said) = release.install(&["--sums-sha256", &"0".repeat(64)]);
    assert!(!is_ok && said.contains("SHA256SUMS") && said.contains("Nothing was installed"), "{said}");
    assert!(!release.program().exists());
    let sums = sha256(&fs::read(release.files().join(SUMS)).unwrap());
    let (is_ok, said) = release.install(&["--sums-sha256", &sums]);
    assert!(is_ok, "{said}");
}

#[test]
fn what_a_release_lacks_is_told() {
    let release = Release::new();
    let (is_ok, said) = release.install(&["--version", "9.9.9"]);
    assert!(!is_ok && said.contains("no archive for") && said.contains("9.9.9"), "{said}");
    fs::remove_file(release.files().join(SUMS)).unwrap();
    let (is_ok, said) = release.install(&[]);
    assert!(!is_ok && said.contains("cannot fetch") && said.contains(SUMS), "{said}");
    let (is_ok, said) = release.install(&["--base-url", "http://example.com/tiphys"]);
    assert!(!is_ok && said.contains("not reached by https"), "{said}");
    let (is_ok, said) = release.install(&["--versoin", "1"]);
    assert!(!is_ok && said.contains("unknown argument --versoin"), "{said}");
    assert!(!release.program().exists());
}
