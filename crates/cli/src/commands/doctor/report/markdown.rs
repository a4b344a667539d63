//! The form for an incident channel or an issue.

use std::fmt::Write as _;

use super::{CauseView, Report};

/// How many members of a list are shown: what is pasted has to be short.
const SHOWN: usize = 15;

/// The whole report. Writing to a `String` cannot fail.
pub(crate) fn markdown(report: &Report) -> String {
    let mut out = format!("## {}\n\n{}\n", escaped(&report.verdict), escaped(&report.head));
    for (at, cause) in report.causes.iter().enumerate() {
        write_cause(&mut out, at + 1, cause);
    }
    for (title, lines) in [
        ("Considered and ruled out", &report.ruled_out),
        ("Not explained", &report.unexplained),
        ("Could not be seen", &report.not_seen),
    ] {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n### {title}\n");
            write_items(&mut out, lines);
        }
    }
    out
}

fn write_cause(out: &mut String, number: usize, cause: &CauseView) {
    let sureness = if cause.is_asserted { "" } else { ", possible" };
    let _ = writeln!(out, "\n### {number}. {} – `{}`\n", escaped(&cause.object), cause.id);
    let summary = if cause.summary.is_empty() { cause.meaning } else { &cause.summary };
    let _ = writeln!(out, "{} ({} %{sureness})\n", escaped(summary), cause.confidence);
    for (label, value) in [("Field", &cause.field), ("Since", &cause.since)] {
        if let Some(value) = value {
            let _ = writeln!(out, "- **{label}:** {}", escaped(value));
        }
    }
    for line in &cause.written {
        let _ = writeln!(out, "- **Written:** {}", escaped(line));
    }
    for group in cause.consequences.iter().take(SHOWN) {
        let counts = match group.members.as_slice() {
            [only] => only,
            _ => &group.counts,
        };
        let _ = writeln!(out, "- **Breaks** {}: {}", escaped(&group.name), escaped(counts));
    }
    if cause.consequences.len() > SHOWN {
        let _ = writeln!(out, "- and in {} more", cause.consequences.len() - SHOWN);
    }
    if !cause.evidence.is_empty() {
        let _ = writeln!(out, "\n**Evidence**\n");
        for quote in &cause.evidence {
            let _ = writeln!(out, "> {}  \n> <sub>{}</sub>\n", escaped(&quote.text), escaped(&quote.source));
        }
    }
    if !cause.remedy.is_empty() || !cause.commands.is_empty() || cause.patch.is_some() {
        let _ = writeln!(out, "\n**Remedy:** {} _({})_\n", escaped(&cause.remedy), escaped(&cause.proof));
    }
    if !cause.commands.is_empty() {
        out.push_str(&fenced("sh", &cause.commands.join("\n")));
    }
    if let Some(patch) = &cause.patch {
        out.push_str(&fenced("yaml", patch));
    }
}

fn write_items(out: &mut String, lines: &[String]) {
    for line in lines.iter().take(SHOWN) {
        let _ = writeln!(out, "- {}", escaped(line));
    }
    if lines.len() > SHOWN {
        let _ = writeln!(out, "- and {} more", lines.len() - SHOWN);
    }
}

/// A block of code with a fence that nothing in it ends.
fn fenced(language: &str, text: &str) -> String {
    let mut fence = String::from("```");
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{text}\n{fence}\n")
}

/// A text of others as plain words: no markup, no HTML, no link, no mention of people.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A zero-width joiner would be invisible, and copied; an entity is shown as it is.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    // An address by itself would become a link.
    out.replace("://", "&#58;//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_words() {
        let text = escaped("<img src=x> [a](http://b) @all **c** `d`");
        assert_eq!(text, "&lt;img src=x&gt; \\[a\\](http&#58;//b) &#64;all \\*\\*c\\*\\* \\`d\\`");
        assert!(fenced("sh", "a\n```\nb").starts_with("````sh\n"));
    }
}
