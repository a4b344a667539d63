//! The pages of the documentation that are made from the rules.

use std::fmt::Write as _;

use crate::{output::family, rules};

/// File names below `docs/rules/` and their texts: one page a rule, and an index.
pub fn pages() -> Vec<(String, String)> {
    let mut pages: Vec<(String, String)> = rules::ALL
        .iter()
        .map(|rule| {
            let text = format!(
                "{}\n\n---\nRule `{}` · severity {} · incident {} ({})\n",
                rule.documentation().trim_end(),
                rule.id,
                rule.severity,
                rule.incident,
                family(rule.incident)
            );
            (format!("{}.md", rule.id), text)
        })
        .collect();
    pages.push(("README.md".to_owned(), index()));
    pages
}

fn index() -> String {
    let mut text = String::from(
        "# Rules of `tiphys check`\n\nWritten by `cargo xtask docs` from the rules themselves; do not edit.\n",
    );
    let mut last = "";
    for rule in rules::ALL {
        let letter = &rule.incident[..1];
        // Writing to a String cannot fail.
        if letter != last {
            let _ = write!(
                text,
                "\n## {letter}: {}\n\n| rule | severity | finds |\n|---|---|---|\n",
                family(letter)
            );
            last = letter;
        }
        let _ = writeln!(text, "| [`{}`]({}.md) | {} | {} |", rule.id, rule.id, rule.severity, rule.title);
    }
    text
}
