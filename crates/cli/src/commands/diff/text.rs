//! Differences for people.

use std::fmt::Write as _;

use super::{Found, diff, fate, faults, name, noise, object, verb, visible_changes};

/// Everything that differs, by Application.
pub(super) fn write(found: &Found) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for app in &found.apps {
        let _ = writeln!(text, "=== {} ({}) ===", name(app), fate(app));
        for fault in faults(app) {
            let _ = writeln!(text, "{fault}");
        }
        for change in visible_changes(app) {
            let _ = writeln!(text, "--- {} ({}) ---\n{}", object(change), verb(change), diff(change));
        }
        if noise(app) > 0 {
            let _ = writeln!(
                text,
                "{} more objects differ in the label of the chart's version only\n",
                noise(app)
            );
        }
    }
    let _ = writeln!(text, "{}", found.differ());
    if let Some(more) = found.not_compared() {
        let _ = writeln!(text, "{more}");
    }
    if !found.beside.is_empty() {
        let _ = writeln!(text, "\n{}:", found.beside_told());
        for file in &found.beside {
            let _ = writeln!(text, "  {file}");
        }
    }
    if !found.unknown.is_empty() {
        text.push_str("\nnot compared, because these fail to render both before and after the change:\n");
        for (why, names) in found.reasons() {
            let _ = writeln!(text, "  {}: {}", names.join(", "), why.replace('\n', "\n    "));
        }
    }
    text
}
