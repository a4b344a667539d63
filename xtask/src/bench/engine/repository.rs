//! Repositories of many Applications.

use std::{fs, path::Path, process::Command};

use anyhow::ensure;
use tempfile::TempDir;

/// How many Applications share a base.
pub(super) const GROUP: usize = 10;

/// What the folder of an Application holds.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// That many ConfigMaps.
    Plain { objects: usize },
    /// A kustomization over a base that [`GROUP`] Applications share.
    Overlays,
}

/// A Git repository in a folder of its own.
pub(super) struct Repository {
    folder: TempDir,
}

impl Repository {
    /// One commit with that many Applications.
    pub(super) fn new(shape: Shape, apps: usize) -> anyhow::Result<Self> {
        let repository = Self { folder: tempfile::tempdir()? };
        for number in 0..apps {
            match shape {
                Shape::Plain { objects } => {
                    for object in 0..objects {
                        let name = format!("c-{number}-{object}");
                        repository.write(&format!("apps/{number}/{object}.yaml"), &config_map(&name, "1"))?;
                    }
                }
                Shape::Overlays => {
                    let group = number / GROUP;
                    let text = format!("resources: [../../bases/{group}]\nnameSuffix: \"-{number}\"\n");
                    repository.write(&format!("apps/{number}/kustomization.yaml"), &text)?;
                    let base = format!("bases/{group}");
                    repository.write(&format!("{base}/kustomization.yaml"), "resources: [c.yaml]\n")?;
                    repository.write(&format!("{base}/c.yaml"), &config_map("c", "1"))?;
                }
            }
        }
        repository.git(&["init", "-q", "-b", "main"])?;
        repository.commit()?;
        Ok(repository)
    }

    /// Where it is.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its address.
    pub(super) fn url(&self) -> String {
        format!("file://{}", self.folder.path().display())
    }

    /// Changes the base of the first [`GROUP`] overlays; returns the commit.
    pub(super) fn change_one_line(&self) -> anyhow::Result<String> {
        self.write("bases/0/c.yaml", &config_map("c", "2"))?;
        self.commit()?;
        Ok(self.git(&["rev-parse", "HEAD"])?.trim().to_owned())
    }

    fn write(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(self.folder.path()))?;
        Ok(fs::write(path, text)?)
    }

    fn commit(&self) -> anyhow::Result<()> {
        self.git(&["add", "-A"])?;
        self.git(&["commit", "-q", "-m", "all"]).map(drop)
    }

    fn git(&self, args: &[&str]) -> anyhow::Result<String> {
        let identity =
            ["-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "commit.gpgsign=false"];
        let output =
            Command::new("git").args(identity).args(args).current_dir(self.folder.path()).output()?;
        ensure!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: \"{value}\"\n")
}
