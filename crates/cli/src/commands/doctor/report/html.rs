//! The form for a browser: one page that asks for nothing else.

use std::fmt::Write as _;

use tiphys_diag::page::{STYLE, write_list};

use super::{CauseView, Level, Quote, Report};
use crate::counted::counted;

/// The whole page. It runs no script and loads nothing; its policy forbids both. Writing to a `String` cannot
/// fail.
pub(crate) fn html(report: &Report) -> String {
    let level = match report.level {
        Level::Well => "well",
        Level::Unsure => "unsure",
        Level::Wrong => "wrong",
    };
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header class=\"{level}\">\n<p class=\"tool\">tiphys doctor</p>\n<h1>{}</h1>\n<p>{}</p>\n</header>\n",
        escaped(&report.verdict),
        escaped(&report.verdict),
        escaped(&report.head)
    );
    if report.causes.len() > 1 {
        write_contents(&mut out, report);
    }
    for (at, cause) in report.causes.iter().enumerate() {
        write_cause(&mut out, at + 1, cause);
    }
    for (title, lines) in [
        ("Not explained", &report.unexplained),
        ("Considered and ruled out", &report.ruled_out),
        ("Could not be seen", &report.not_seen),
    ] {
        write_list(&mut out, title, lines);
    }
    let _ = write!(
        out,
        "<footer>Made by tiphys {}. This page loads nothing and runs no script.</footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn write_contents(out: &mut String, report: &Report) {
    out.push_str("<nav aria-label=\"Causes\">\n<ol>\n");
    for (at, cause) in report.causes.iter().enumerate() {
        let _ = writeln!(
            out,
            "<li><a href=\"#cause-{}\">{}</a> <span class=\"meaning\">{}</span></li>",
            at + 1,
            escaped(&cause.object),
            escaped(cause.meaning)
        );
    }
    out.push_str("</ol>\n</nav>\n");
}

fn write_cause(out: &mut String, number: usize, cause: &CauseView) {
    let class = if cause.is_asserted { "asserted" } else { "possible" };
    let sureness = if cause.is_asserted { "sure" } else { "sure, possible only" };
    let _ = write!(
        out,
        "<article class=\"cause {class}\" id=\"cause-{number}\" aria-labelledby=\"title-{number}\">\n\
         <p class=\"kind\"><code>{}</code> <span class=\"sureness\">{} % {sureness}</span></p>\n\
         <h2 id=\"title-{number}\">{}</h2>\n<p class=\"summary\">{}</p>\n",
        cause.id,
        cause.confidence,
        escaped(&cause.object),
        escaped(if cause.summary.is_empty() { cause.meaning } else { &cause.summary })
    );
    let facts = [
        ("Means", Some(cause.meaning)),
        ("Field", cause.field.as_deref()),
        ("Since", cause.since.as_deref()),
    ];
    out.push_str("<dl>\n");
    for (label, value) in facts {
        if let Some(value) = value.filter(|value| *value != cause.summary) {
            let _ = writeln!(out, "<div><dt>{label}</dt><dd>{}</dd></div>", escaped(value));
        }
    }
    for line in &cause.written {
        let _ = writeln!(out, "<div><dt>Written</dt><dd>{}</dd></div>", escaped(line));
    }
    out.push_str("</dl>\n");
    write_evidence(out, &cause.evidence);
    write_consequences(out, cause);
    write_remedy(out, cause);
    out.push_str("</article>\n");
}

fn write_evidence(out: &mut String, evidence: &[Quote]) {
    if evidence.is_empty() {
        return;
    }
    out.push_str("<h3>Evidence</h3>\n");
    for quote in evidence {
        let _ = writeln!(
            out,
            "<figure><blockquote>{}</blockquote><figcaption>{}</figcaption></figure>",
            escaped(&quote.text),
            escaped(&quote.source)
        );
    }
}

fn write_consequences(out: &mut String, cause: &CauseView) {
    if cause.consequences.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>Breaks {}</h3>", counted(cause.broken, "object"));
    for group in &cause.consequences {
        let _ = writeln!(
            out,
            "<details><summary><b>{}</b> <span>{}</span></summary>\n<ul>",
            escaped(&group.name),
            escaped(&group.counts)
        );
        for member in &group.members {
            let _ = writeln!(out, "<li>{}</li>", escaped(member));
        }
        out.push_str("</ul></details>\n");
    }
}

fn write_remedy(out: &mut String, cause: &CauseView) {
    if cause.remedy.is_empty() && cause.commands.is_empty() && cause.patch.is_none() {
        return;
    }
    let _ = writeln!(out, "<h3>Remedy</h3>\n<p>{}</p>", escaped(&cause.remedy));
    // What scrolls can be reached by the keyboard.
    if !cause.commands.is_empty() {
        let commands = escaped(&cause.commands.join("\n"));
        let _ = writeln!(out, "<pre tabindex=\"0\" aria-label=\"Commands\"><code>{commands}</code></pre>");
    }
    if let Some(patch) = &cause.patch {
        let _ = writeln!(
            out,
            "<p class=\"note\">Merge patch of {}</p>\n<pre tabindex=\"0\" aria-label=\"Patch\"><code>{}</code></pre>",
            escaped(&cause.object),
            escaped(patch)
        );
    }
    let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(&cause.proof));
}

/// A text of others inside of an element or of a quoted attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_others_is_text() {
        assert_eq!(escaped("<b a='\"'>&"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
    }
}
