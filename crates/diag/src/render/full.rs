//! The form for people: the line, the caret, labelled other places, mechanism and help.

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use crate::{Diagnostic, Label, Severity, SourceMap};

/// Several lines with the source shown, as rustc shows its errors; coloured if `color`.
pub fn full(diagnostic: &Diagnostic, sources: &SourceMap, color: bool) -> String {
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

fn labels(diagnostic: &Diagnostic) -> impl Iterator<Item = (&Label, AnnotationKind)> {
    let primary = diagnostic.primary.iter().map(|label| (label, AnnotationKind::Primary));
    primary.chain(diagnostic.related.iter().map(|label| (label, AnnotationKind::Context)))
}

fn place<'a>(label: &'a Label, kind: AnnotationKind, sources: &'a SourceMap) -> Element<'a> {
    let span = &label.span;
    match (sources.text(&span.file), sources.bytes(span)) {
        (Some(text), Some(bytes)) => {
            let annotation = kind.span(bytes).label((!label.text.is_empty()).then_some(label.text.as_str()));
            Snippet::source(text).path(&*span.file).annotation(annotation).into()
        }
        _ => Origin::path(&*span.file)
            .line(span.start.line as usize)
            .char_column(span.start.column as usize)
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::Span;

    use super::*;

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
