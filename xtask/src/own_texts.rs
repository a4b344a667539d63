//! `cargo xtask tidy`, third part: no code decides by a sentence that Tiphys wrote itself. Where code searches a
//! text for words, the text is another program's, and the file is listed here with whose it is.

use anyhow::bail;

use crate::git_files;

/// The files that search texts for words, and whose texts they are. A folder stands for what is in it.
const READERS: &[(&str, &str)] = &[
    ("crates/apiserver/src/http/json_syntax.rs", "serde_json's errors"),
    ("crates/cascades/src/dump.rs", "events of the world, rewritten as a kubelet writes them"),
    ("crates/cause/src/", "events, conditions, logs and operation states of any cluster"),
    ("crates/check/src/rules/d2_broken_text.rs", "serde_json's errors"),
    ("crates/check/src/rules/d2_cannot_render.rs", "what Go's templates print for nothing"),
    ("crates/check/src/rules/e5_entrypoint_module.rs", "commands in Dockerfiles"),
    ("crates/check/src/rules/e6_command_args_clash.rs", "commands in scripts"),
    ("crates/check/src/rules/g1_chart_alias.rs", "commands in scripts"),
    ("crates/check/src/rules/g1_other_branch.rs", "commands in scripts"),
    ("crates/check/src/rules/g4_terraform_values.rs", "loops of Terraform"),
    ("crates/check/src/rules/g6_go_version.rs", "commands in Dockerfiles, and go.mod"),
    ("crates/check/src/rules/g6_node_build.rs", "commands in Dockerfiles"),
    ("crates/cli/src/commands/render_helm/mod.rs", "the operating system's errors"),
    ("crates/cli/src/up/placeholder_kinds.rs", "Argo CD's words, in conditions"),
    ("crates/cluster/src/client.rs", "serde_json's errors"),
    ("crates/controller/src/apply_fixups.rs", "answers of the API server"),
    ("crates/doctor/src/case/describe/", "what kubectl describe prints"),
    ("crates/doctor/src/case/objects.rs", "files of kubectl cluster-info dump"),
    ("crates/doctor/src/case/told_objects.rs", "events of any cluster"),
    ("crates/doctor/src/case/told_resources.rs", "logs of controllers"),
    ("crates/doctor/src/causes/", "events, conditions and logs of any cluster"),
    ("crates/graph/src/network/detect.rs", "commands in scripts"),
    ("crates/helm/src/engine/errors.rs", "Go's errors, which Helm takes apart in the same way"),
    ("crates/helm/src/schema/decode.rs", "errors of encoding/json, of which Helm's library says others"),
    ("crates/render/src/jsonnet/process.rs", "the allocator's last words"),
    ("crates/render/src/out_of_reach.rs", "errors of renderings, which conditions carry through the API"),
    ("crates/source/src/git.rs", "Git's errors"),
    ("crates/source/src/ssh.rs", "OpenSSH's errors"),
    ("crates/sync/src/failure_class.rs", "answers of the API server"),
    ("crates/sync/src/result_recording.rs", "answers of the API server"),
];

/// The methods that look for a text.
const METHODS: &[&str] = &[
    "contains",
    "starts_with",
    "ends_with",
    "strip_prefix",
    "strip_suffix",
    "split_once",
    "rsplit_once",
    "find",
    "rfind",
    "split",
    "trim_start_matches",
    "trim_end_matches",
];

/// Looks at the Rust files of every crate, without their tests.
///
/// # Errors
/// Names each search for words in a file that is not listed, and each listed file that searches for none.
pub(crate) fn run() -> anyhow::Result<()> {
    let is_test = |file: &str| file.ends_with("tests.rs") || file.contains("/tests/");
    let mut faults = Vec::new();
    let mut found = Vec::new();
    let files = git_files::matching("crates/*/src/*.rs")?;
    for (file, text) in files.iter().filter(|(file, _)| !is_test(file)) {
        let searches = in_text(text);
        let reader = READERS.iter().map(|(path, _)| *path);
        match reader.into_iter().find(|path| file.starts_with(path)) {
            Some(reader) if !searches.is_empty() => found.push(reader),
            Some(_) => {}
            None => faults.extend(searches.into_iter().map(|(line, literal)| {
                format!(
                    "{file}:{line}: searches a text for {literal:?}. If Tiphys wrote the text, give the fault a type \
                     and match on that; if another program did, list the file in xtask/src/own_texts.rs"
                )
            })),
        }
    }
    let listed = READERS.iter().map(|(path, _)| *path);
    let idle = listed.filter(|path| !found.contains(path));
    faults.extend(
        idle.map(|path| format!("xtask/src/own_texts.rs: {path} searches for no words; take it out")),
    );
    if faults.is_empty() {
        println!("tidy: only {} listed places search texts for words", READERS.len());
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// The lines of a file, before its tests, that look for at least two words, and what they look for.
fn in_text(text: &str) -> Vec<(usize, String)> {
    let text = text.split("#[cfg(test)]").next().unwrap_or(text);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("(\"") {
        let before = &text[..at];
        let is_search = METHODS.iter().any(|method| before.ends_with(&format!(".{method}")));
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        if !is_search || before[line_start..].trim_start().starts_with("//") {
            continue;
        }
        let literal = literal(&text[at + 2..]);
        if has_words(&literal) {
            found.push((before.matches('\n').count() + 1, literal));
        }
    }
    found
}

/// A text literal up to its closing quotation mark, as it is written.
fn literal(rest: &str) -> String {
    let mut is_escaped = false;
    let end = rest.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    rest[..end.unwrap_or(rest.len())].to_owned()
}

/// Whether a text has two words beside each other.
fn has_words(literal: &str) -> bool {
    let is_word_end = |c: char| c.is_ascii_lowercase() || matches!(c, '\'' | '`');
    let is_word_start = |c: char| c.is_ascii_lowercase() || c == '`';
    literal
        .match_indices(' ')
        .any(|(at, _)| literal[..at].ends_with(is_word_end) && literal[at + 1..].starts_with(is_word_start))
}

#[cfg(test)]
mod tests {
    use super::in_text;

    #[test]
    fn searches_for_words_are_found_and_searches_for_names_are_not() {
        let text = r#"
            let is_lost = error.contains("no such file");
            let name = text.strip_prefix("tiphys-");
            // error.contains("no such file")
            let after = text.split_once(" \"quoted\" more words").is_some();
            #[cfg(test)]
            assert!(text.contains("in a test"));
        "#;
        let lines: Vec<usize> = in_text(text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 5]);
    }
}
