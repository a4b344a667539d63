//! `--output-dir`: documents into files, as `helm template --output-dir` writes them.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Component, Path},
};

use anyhow::{Context as _, ensure};
use tiphys_helm::{Manifest, TemplateOutput};

use crate::output::say;

/// Writes every document below a folder (CRDs below `crds`, which may be another one), at the path of its
/// template, and tells on stdout what was written. A template's second document is appended; a hook is also
/// appended to a file that stands there already.
///
/// # Errors
/// A path that would leave the folder, or a file that cannot be written.
pub(super) fn write(folder: &Path, crds: &Path, output: &TemplateOutput) -> anyhow::Result<()> {
    let mut written = BTreeSet::new();
    let crds = output.crds.iter().map(|manifest| (crds, manifest));
    for (folder, manifest) in crds.chain(output.manifests.iter().map(|manifest| (folder, manifest))) {
        let append = !written.insert(manifest.path.as_str());
        document(folder, manifest, append)?;
    }
    for hook in &output.hooks {
        document(folder, &hook.manifest, folder.join(&hook.manifest.path).exists())?;
    }
    say("")?;
    Ok(())
}

fn document(folder: &Path, manifest: &Manifest, append: bool) -> anyhow::Result<()> {
    let path = Path::new(&manifest.path);
    let stays = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    ensure!(stays, "{:?} leads outside the output folder", manifest.path);
    let file = folder.join(path);
    let shown = format!("{}/{}", folder.display(), manifest.path);
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).append(append).truncate(!append);
    let mut opened = options.open(&file).with_context(|| format!("cannot write {shown}"))?;
    write!(opened, "---\n# Source: {}\n{}\n", manifest.path, manifest.content)
        .with_context(|| format!("cannot write {shown}"))?;
    say(format_args!("wrote {shown}"))?;
    Ok(())
}
