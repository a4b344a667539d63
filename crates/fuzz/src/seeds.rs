//! Inputs to begin with: those written for a target (`fuzz/seeds`), and the examples and test inputs of the
//! repository.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Longer files say nothing that shorter ones do not.
const LONGEST_FILE: u64 = 16 << 10;
/// Longest repository or dump that is one input.
const LONGEST_JOINED: usize = 48 << 10;

/// The inputs of a target, from the root of the repository. In the order of their paths.
pub fn read(root: &Path, target: &str) -> Vec<Vec<u8>> {
    let mut seeds = contents(&root.join("fuzz/seeds").join(target), |_| true);
    let charts = |is_meant: fn(&Path) -> bool| {
        let mut all = contents(&root.join("examples"), is_meant);
        all.extend(contents(&root.join("crates/check/tests/incidents"), is_meant));
        all
    };
    match target {
        "yaml" => seeds.extend(charts(is_yaml)),
        "template" => seeds.extend(charts(|path| path.iter().any(|step| step == "templates"))),
        "values" => seeds.extend(
            charts(|path| path.file_name().is_some_and(|name| name == "values.yaml"))
                .into_iter()
                .map(|text| [b"\0".as_slice(), &text].concat()),
        ),
        "applicationset" => {
            seeds.extend(charts(is_yaml).into_iter().filter(|text| has(text, "kind: ApplicationSet")))
        }
        "kustomization" => seeds.extend(kustomizations(&root.join("crates/kustomize/tests/cases"))),
        "policy" => seeds.extend(contents(&root.join("crates/policy/tests/cases"), is_yaml)),
        "cluster" => {
            seeds.extend(contents(&root.join("examples"), is_yaml));
            seeds.extend(contents(&root.join("crates/cli/tests/incidents"), is_yaml));
        }
        "repository" => {
            for incident in folders(&root.join("crates/check/tests/incidents")) {
                seeds.extend(folders(&incident).iter().filter_map(|folder| joined(folder)));
            }
        }
        "dump" => seeds.extend(
            folders(&root.join("crates/doctor/tests/cases"))
                .iter()
                .filter_map(|case| joined(&case.join("dump"))),
        ),
        "message" => seeds.extend(contents(&root.join("crates/doctor/tests/cases"), |path| {
            path.extension().is_some_and(|end| end == "log")
        })),
        _ => {}
    }
    seeds
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml")
}

fn has(text: &[u8], words: &str) -> bool {
    text.windows(words.len()).any(|window| window == words.as_bytes())
}

/// The kustomization of each test, and the first of its other files as its only resource.
fn kustomizations(folder: &Path) -> Vec<Vec<u8>> {
    let texts = contents(folder, |_| true).into_iter().filter_map(|text| String::from_utf8(text).ok());
    let seed = |text: String| {
        let files: Vec<(&str, &str)> =
            text.split("\n== ").skip(1).filter_map(|file| file.split_once('\n')).collect();
        let (_, kustomization) = files.iter().find(|(name, _)| *name == "kustomization.yaml")?;
        let (name, resource) =
            files.iter().find(|(name, _)| !matches!(*name, "kustomization.yaml" | "want"))?;
        let kustomization = kustomization.replace(name, "resource.yaml");
        Some([&kustomization, crate::input::NEXT_PART, resource].concat().into_bytes())
    };
    texts.filter_map(seed).collect()
}

/// The files of a folder as one text; `None` if there are none or they are too long.
fn joined(folder: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    for path in files(folder) {
        let content = fs::read(&path).ok()?;
        let name = path.strip_prefix(folder).ok()?.to_str()?;
        text.extend(format!("-- {name} --\n").into_bytes());
        text.extend(content);
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    (!text.is_empty() && text.len() <= LONGEST_JOINED).then_some(text)
}

fn contents(folder: &Path, is_meant: impl Fn(&Path) -> bool) -> Vec<Vec<u8>> {
    let is_short = |path: &PathBuf| path.metadata().is_ok_and(|it| it.len() <= LONGEST_FILE);
    let short = files(folder).into_iter().filter(|path| is_meant(path) && is_short(path));
    short.filter_map(|path| fs::read(path).ok()).collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut all = entries(folder);
    all.retain(|path| path.is_dir());
    all
}

/// The files below a folder, in the order of their paths.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    let mut all: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    all.retain(|path| !path.is_symlink());
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds_and_takes_them() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for target in crate::ALL {
            let seeds = read(&root, target.name);
            assert!(seeds.len() >= 3, "{} has {} seeds", target.name, seeds.len());
            (target.run)(&seeds[0]);
        }
    }
}
