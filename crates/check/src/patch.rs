//! Fixes: edits as texts, as unified diffs, and the proof that they help.

use std::{collections::BTreeMap, sync::Arc};

use tiphys_diag::{Edit, SourceMap};
use tiphys_diff::unified_texts;
use tiphys_vfs::{DirEntry, EntryKind, FileTree, VfsError};

use crate::{Finding, Fix, finding::Confidence};

/// How often the rules are run again, at most, to prove patches: each proof is a whole run.
const MAX_PROOFS: usize = 40;

/// A tree in which some files have other texts.
pub struct Patched {
    tree: Arc<dyn FileTree>,
    texts: BTreeMap<String, Arc<[u8]>>,
}

impl Patched {
    /// The tree with these files replaced.
    pub fn new(tree: Arc<dyn FileTree>, texts: &BTreeMap<Arc<str>, String>) -> Self {
        let texts = texts.iter().map(|(file, text)| (file.to_string(), text.as_bytes().into())).collect();
        Self { tree, texts }
    }
}

impl FileTree for Patched {
    fn kind(&self, path: &str) -> Result<EntryKind, VfsError> {
        self.tree.kind(path)
    }

    fn read(&self, path: &str) -> Result<Arc<[u8]>, VfsError> {
        let normal = tiphys_vfs::normalize(path)?;
        self.texts.get(&normal).map_or_else(|| self.tree.read(path), |text| Ok(text.clone()))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, VfsError> {
        self.tree.list(path)
    }

    fn canonical(&self, path: &str) -> Result<String, VfsError> {
        self.tree.canonical(path)
    }
}

/// The texts of the files that edits change; `None` if two of them overlap or a file is not known.
pub fn apply<'a>(
    edits: impl IntoIterator<Item = &'a Edit>,
    sources: &SourceMap,
) -> Option<BTreeMap<Arc<str>, String>> {
    let mut by_file: BTreeMap<Arc<str>, Vec<(std::ops::Range<usize>, &str)>> = BTreeMap::new();
    for edit in edits {
        let mut bytes = sources.bytes(&edit.span)?;
        if edit.span.start == edit.span.end {
            bytes.end = bytes.start;
        }
        by_file.entry(edit.span.file.clone()).or_default().push((bytes, &edit.replacement));
    }
    let mut texts = BTreeMap::new();
    for (file, mut edits) in by_file {
        edits.sort_by_key(|(bytes, _)| (bytes.start, bytes.end));
        edits.dedup();
        if edits.windows(2).any(|pair| pair[0].0.end > pair[1].0.start) {
            return None;
        }
        let mut text = sources.text(&file)?.to_owned();
        for (bytes, replacement) in edits.into_iter().rev() {
            text.replace_range(bytes, replacement);
        }
        texts.insert(file, text);
    }
    Some(texts)
}

/// The edits of a fix as a unified diff; empty if they cannot be applied.
pub fn unified(fix: &Fix, sources: &SourceMap) -> String {
    let mut out = String::new();
    for (file, text) in apply(&fix.patch, sources).unwrap_or_default() {
        let before = sources.text(&file).unwrap_or_default();
        out.push_str(&unified_texts(before, &text, &format!("a/{file}"), &format!("b/{file}")));
    }
    out
}

/// What the rules find in a tree in which only files of these paths are other than before.
pub type Again<'a> = dyn Fn(Arc<dyn FileTree>, &[String]) -> Vec<Finding> + 'a;

/// Keeps only the patches that help: with it applied and the rules run again, the finding is gone and none
/// has come.
pub fn prove(findings: &mut [Finding], sources: &SourceMap, tree: &Arc<dyn FileTree>, again: &Again<'_>) {
    let before: Vec<String> = findings.iter().map(Finding::fingerprint).collect();
    let patched: Vec<usize> =
        (0..findings.len()).filter(|index| findings[*index].patch().is_some()).collect();
    let help = |group: &[usize]| helps(findings, group, &before, sources, tree, again);
    let mut proofs = MAX_PROOFS;
    let proven = of_help(&patched, &mut proofs, &help);
    for index in patched.into_iter().filter(|index| !proven.contains(index)) {
        if let Some(fix) = &mut findings[index].fix {
            fix.patch.clear();
        }
    }
}

/// The patches of a group that help: all of them if they do together, else those of either half that do.
fn of_help(group: &[usize], proofs: &mut usize, help: &dyn Fn(&[usize]) -> bool) -> Vec<usize> {
    if group.is_empty() || *proofs == 0 {
        return Vec::new();
    }
    *proofs -= 1;
    if help(group) {
        return group.to_vec();
    }
    if group.len() == 1 {
        return Vec::new();
    }
    let (first, second) = group.split_at(group.len() / 2);
    let mut proven = of_help(first, proofs, help);
    proven.extend(of_help(second, proofs, help));
    proven
}

/// Whether some patches together remove their findings and add none.
fn helps(
    findings: &[Finding],
    patched: &[usize],
    before: &[String],
    sources: &SourceMap,
    tree: &Arc<dyn FileTree>,
    again: &Again<'_>,
) -> bool {
    let edits = patched.iter().filter_map(|index| findings[*index].fix.as_ref()).flat_map(|fix| &fix.patch);
    let Some(texts) = apply(edits, sources) else { return false };
    let changed: Vec<String> = texts.keys().map(ToString::to_string).collect();
    let found = again(Arc::new(Patched::new(tree.clone(), &texts)), &changed);
    let after: Vec<String> = found.iter().map(Finding::fingerprint).collect();
    let gone = patched.iter().all(|index| !after.contains(&before[*index]));
    gone && after.iter().all(|fingerprint| before.contains(fingerprint))
}

/// The texts of all files as the proven fixes of findings leave them, of those that are certain or of all;
/// fixes that overlap an earlier one are left out, and counted.
pub fn apply_fixes(
    findings: &[Finding],
    sources: &SourceMap,
    least: Confidence,
) -> (BTreeMap<Arc<str>, String>, usize) {
    let mut edits: Vec<&Edit> = Vec::new();
    let mut left_out = 0;
    let wanted = |finding: &&Finding| finding.patch_confidence() >= least;
    for patch in findings.iter().filter(wanted).filter_map(Finding::patch) {
        let more: Vec<&Edit> = edits.iter().copied().chain(patch).collect();
        if apply(more.iter().copied(), sources).is_some() {
            edits = more;
        } else {
            left_out += 1;
        }
    }
    (apply(edits, sources).unwrap_or_default(), left_out)
}

#[cfg(test)]
mod tests {
    use tiphys_diag::{Position, Span};

    use super::*;

    fn edit(start: u32, end: u32, text: &str) -> Edit {
        let at = |column| Position { line: 1, column };
        Edit { span: Span { file: "a".into(), start: at(start), end: at(end) }, replacement: text.into() }
    }

    fn sources() -> SourceMap {
        let mut sources = SourceMap::default();
        sources.insert("a", "one two three\n");
        sources
    }

    #[test]
    fn edits_are_applied_together() {
        let edits = [edit(9, 14, "3"), edit(1, 4, "1"), edit(5, 5, "and ")];
        assert_eq!(apply(&edits, &sources()).unwrap()["a"], "1 and two 3\n");
    }

    #[test]
    fn edits_that_overlap_are_refused() {
        assert_eq!(apply(&[edit(1, 6, "x"), edit(5, 8, "y")], &sources()), None);
    }
    #[test]
    fn one_patch_that_does_not_help_spoils_no_other() {
        let all: Vec<usize> = (0..9).collect();
        let mut proofs = MAX_PROOFS;
        let proven = of_help(&all, &mut proofs, &|group| !group.contains(&4));
        assert_eq!(proven, [0, 1, 2, 3, 5, 6, 7, 8]);
        assert!(MAX_PROOFS - proofs < 10, "{proofs} are left");
    }
}
