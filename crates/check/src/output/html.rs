//! The form for a browser: one page that asks for nothing else.

use std::fmt::Write as _;

use tiphys_diag::{
    Diagnostic, Label, Severity,
    page::{STYLE, write_list},
    sanitize::html as escaped,
};

use super::{COLUMNS, ReportContents, Step, summary::shortened};
use crate::{Finding, causes::CauseGroup, patch};

/// What only this page has: its table of Applications.
const TABLE_STYLE: &str = include_str!("page.css");

/// The whole page. It runs no script and loads nothing; its policy forbids both. Writing to a `String` cannot
/// fail.
pub fn html(shown: &ReportContents<'_>) -> String {
    let groups = shown.groups();
    let verdict = shown.verdict_lines();
    let level = match groups.iter().map(|group| group.severity).max() {
        Some(Severity::Error) => "wrong",
        Some(_) => "unsure",
        None => "well",
    };
    let title = verdict.first().map(String::as_str).unwrap_or_default();
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{TABLE_STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header class=\"{level}\">\n<p class=\"tool\">tiphys check</p>\n<h1>{title}</h1>\n",
        title = escaped(title)
    );
    let of_causes = |line: &&String| !line.starts_with(|c: char| c.is_ascii_digit());
    for line in verdict.iter().skip(1).filter(of_causes) {
        let _ = writeln!(out, "<p>{}</p>", escaped(line));
    }
    out.push_str("</header>\n");
    write_contents(&mut out, &groups, shown);
    for (at, group) in groups.iter().enumerate() {
        write_cause(&mut out, at + 1, group, shown);
    }
    write_applications(&mut out, shown);
    let faults = shown.checked.faults.iter().map(tiphys_diag::render::concise).collect::<Vec<_>>();
    write_list(&mut out, "Comments that suppress nothing", &faults);
    write_list(&mut out, "No longer needed in the baseline", &shown.checked.unneeded);
    write_list(&mut out, "Taken to be in the cluster", &shown.checked.assumed);
    let notices = shown.survey.notices.iter().map(ToString::to_string);
    write_list(&mut out, "Not seen", &shown.unseen_lines().into_iter().chain(notices).collect::<Vec<_>>());
    write_list(&mut out, "Left out", &shown.unreached_line().into_iter().collect::<Vec<_>>());
    let _ = write!(
        out,
        "<footer>Made by tiphys {}. This page loads nothing and runs no script.</footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn write_contents(out: &mut String, groups: &[&CauseGroup], shown: &ReportContents<'_>) {
    if groups.len() < 2 {
        return;
    }
    out.push_str("<nav aria-label=\"Causes\">\n<ol>\n");
    for (at, group) in groups.iter().enumerate() {
        let message = &shown.checked.findings[group.findings[0]].diagnostic.message;
        let _ = writeln!(
            out,
            "<li><a href=\"#cause-{}\">{}</a> <span class=\"meaning\">{}</span></li>",
            at + 1,
            escaped(message),
            group.effect.words()
        );
    }
    out.push_str("</ol>\n</nav>\n");
}

fn write_cause(out: &mut String, number: usize, group: &CauseGroup, shown: &ReportContents<'_>) {
    let finding = &shown.checked.findings[group.findings[0]];
    let diagnostic = &finding.diagnostic;
    let class = if diagnostic.severity == Severity::Error { "asserted" } else { "possible" };
    let _ = write!(
        out,
        "<article class=\"cause {class}\" id=\"cause-{number}\" aria-labelledby=\"title-{number}\">\n\
         <p class=\"kind\"><code>{}</code> <span class=\"sureness\">{}, {}</span></p>\n\
         <h2 id=\"title-{number}\">{}</h2>\n",
        escaped(&diagnostic.rule),
        diagnostic.severity,
        group.effect.words(),
        escaped(&diagnostic.message)
    );
    write_places(out, diagnostic, shown);
    let titles: Vec<&str> = group.titles.iter().map(String::as_str).collect();
    let hits = if titles.len() > 1 { shortened(&titles) } else { String::new() };
    let also = group.also_in(&shown.checked.findings).join(", ");
    for (title, text) in [("Why", diagnostic.mechanism.as_str()), ("Also in", &also), ("Hits", &hits)] {
        if !text.is_empty() {
            let _ = writeln!(out, "<h3>{title}</h3>\n<p>{}</p>", escaped(text));
        }
    }
    write_remedy(out, finding, shown);
    out.push_str("</article>\n");
}

fn write_places(out: &mut String, diagnostic: &Diagnostic, shown: &ReportContents<'_>) {
    let write = |out: &mut String, label: &Label| {
        let line = shown.sources.line(&label.span).unwrap_or_default();
        let caption = format!("{} {}", label.span, label.text);
        let _ = writeln!(
            out,
            "<figure><blockquote>{}</blockquote><figcaption>{}</figcaption></figure>",
            escaped(line.trim_end()),
            escaped(caption.trim())
        );
    };
    diagnostic.primary.iter().chain(&diagnostic.related).for_each(|label| write(out, label));
}

fn write_remedy(out: &mut String, finding: &Finding, shown: &ReportContents<'_>) {
    let fix = finding.fix.as_ref();
    let ways = finding.diagnostic.help.iter().chain(fix.map(|fix| &fix.description));
    let ways: Vec<&String> = ways.collect();
    if ways.is_empty() {
        return;
    }
    out.push_str("<h3>What to do</h3>\n");
    for way in ways {
        let _ = writeln!(out, "<p>{}</p>", escaped(way));
    }
    let diff = fix.map(|fix| patch::unified(fix, shown.sources)).unwrap_or_default();
    if !diff.is_empty() {
        let _ = writeln!(out, "<pre tabindex=\"0\" aria-label=\"Patch\">{}</pre>", escaped(diff.trim_end()));
    }
}

fn write_applications(out: &mut String, shown: &ReportContents<'_>) {
    let rows = shown.applications();
    if rows.is_empty() {
        return;
    }
    let is_well = |row: &super::Row| row.steps == [Step::Yes; 4];
    let well = rows.iter().filter(|row| is_well(row)).count();
    let _ = write!(
        out,
        "<details class=\"more\"><summary><b>Applications</b> <span>{well} of {} are well</span></summary>\n<table>\n<thead><tr><th>Application</th>",
        rows.len()
    );
    for column in COLUMNS {
        let _ = write!(out, "<th>{column}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &rows {
        let _ = write!(out, "<tr><td>{}</td>", escaped(&row.title));
        for step in row.steps {
            let _ = write!(out, "<td class=\"{step:?}\">{}</td>", step.word());
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</details>\n");
}
