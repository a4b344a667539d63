//! A small repository of Argo CD around a hostile part.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, bail};

/// An input.
pub(super) struct Case {
    /// What it is about: `template-repeat`.
    pub name: String,
    /// Its files by path.
    files: Vec<(String, Vec<u8>)>,
    special: Option<Special>,
}

/// What is no regular file.
pub(super) enum Special {
    /// A named pipe, at which a reader waits for ever.
    Pipe(&'static str),
    /// A link to a device without an end.
    Device(&'static str),
}

/// `Chart.yaml`.
pub(super) const CHART: &str = "apiVersion: v2\nname: w\nversion: 1.0.0\n";

/// A ConfigMap with one value.
pub(super) fn config_map(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata: {{a: \"{value}\"}}\n")
}

/// An Application of a folder; `more` stands below its spec, `of_source` below its source.
pub(super) fn application(name: &str, path: &str, of_source: &str, more: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  \
         project: default\n  destination: {{server: \"https://kubernetes.default.svc\", namespace: shop}}\n  source:\n    \
         repoURL: https://git.example.com/org/repo.git\n    path: {path}\n    targetRevision: HEAD\n{of_source}  \
         syncPolicy: {{automated: {{}}}}\n{more}"
    )
}

impl Case {
    /// An input with these files beside an Application of the folder `w`.
    pub(super) fn new<P: Into<String>, T: Into<Vec<u8>>>(
        name: &str,
        files: impl IntoIterator<Item = (P, T)>,
    ) -> Self {
        let mut files: Vec<(String, Vec<u8>)> =
            files.into_iter().map(|(path, text)| (path.into(), text.into())).collect();
        if !files.iter().any(|(path, _)| path == "apps/a.yaml") {
            files.push(("apps/a.yaml".into(), application("a", "w", "", "").into()));
        }
        Self { name: name.to_owned(), files, special: None }
    }

    /// The same by another name, with something that is no regular file.
    pub(super) fn with(self, name: &str, special: Special) -> Self {
        Self { name: name.to_owned(), special: Some(special), ..self }
    }

    /// Whether it has a file, or what stands in its place.
    pub(super) fn has(&self, path: &str) -> bool {
        let is_special =
            matches!(&self.special, Some(Special::Pipe(at) | Special::Device(at)) if *at == path);
        is_special || self.files.iter().any(|(at, _)| at == path)
    }

    /// Writes it into a repository of its own.
    pub(super) fn write(&self) -> anyhow::Result<tempfile::TempDir> {
        let folder = tempfile::tempdir()?;
        for (path, text) in &self.files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().context("a file in a folder")?)?;
            fs::write(path, text)?;
        }
        git(folder.path(), &["init", "-q"])?;
        git(folder.path(), &["remote", "add", "origin", "https://git.example.com/org/repo.git"])?;
        git(folder.path(), &["add", "-A"])?;
        git(folder.path(), &["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one"])?;
        // What Git does not keep comes last.
        match &self.special {
            Some(Special::Pipe(path)) => {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().context("a pipe in a folder")?)?;
                run("mkfifo", &path)?;
            }
            Some(Special::Device(path)) => std::os::unix::fs::symlink("/dev/zero", folder.path().join(path))?,
            None => {}
        }
        Ok(folder)
    }
}

fn git(folder: &Path, args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("git").arg("-C").arg(folder).args(args).status().context("cannot run git")?;
    if !status.success() {
        bail!("git {}: {status}", args.join(" "));
    }
    Ok(())
}

fn run(program: &str, path: &Path) -> anyhow::Result<()> {
    let status = Command::new(program).arg(path).status().with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!("{program}: {status}");
    }
    Ok(())
}
