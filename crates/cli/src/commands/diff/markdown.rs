//! Differences for a comment on a pull request.

use std::fmt::Write as _;

use tiphys_diag::sanitize::{code, html, markdown, markdown_fence};

use super::{Found, diff, fate, faults, name, noise, object, verb, visible_changes};
use crate::revisions::AppChange;

/// How much a comment of a pull request may hold, with room for what is around it.
const LIMIT: usize = 60_000;

/// So many files are listed.
const MOST_FILES: usize = 100;

/// A table, and what differs folded up below.
pub(super) fn write(found: &Found, range: &str) -> String {
    // Writing to a String cannot fail.
    let mut text = format!("### {} in {}\n\n", found.differ(), code(range));
    if let Some(more) = found.not_compared() {
        let _ = writeln!(text, "{}\n", markdown(&more));
    }
    if !found.apps.is_empty() {
        text.push_str("| Application | | added | changed | removed |\n|---|---|---|---|---|\n");
    }
    for app in &found.apps {
        let [added, changed, removed] = ["added", "changed", "removed"].map(|word| count(app, word));
        let _ =
            writeln!(text, "| {} | {} | {added} | {changed} | {removed} |", markdown(&name(app)), fate(app));
    }
    text.push_str(&unknown(found));
    let mut left_out = 0;
    let mut apps: Vec<&AppChange> = found.apps.iter().collect();
    apps.sort_by_key(|app| app.weight());
    for app in apps {
        let part = section(app);
        if text.len() + part.len() > LIMIT {
            left_out += 1;
        } else {
            text.push_str(&part);
        }
    }
    text.push_str(&beside(found));
    if left_out > 0 {
        let _ = writeln!(
            text,
            "\n{left_out} Applications are too large for this comment: {}",
            code(&format!("tiphys diff {range}"))
        );
    }
    text
}

/// How many objects of an Application a word is for; a question mark where nobody knows its objects.
fn count(app: &AppChange, word: &str) -> String {
    let count = visible_changes(app).filter(|change| verb(change) == word).count();
    let may_have = match app.sides {
        (false, _) => word == "added",
        (_, false) => word == "removed",
        _ => true,
    };
    match count {
        0 if may_have && !faults(app).is_empty() => "?".into(),
        count if may_have && !faults(app).is_empty() => format!("{count}+?"),
        count => count.to_string(),
    }
}

fn unknown(found: &Found) -> String {
    if found.unknown.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n<details><summary>not compared, because they fail to render both before and after the change: {}</summary>\n\n",
        found.unknown.len()
    );
    let mut lines = String::new();
    for (why, names) in found.reasons() {
        let line = format!("{}: {why}\n", names.join(", "));
        if lines.len() + line.len() > LIMIT / 4 {
            lines.push_str("and more\n");
            break;
        }
        lines.push_str(&line);
    }
    text.push_str(&markdown_fence("text", lines.trim_end()));
    text.push_str("\n</details>\n");
    text
}

/// The changed files that nothing accounts for.
fn beside(found: &Found) -> String {
    if found.beside.is_empty() {
        return String::new();
    }
    let mut text = format!("\n<details><summary>{}</summary>\n\n", html(&found.beside_told()));
    let listed: Vec<&str> = found.beside.iter().take(MOST_FILES).map(String::as_str).collect();
    text.push_str(&markdown_fence("text", &listed.join("\n")));
    text.push_str("\n</details>\n");
    text
}

fn section(app: &AppChange) -> String {
    let mut text = format!("\n<details><summary>{} ({})</summary>\n\n", html(&name(app)), fate(app));
    for fault in faults(app) {
        let _ = writeln!(text, "{}", markdown_fence("text", &fault));
    }
    for change in visible_changes(app) {
        let diff = diff(change);
        let _ = writeln!(
            text,
            "**{}** {}\n\n{}",
            markdown(&object(change)),
            verb(change),
            markdown_fence("diff", diff.trim_end_matches('\n'))
        );
    }
    if noise(app) > 0 {
        let _ =
            writeln!(text, "{} more objects differ in the label of the chart's version only.\n", noise(app));
    }
    text.push_str("</details>\n");
    text
}
