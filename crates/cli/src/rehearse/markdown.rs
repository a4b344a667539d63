//! A rehearsal for a pull request: one screen, details folded.

use std::fmt::Write as _;

use tiphys_diag::sanitize::{code, markdown as escape, markdown_fence};
use tiphys_stage::causes::Repair;

use super::{
    causes::{grouped, hit_names},
    effect_lines::effect_lines,
    report::{Exploration, Report},
    text::{self, assumed_lines, object_name, outages_by_object, short, short_name, some_of, time, verdict},
};

/// How many lines of a table are shown before the rest is folded.
const SHOWN: usize = 10;

/// Everything, the verdict first.
pub(super) fn write(report: &Report) -> String {
    let mark = if report.is_green { "✅" } else { "❌" };
    let mut text = format!("### {mark} tiphys rehearse: {}\n", escape(&verdict(report)));
    if let Some(change) = &report.change {
        let _ = writeln!(text, "\n{} → {}", code(&change.base), code(&change.head));
    }
    for difference in report.differences.iter().flatten() {
        let _ = writeln!(
            text,
            "\n- **{}**: by Argo CD's rules {}; by Tiphys' rules {}",
            escape(&difference.application),
            escape(&difference.argo_cd),
            escape(&difference.tiphys)
        );
    }
    causes(report, &mut text);
    match &report.change {
        Some(change) => {
            let apps = change.effects.applications.iter();
            let lines: Vec<String> = apps
                .map(|(name, app)| {
                    let lines: Vec<String> = effect_lines(app).iter().map(|line| code(line)).collect();
                    format!("| {} | {} |", escape(name), lines.join("<br>"))
                })
                .collect();
            table("Application", "What happens", &lines, "what the change does", &mut text);
        }
        None => {
            let never =
                report.story.not_begun.iter().map(|key| format!("| {} | never begins |", escape(&key.name)));
            let lines: Vec<String> = report
                .story
                .applications
                .iter()
                .map(|app| {
                    let end = app
                        .green_ms
                        .filter(|_| app.is_green)
                        .map_or_else(|| app.state.clone(), |at| format!("green at {}", time(at)));
                    format!("| {} (wave {}) | {} |", escape(&app.name), app.wave, escape(&end))
                })
                .chain(never)
                .collect();
            table("Application", "End", &lines, "Applications", &mut text);
        }
    }
    let outages: Vec<String> = outages_by_object(&report.story)
        .into_iter()
        .map(|(object, told)| format!("| {} | {told} |", escape(&object_name(object))))
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
    let all = grouped(&report.story.causes);
    if all.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n**Why**\n");
    for (at, cause) in all.iter().take(SHOWN).enumerate() {
        let id = cause.mechanism.as_ref().map(|it| format!(" ({})", code(it.id.id()))).unwrap_or_default();
        let _ = writeln!(text, "{}. **{}**{id}", at + 1, escape(&short(&cause.text)));
        let objects: Vec<String> = cause.objects.iter().map(short_name).collect();
        let places: Vec<String> = cause.places.iter().take(3).map(|place| code(place)).collect();
        let place = if places.is_empty() { String::new() } else { format!(" in {}", places.join(", ")) };
        let _ = writeln!(text, "   - {}: {}{place}", escape(&cause.state), escape(&some_of(&objects, 3)));
        let hits = hit_names(cause);
        if !hits.is_empty() {
            let _ = writeln!(text, "   - so not: {}", escape(&hits.join("; ")));
        }
        if let Some(repair) = &cause.repair {
            write_repair(repair, text);
        }
    }
    let more = all.len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = writeln!(text, "\nand {more} causes more");
    }
}

/// What would mend a cause, in its item of the list.
fn write_repair(repair: &Repair, text: &mut String) {
    let place = repair.place.as_ref().map(|place| format!(" in {}", code(place))).unwrap_or_default();
    let _ = writeln!(text, "   - **Repair:** {}{place}", escape(&repair.text));
    for (language, lines) in [("yaml", &repair.patch), ("sh", &repair.command)] {
        if let Some(lines) = lines {
            let block = markdown_fence(language, lines);
            let indented: Vec<String> = block.lines().map(|line| format!("     {line}")).collect();
            let _ = writeln!(text, "\n{}", indented.join("\n"));
        }
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

/// What every single fault leads to.
pub(super) fn write_exploration(exploration: &Exploration) -> String {
    let lost: Vec<String> =
        exploration.ranking.iter().filter(|one| !one.is_survived).map(|one| one.fault.clone()).collect();
    let mark = if lost.is_empty() { "✅ every single fault is survived" } else { "❌ not survived:" };
    let names = some_of(&lost, SHOWN);
    format!(
        "### {mark} {}\n\n<details><summary>All faults</summary>\n\n{}\n</details>\n",
        escape(&names),
        markdown_fence("", &text::write_exploration(exploration))
    )
}
