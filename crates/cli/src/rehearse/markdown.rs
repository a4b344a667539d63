//! A rehearsal for a pull request: one screen, details folded.

use std::fmt::Write as _;

use super::{
    report::{Exploration, Report},
    text::{self, assumed_lines, cause_lines, effect_lines, shown, some_of, time, verdict},
};

/// How many lines of a table are shown before the rest is folded.
const SHOWN: usize = 10;

/// Everything, the verdict first.
pub fn write(report: &Report) -> String {
    let mark = if report.is_green { "✅" } else { "❌" };
    let mut text = format!("### {mark} tiphys rehearse: {}\n", escape(&verdict(report)));
    if let Some(change) = &report.change {
        let _ = writeln!(text, "\n`{}` → `{}`", change.base, change.head);
    }
    for difference in report.differences.iter().flatten() {
        let _ = writeln!(
            text,
            "\n- **{}**: by Argo CD's rules {}; by Tiphys' rules {}",
            difference.application, difference.argo_cd, difference.tiphys
        );
    }
    causes(report, &mut text);
    match &report.change {
        Some(change) => {
            let apps = change.effects.applications.iter();
            let lines: Vec<String> = apps
                .map(|(name, app)| {
                    let lines: Vec<String> = effect_lines(app)
                        .iter()
                        .map(|line| format!("`{}`", line.replace('`', "'")))
                        .collect();
                    format!("| {name} | {} |", lines.join("<br>"))
                })
                .collect();
            table("Application", "What happens", &lines, "what the change does", &mut text);
        }
        None => {
            let lines: Vec<String> = report
                .story
                .applications
                .iter()
                .map(|app| {
                    let end = app
                        .green_ms
                        .filter(|_| app.is_green)
                        .map_or_else(|| app.state.clone(), |at| format!("green at {}", time(at)));
                    format!("| {} (wave {}) | {end} |", app.name, app.wave)
                })
                .collect();
            table("Application", "End", &lines, "Applications", &mut text);
        }
    }
    let outages: Vec<String> = report
        .story
        .outages
        .iter()
        .filter(|one| one.to_ms.is_none_or(|to| to - one.from_ms >= 1000))
        .map(|one| {
            let to = one.to_ms.map_or_else(|| "the end".to_owned(), time);
            format!("| {} | {} to {to} |", shown(&one.object), time(one.from_ms))
        })
        .collect();
    table("Unavailable", "When", &outages, "what was unavailable", &mut text);
    let unknown = assumed_lines(report);
    if !unknown.is_empty() {
        let _ = writeln!(text, "\n<details><summary>What is not known</summary>\n");
        for line in unknown {
            let _ = writeln!(text, "- {}", escape(&line));
        }
        let _ = writeln!(text, "\n</details>");
    }
    text
}

fn causes(report: &Report, text: &mut String) {
    if report.story.causes.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n**Why**\n");
    for (at, cause) in report.story.causes.iter().take(SHOWN).enumerate() {
        let lines = cause_lines(cause);
        let _ = writeln!(text, "{}. **{}**", at + 1, escape(&lines[0]));
        for line in &lines[1..] {
            let _ = writeln!(text, "   - {}", escape(line));
        }
    }
    let more = report.story.causes.len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = writeln!(text, "\nand {more} causes more");
    }
}

/// A table, folded if it is long.
fn table(first: &str, second: &str, lines: &[String], what: &str, text: &mut String) {
    if lines.is_empty() {
        return;
    }
    let is_long = lines.len() > SHOWN;
    if is_long {
        let _ = writeln!(text, "\n<details><summary>{} lines: {what}</summary>", lines.len());
    }
    let _ = writeln!(text, "\n| {first} | {second} |\n| --- | --- |\n{}", lines.join("\n"));
    if is_long {
        let _ = writeln!(text, "\n</details>");
    }
}

/// A text in which nothing is taken for markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '<' | '>' | '*' | '_' | '`' | '|' | '[' | ']') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// What every single fault leads to.
pub fn write_exploration(exploration: &Exploration) -> String {
    let lost: Vec<String> = exploration
        .ranking
        .iter()
        .filter(|one| !one.ended.red.is_empty())
        .map(|one| one.fault.clone())
        .collect();
    let mark = if lost.is_empty() { "✅ every single fault is survived" } else { "❌ not survived:" };
    let names = some_of(&lost, SHOWN);
    format!(
        "### {mark} {}\n\n<details><summary>All faults</summary>\n\n```\n{}```\n\n</details>\n",
        escape(&names),
        text::write_exploration(exploration)
    )
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escape("a_b <c>"), "a\\_b \\<c\\>");
    }
}
