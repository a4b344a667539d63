//! A kustomization with one resource builds or fails; nothing panics and nothing outside is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tiphys_kustomize::{BuildOptions, build};
use tiphys_vfs::MemTree;

fuzz_target!(|input: (&str, &str)| {
    let (kustomization, resource) = input;
    let files = [("base/kustomization.yaml", kustomization), ("base/resource.yaml", resource)];
    if let Ok(built) = build(&MemTree::from_files(files), "base", &BuildOptions::default()) {
        built.to_yaml();
    }
});
