//! The form for people at a terminal.

use std::fmt::Write as _;

use super::{CauseView, Level, Report};

/// How wide a line of prose is.
const WIDTH: usize = 100;
/// How many groups of consequences, and lines of a list, are shown.
const SHOWN: (usize, usize) = (12, 40);
/// How wide the names of the parts of a cause are.
const LABEL: usize = 10;

/// How a text is set off.
#[derive(Clone, Copy)]
struct Style {
    color: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }
}

/// The whole report. Writing to a `String` cannot fail.
pub(crate) fn text(report: &Report, color: bool) -> String {
    let style = Style { color };
    let code = match report.level {
        Level::Well => "1;32",
        Level::Unsure => "1;33",
        Level::Wrong => "1;31",
    };
    let mut out = format!("{}\n{}\n", style.paint(code, &report.verdict), style.dim(&report.head));
    for (at, cause) in report.causes.iter().enumerate() {
        write_cause(&mut out, at + 1, cause, style);
    }
    for (title, lines) in [
        ("Considered and ruled out", &report.ruled_out),
        ("Not explained", &report.unexplained),
        ("Could not be seen", &report.not_seen),
    ] {
        write_list(&mut out, title, lines, style);
    }
    out
}

fn write_cause(out: &mut String, number: usize, cause: &CauseView, style: Style) {
    let sureness = if cause.is_asserted { "" } else { ", possible" };
    let _ = writeln!(
        out,
        "\n{} {}  {}",
        style.strong(&format!("{number}. {}", cause.object)),
        style.paint(if cause.is_asserted { "31" } else { "33" }, cause.id),
        style.dim(&format!("({} %{sureness})", cause.confidence))
    );
    let part = |out: &mut String, label: &str, text: &str| {
        let label = style.dim(&format!("{label:<LABEL$}"));
        for (at, line) in wrapped(text, WIDTH - 3 - LABEL).iter().enumerate() {
            let label = if at == 0 { label.clone() } else { " ".repeat(LABEL) };
            let _ = writeln!(out, "   {label}{line}");
        }
    };
    part(out, "what", if cause.summary.is_empty() { cause.meaning } else { &cause.summary });
    for (label, value) in [("field", &cause.field), ("since", &cause.since)] {
        if let Some(value) = value {
            part(out, label, value);
        }
    }
    for (at, line) in cause.written.iter().enumerate() {
        part(out, if at == 0 { "written" } else { "" }, line);
    }
    for (at, quote) in cause.evidence.iter().enumerate() {
        part(out, if at == 0 { "evidence" } else { "" }, &format!("“{}”", quote.text));
        part(out, "", &style.dim(&format!("  {}", quote.source)));
    }
    for (at, group) in cause.consequences.iter().take(SHOWN.0).enumerate() {
        let first = match group.members.as_slice() {
            [only] => only.clone(),
            _ => group.counts.clone(),
        };
        part(out, if at == 0 { "breaks" } else { "" }, &format!("{}: {first}", group.name));
    }
    if cause.consequences.len() > SHOWN.0 {
        part(out, "", &format!("and in {} more", cause.consequences.len() - SHOWN.0));
    }
    write_remedy(out, cause, style, &part);
}

fn write_remedy(out: &mut String, cause: &CauseView, style: Style, part: &dyn Fn(&mut String, &str, &str)) {
    if cause.remedy.is_empty() && cause.commands.is_empty() && cause.patch.is_none() {
        return;
    }
    part(out, "remedy", if cause.remedy.is_empty() { "run" } else { &cause.remedy });
    let indent = " ".repeat(3 + LABEL);
    for command in &cause.commands {
        let _ = writeln!(out, "{indent}{} {command}", style.dim("$"));
    }
    if let Some(patch) = &cause.patch {
        let _ = writeln!(out, "{indent}{}", style.dim(&format!("merge patch of {}:", cause.object)));
        for line in patch.lines() {
            let _ = writeln!(out, "{indent}  {line}");
        }
    }
    part(out, "", &style.dim(&cause.proof));
}

fn write_list(out: &mut String, title: &str, lines: &[String], style: Style) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", style.strong(title));
    for line in lines.iter().take(SHOWN.1) {
        let _ = writeln!(out, "   {line}");
    }
    if lines.len() > SHOWN.1 {
        let _ = writeln!(out, "   and {} more", lines.len() - SHOWN.1);
    }
}

/// A text in lines of at most so many characters, broken at blanks; longer words stay whole. Blanks at the
/// start stay.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let indent: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines = Vec::new();
    let (mut line, mut length) = (indent.clone(), indent.len());
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let longer = word.chars().count();
        if length > indent.len() && length + 1 + longer > width {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            length = indent.len();
        }
        if length > indent.len() {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += longer;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_at_blanks() {
        assert_eq!(wrapped("a bb ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrapped("  a bb", 5), ["  a", "  bb"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
