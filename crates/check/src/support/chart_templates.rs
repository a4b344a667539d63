//! The templates of the charts that a repository writes itself.

use std::sync::{Arc, LazyLock};

use regex::Regex;
use tiphys_graph::Files;
use tiphys_vfs::{base_name, is_below, parent};

use super::{placeholders, unused_files};

/// What stands in braces, over several lines: a text in backquotes, which is no template, or an action.
pub(crate) static ACTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)\{\{-?\s*`[^`]*`.*?\}\}|\{\{-?\s*/\*.*?\*/\s*-?\}\}|\{\{.*?\}\}")
        .expect("the expression is right")
});

/// The folders of charts, without those that came with another chart, and without what was put away.
pub(crate) fn charts(files: &Files) -> impl Iterator<Item = &str> {
    files.paths().filter(|path| base_name(path) == "Chart.yaml").filter_map(|path| {
        let folder = parent(path).unwrap_or_default();
        // What comes with another chart may use what that one defines.
        let is_own = !format!("/{folder}").contains("/charts/") || !is_vendored(files, folder);
        let is_meant =
            is_own && !unused_files::is_in_unused_folder(path) && !placeholders::is_skeleton(folder);
        is_meant.then_some(folder)
    })
}

/// The path of a file or folder of a chart.
pub(crate) fn in_chart(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The templates of the chart of a folder, with their texts.
pub(crate) fn templates<'f>(
    files: &'f Files,
    folder: &str,
) -> impl Iterator<Item = (&'f Arc<str>, Arc<str>)> {
    let own = in_chart(folder, "templates");
    let paths = files.paths().filter(move |path| is_below(path, &own));
    paths.filter_map(|path| Some((path, files.text(path)?)))
}

/// Whether a chart lies in the folder of another one's dependencies.
fn is_vendored(files: &Files, folder: &str) -> bool {
    let mut above = folder.match_indices("/charts/").map(|(at, _)| &folder[..at]);
    folder.starts_with("charts/") && files.contains("Chart.yaml")
        || above.any(|above| files.contains(&format!("{above}/Chart.yaml")))
}

/// What an action says, without its braces, dashes and blanks; `None` of a comment and of a text.
pub(crate) fn inner(action: &str) -> Option<&str> {
    let inner = action.strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner).trim();
    (!inner.starts_with(['/', '`'])).then_some(inner)
}
