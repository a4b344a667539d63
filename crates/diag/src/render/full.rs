//! The form for people: the line, the caret, labelled other places, mechanism and help.

use std::borrow::Cow;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use crate::{Diagnostic, Label, Severity, SourceMap, sanitize};

/// Several lines with the source shown, as rustc shows its errors; coloured if `color`. Nothing of what is
/// shown commands the terminal.
pub fn full(diagnostic: &Diagnostic, sources: &SourceMap, color: bool) -> String {
    let diagnostic = &escape_texts(diagnostic);
    let sources = &sources_of(diagnostic, sources);
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.rule.as_str());
    let mut group = Group::with_title(title);
    for (label, kind) in labels(diagnostic) {
        group = group.element(place(label, kind, sources));
    }
    if !diagnostic.mechanism.is_empty() {
        group = group.element(Level::NOTE.with_name("mechanism").message(diagnostic.mechanism.as_str()));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// The diagnostic with its texts as a terminal may have them; the names of files stay for looking up their
/// texts.
fn escape_texts(diagnostic: &Diagnostic) -> Diagnostic {
    let mut diagnostic = diagnostic.clone();
    let own = |text: &mut String| {
        if let Cow::Owned(shown) = sanitize::terminal(text) {
            *text = shown;
        }
    };
    own(&mut diagnostic.message);
    own(&mut diagnostic.mechanism);
    diagnostic.help.iter_mut().for_each(own);
    for label in diagnostic.primary.iter_mut().chain(&mut diagnostic.related) {
        own(&mut label.text);
    }
    diagnostic
}

/// The texts that a diagnostic points into, as a terminal may have them, under names that it may have.
fn sources_of(diagnostic: &Diagnostic, sources: &SourceMap) -> SourceMap {
    let mut found = SourceMap::default();
    for (label, _) in labels(diagnostic) {
        let file = &label.span.file;
        if let Some(text) = sources.text(file) {
            found.insert(file.clone(), &*sanitize::source(text));
        }
    }
    found
}

fn labels(diagnostic: &Diagnostic) -> impl Iterator<Item = (&Label, AnnotationKind)> {
    let primary = diagnostic.primary.iter().map(|label| (label, AnnotationKind::Primary));
    primary.chain(diagnostic.related.iter().map(|label| (label, AnnotationKind::Context)))
}

fn place<'a>(label: &'a Label, kind: AnnotationKind, sources: &'a SourceMap) -> Element<'a> {
    let span = &label.span;
    let path = sanitize::line(&span.file);
    match (sources.text(&span.file), sources.bytes(span)) {
        (Some(text), Some(bytes)) => {
            let annotation = kind.span(bytes).label((!label.text.is_empty()).then_some(label.text.as_str()));
            Snippet::source(text).path(path).annotation(annotation).into()
        }
        _ => Origin::path(path).line(span.start.line as usize).char_column(span.start.column as usize).into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::Span;

    use super::*;

    #[test]
    fn nothing_commands_the_terminal() {
        let file = "a\u{1b}[31m\n::error::x.yaml";
        let mut sources = SourceMap::default();
        sources.insert(file, "k: \u{202e}x\u{9b}31m\u{1b}]0;t\u{7}\n");
        let evil = "m\u{1b}[31m\n::add-mask::x\u{200b}";
        let found = Diagnostic::error("r", evil)
            .at(Span::point(file, 1, 5), evil)
            .see(Span::point("other\u{9b}", 1, 1), evil)
            .because(evil)
            .help(evil);
        let text = full(&found, &sources, false);
        assert!(!text.chars().any(|c| sanitize::replacement(c).is_some()), "{text:?}");
        // What stands before another file is no command.
        let commands = |line: &str| line.trim_start().starts_with("::") && !line.starts_with(" ::: ");
        assert!(!text.lines().any(commands), "{text}");
        assert!(text.contains("\u{241b}]0;t"), "{text}");
    }

    #[test]
    fn shows_the_line_the_caret_and_what_to_do() {
        let mut sources = SourceMap::default();
        sources.insert("apps/web.yaml", "kind: Deployment\nspec:\n  replicas 2\n");
        let found = Diagnostic::error("yaml-syntax", "could not find expected ':'")
            .at(Span::point("apps/web.yaml", 3, 3), "a key needs a colon behind it")
            .see(Span::point("apps/other.yaml", 1, 1), "")
            .because("the file is not read any further")
            .help("write `replicas: 2`");
        let expected = "\
error[yaml-syntax]: could not find expected ':'
 --> apps/web.yaml:3:3
  |
3 |   replicas 2
  |   ^ a key needs a colon behind it
 ::: apps/other.yaml:1:1
  = mechanism: the file is not read any further
  = help: write `replicas: 2`";
        assert_eq!(full(&found, &sources, false), expected);
    }
}
