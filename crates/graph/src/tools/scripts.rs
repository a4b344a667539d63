//! Shell scripts and Makefiles.

use std::sync::Arc;

use tiphys_vfs::parent;

use super::{Script, Tool, Variables, Writer, commands};
use crate::Files;

/// What the scripts of a repository write to the cluster.
pub(super) fn writers(files: &Files) -> Vec<Writer> {
    let scripts = files.paths().filter_map(|path| Some((path, script(files, path)?)));
    scripts
        .flat_map(|(path, script)| {
            let folder = parent(path).unwrap_or_default().to_owned();
            let setting = commands::Setting {
                files,
                tool: Tool::Script,
                variables: &Variables::default(),
                folders: vec![folder, String::new()],
            };
            commands::writers(&script, &setting)
        })
        .collect()
}

fn script(files: &Files, path: &Arc<str>) -> Option<Script> {
    let is_makefile = path.ends_with("Makefile") || path.ends_with(".mk");
    if !is_makefile && ![".sh", ".bash"].iter().any(|end| path.ends_with(end)) {
        return None;
    }
    let text = files.text(path)?.to_string();
    let text = if is_makefile { recipes(&text) } else { text };
    Some(Script { file: path.clone(), line: 1, text, is_literal: true })
}

/// The lines of a Makefile's recipes, every other line empty.
fn recipes(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if let Some(recipe) = line.strip_prefix('\t') {
            out.push_str(&recipe.trim_start_matches(['@', '-', '+']).replace("$(", "${").replace("$$", "$"));
        }
        out.push('\n');
    }
    out
}
