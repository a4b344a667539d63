//! A layout is read back as a registry and a container runtime would.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::*;
use crate::{
    oracles::workspace_root,
    release::{
        archive::{Entries, gzip, sha256},
        executable::empty_elf,
    },
};

const AUTHORITIES: &[u8] = b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
const AMD64: u16 = 62;
const ARM64: u16 = 183;

struct Written {
    folder: tempfile::TempDir,
}

impl Written {
    fn new(programs: &[Vec<u8>]) -> Self {
        let written = Self { folder: tempfile::tempdir().unwrap() };
        layout(programs, AUTHORITIES, 0).unwrap().write(&written.path()).unwrap();
        written
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// The content that a descriptor names, whose digest and size have to be right.
    fn blob(&self, descriptor: &Value) -> Vec<u8> {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let content = fs::read(self.path().join("blobs/sha256").join(digest)).unwrap();
        assert_eq!(sha256(&content), digest);
        assert_eq!(descriptor["size"], content.len());
        content
    }

    fn json(&self, descriptor: &Value) -> Value {
        serde_json::from_slice(&self.blob(descriptor)).unwrap()
    }

    /// The descriptors of the manifests, by machine.
    fn manifests(&self) -> BTreeMap<String, Value> {
        let index: Value =
            serde_json::from_slice(&fs::read(self.path().join("index.json")).unwrap()).unwrap();
        let all = &index["manifests"][0];
        assert_eq!(all["annotations"]["org.opencontainers.image.ref.name"], VERSION);
        let all = self.json(all);
        let manifests = all["manifests"].as_array().unwrap().iter();
        manifests
            .map(|one| (one["platform"]["architecture"].as_str().unwrap().to_owned(), one.clone()))
            .collect()
    }
}

/// The type, permissions, owner and content of what a layer has, by path.
fn files(tar: &[u8]) -> BTreeMap<String, (tar::EntryType, u32, u64, Vec<u8>)> {
    let mut archive = tar::Archive::new(tar);
    let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let header = entry.header();
        let facts = (header.entry_type(), header.mode().unwrap(), header.uid().unwrap(), content);
        (entry.path().unwrap().display().to_string(), facts)
    };
    archive.entries().unwrap().map(read).collect()
}

fn unpacked(layer: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(layer).read_to_end(&mut content).unwrap();
    content
}

#[test]
fn every_blob_is_what_its_name_says() {
    let image = Written::new(&[empty_elf(AMD64, 1), empty_elf(ARM64, 1)]);
    let manifests = image.manifests();
    assert_eq!(manifests.keys().collect::<Vec<_>>(), ["amd64", "arm64"]);
    for (machine, descriptor) in manifests {
        let manifest = image.json(&descriptor);
        let config = image.json(&manifest["config"]);
        assert_eq!(config["architecture"], machine.as_str());
        let contents = manifest["layers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|layer| format!("sha256:{}", sha256(&unpacked(&image.blob(layer)))));
        let contents: Vec<Value> = contents.map(Value::from).collect();
        assert_eq!(config["rootfs"]["diff_ids"], Value::from(contents));
    }
    let layout: Value = serde_json::from_slice(&fs::read(image.path().join("oci-layout")).unwrap()).unwrap();
    assert_eq!(layout["imageLayoutVersion"], "1.0.0");
}

#[test]
fn it_runs_the_program_as_a_user_without_rights() {
    let program = empty_elf(AMD64, 1);
    let image = Written::new(std::slice::from_ref(&program));
    let manifest = image.json(&image.manifests()["amd64"]);
    let config = image.json(&manifest["config"]);
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/usr/bin/tiphys"]));
    let mut all = BTreeMap::new();
    for layer in manifest["layers"].as_array().unwrap() {
        all.extend(files(&unpacked(&image.blob(layer))));
    }
    for (path, (kind, mode, owner, _)) in &all {
        assert!(mode & 0o6000 == 0, "{path} gives rights of its owner: {mode:o}");
        assert!(mode & 0o002 == 0 || path == "tmp/", "{path} is written by everybody: {mode:o}");
        assert!(*owner == 0 || path == "home/nonroot/", "{path} belongs to {owner}");
        assert!(matches!(kind, tar::EntryType::Regular | tar::EntryType::Directory), "{path}: {kind:?}");
    }
    assert_eq!(all["tmp/"].1, 0o1777);
    assert_eq!((all["usr/bin/tiphys"].1, &all["usr/bin/tiphys"].3), (0o755, &program));
    assert_eq!(all["etc/ssl/certs/ca-certificates.crt"].3, AUTHORITIES);
    let users = String::from_utf8(all["etc/passwd"].3.clone()).unwrap();
    assert!(users.contains(":65532:65532:"), "{users}");
}

#[test]
fn the_same_programs_are_the_same_image() {
    let digest = |machine| layout(&[empty_elf(machine, 1)], AUTHORITIES, 0).unwrap().digest().to_owned();
    assert_eq!(digest(AMD64), digest(AMD64));
    assert_ne!(digest(AMD64), digest(ARM64));
}

#[test]
fn what_cannot_be_an_image_is_refused() {
    let refused = |programs: &[Vec<u8>], authorities: &[u8]| {
        layout(programs, authorities, 0).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused(&[empty_elf(AMD64, 3)], AUTHORITIES).contains("dynamically"));
    assert!(
        refused(&[empty_elf(AMD64, 1), empty_elf(AMD64, 1)], AUTHORITIES)
            .contains("two programs are for amd64")
    );
    assert!(refused(&[empty_elf(AMD64, 1)], b"").contains("no certificate"));
}

#[test]
fn an_archive_of_a_release_serves_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        file
    };
    let mut entries = Entries::default();
    entries.add_file("tiphys-1/tiphys", 0o755, empty_elf(ARM64, 1));
    let archive = write("a.tar.gz", &gzip(&entries.to_tar(0).unwrap()).unwrap());
    let made = |programs: Vec<PathBuf>, out: &str| {
        let args =
            Args { programs, out: folder.path().join(out), ca_bundle: write("authorities", AUTHORITIES) };
        run(&args).map(|()| fs::read(args.out.join("index.json")).unwrap())
    };
    let direct = write("tiphys", &empty_elf(ARM64, 1));
    assert_eq!(made(vec![archive.clone()], "one").unwrap(), made(vec![direct], "two").unwrap());
    assert!(made(vec![archive], "one").unwrap_err().to_string().contains("exists"));
}

#[test]
fn what_installs_the_controller_names_this_image() {
    let read = |path: &str| fs::read_to_string(workspace_root().join(path)).unwrap();
    let deployment = read("deploy/base/deployment.yaml");
    assert!(deployment.contains(&format!("image: {NAME}:{VERSION}\n")), "{deployment}");
    assert!(deployment.contains(&format!("runAsUser: {USER}\n")), "{deployment}");
    let chart = Path::new("deploy/chart/tiphys");
    let chart = |file: &str| read(chart.join(file).to_str().unwrap());
    assert!(chart("values.yaml").contains(&format!("repository: {NAME}\n")));
    assert!(chart("Chart.yaml").contains(&format!("appVersion: {VERSION}\n")));
    assert!(chart("templates/deployment.yaml").contains(&format!("runAsUser: {USER}\n")));
}
