//! Whole builds, one file per case in `tests/cases`: a comment, the files of the tree, and what
//! `kustomize build` prints or the first lines of its error.

use std::{fs, path::Path, process::Command};

use tiphys_kustomize::{BuildOptions, build};
use tiphys_vfs::MemTree;

struct Case {
    name: String,
    files: Vec<(String, String)>,
    want: Result<String, String>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Case {
    let text = fs::read_to_string(path).unwrap();
    let mut files = Vec::new();
    let mut want = Err("the case says nothing".to_owned());
    for part in text.split("\n== ").skip(1) {
        let (name, body) = part.split_once('\n').unwrap();
        let body = format!("{}\n", body.trim_end_matches('\n'));
        match name {
            "want" => want = Ok(body),
            "error" => want = Err(body.trim_end().to_owned()),
            name => files.push((name.to_owned(), body)),
        }
    }
    Case { name: path.file_stem().unwrap().to_string_lossy().into_owned(), files, want }
}

fn ours(case: &Case, root: &str, origins: bool) -> Result<String, String> {
    let files = case.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let tree = MemTree::from_files(files);
    let options = BuildOptions { display_root: root.to_owned(), origins, ..BuildOptions::default() };
    build(&tree, "", &options)
        .map(|build| build.to_yaml())
        .map_err(|error| case.first_lines(&error.to_string()))
}

impl Case {
    /// As many lines of an error as the case records.
    fn first_lines(&self, error: &str) -> String {
        let lines = self.want.as_ref().err().map_or(1, |want| want.lines().count());
        error.lines().take(lines).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn builds_as_recorded() {
    for case in cases() {
        // Without origins simple texts are read another way.
        for origins in [false, true] {
            assert_eq!(ours(&case, "/root", origins), case.want, "{} origins: {origins}", case.name);
        }
    }
}

/// The recorded outputs are the real tool's, where it is installed.
#[test]
fn records_are_those_of_kustomize() {
    let Ok(kustomize) = tiphys_oracles::find("kustomize") else { return };
    for case in cases() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (name, text) in &case.files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let output = Command::new(&kustomize).arg("build").arg(&root).output().unwrap();
        let real = if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            let stderr = String::from_utf8(output.stderr).unwrap();
            let error = stderr.split_once("Error: ").map_or("", |(_, error)| error);
            Err(case.first_lines(error).replace(&*root.to_string_lossy(), "/root"))
        };
        assert_eq!(real, case.want, "{}", case.name);
    }
}
