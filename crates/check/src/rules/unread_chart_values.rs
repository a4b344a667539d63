//! Values for charts that are out of reach, which these charts do not know.

use tiphys_diag::{Diagnostic, Severity, Span};
use tiphys_value::{FieldPath, Location, Value};
use tiphys_yaml::Profile;

use super::d2_unread_values::RULE;
use crate::{
    Context, Finding, Report,
    support::{
        chart_uses::{ChartUse, ValuesFile, ValuesWriter},
        dedup::Once,
        field_paths::{keys, place},
        known_values::{KnownValues, Unread},
        several_values,
        value_steps::{Step, path_below},
        withdrawn_values,
    },
};

/// How many values that nobody reads make a chart another one than is known.
const OF_ANOTHER_CHART: usize = 8;

/// Tells the values that known charts do not know.
pub(super) fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let mut lines = several_values::SilencedLines::default();
    for used in context.chart_uses() {
        let Some(known) = KnownValues::of_use(used) else { continue };
        for (index, values) in used.values.iter().enumerate() {
            let mut unread = known.find_unread(values);
            let is_another_chart = unread.len() >= OF_ANOTHER_CHART && is_mostly(unread.len(), values);
            let withdrawn = withdrawn_values::find(used, values).into_iter();
            unread.extend(withdrawn.filter(|it| known.has_top(&top_of(it))));
            if unread.is_empty() || is_another_chart || is_for_another(context, used, values) {
                continue;
            }
            let mut told: Vec<(&Unread<'_>, Span)> = unread
                .iter()
                .filter(|it| !is_read_elsewhere(context, used, it))
                .filter_map(|it| match place_of(context, used, index, &it.path) {
                    Some(span) if is_anchor(context, &span) => None,
                    Some(span) if is_given_to_others(context, used, it, &span) => None,
                    place => Some((it, place.unwrap_or_else(|| used.span.clone()))),
                })
                .collect();
            told.sort_by_key(|(_, span)| span.start.line);
            // Each with a comment of its own stands alone.
            let (silenced, told): (Vec<_>, Vec<_>) =
                told.into_iter().partition(|(_, span)| lines.contains(&context.survey.files, span));
            let (refused, ignored): (Vec<_>, Vec<_>) = told.into_iter().partition(|(it, _)| it.is_refused);
            let alone = silenced.into_iter().map(|it| vec![it]);
            let groups = [refused, ignored].into_iter().chain(alone);
            for several in groups.filter(|several| !several.is_empty()) {
                let names: Vec<String> = several.iter().map(|(it, _)| it.to_string()).collect();
                // A line that several releases have in common is told of once.
                once.add(&names.join(" "), finding(used, known, &names, &several));
            }
        }
    }
    once.report(report);
}

/// What is told of values of one writer that are all refused, or all ignored.
fn finding(
    used: &ChartUse,
    known: &KnownValues,
    names: &[String],
    several: &[(&Unread<'_>, Span)],
) -> Finding {
    let (oldest, newest) = known.versions;
    let basis = format!(
        "this goes by what versions {oldest} to {newest} of the chart know, the chart itself is out of reach"
    );
    let is_refused = several.iter().any(|(it, _)| it.is_refused);
    let (what, mechanism, [first, other]) = match is_refused {
        true => (
            "its schema refuses",
            "Helm renders nothing if values do not fit the schema of the chart",
            ["is refused", "so is this"],
        ),
        false => (
            "no template reads",
            "what it says has no effect: templates get the chart's own value",
            ["has no effect", "nor has this"],
        ),
    };
    let message = format!(
        "{} gives chart {} {}, which {what}",
        used.by,
        known.chart,
        several_values::the_values(names)
    );
    let spans = several.iter().map(|(_, span)| span.clone());
    let mut diagnostic = several_values::at_each(RULE.diagnostic(message), spans, first, other)
        .because(format!("{mechanism}; {basis}"));
    if is_refused {
        diagnostic.severity = Severity::Error;
    }
    let [(it, _)] = several else {
        for (it, _) in several.iter().filter(|(it, _)| !it.meant.is_empty()) {
            diagnostic = diagnostic.help(format!("for {it} the chart knows {}", it.meant.join(", ")));
        }
        let diagnostic = diagnostic.help("remove them, or write them as the chart's values have them");
        return Finding::new(RULE.incident, diagnostic).likely();
    };
    let finding = Finding::new(RULE.incident, with_known(diagnostic, it)).likely();
    match (it.path.last(), it.meant.as_slice()) {
        (Some(Step::Key(wrong)), [meant]) => {
            let name = meant.rsplit('.').next().unwrap_or(meant);
            finding.perhaps(wrong, Some(name).filter(|name| name != wrong))
        }
        _ => finding,
    }
}

/// A diagnostic of one value, with what the chart knows in its place.
fn with_known(diagnostic: Diagnostic, it: &Unread<'_>) -> Diagnostic {
    const MOST: usize = 8;
    let known: Vec<&str> = it.known.iter().copied().filter(|key| *key != "*").collect();
    match it.meant.as_slice() {
        [] if known.len() <= MOST => {
            diagnostic.help(format!("remove it; the chart knows in its place: {}", known.join(", ")))
        }
        [] => diagnostic.help("remove it, or write it as the chart's values have it"),
        meant => diagnostic.help(format!("the chart knows {}", meant.join(", "))),
    }
}

/// Whether so many of the values are unread that they may be those of another chart.
fn is_mostly(unread: usize, values: &Value) -> bool {
    const SHARE: usize = 4;
    unread * SHARE > count(values)
}

/// How many values there are that hold no others.
fn count(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum::<usize>().max(1),
        _ => 1,
    }
}

/// The key at the top of the values that leads to one.
fn top_of(it: &Unread<'_>) -> String {
    match it.path.first() {
        Some(Step::Key(key)) => (*key).to_owned(),
        _ => String::new(),
    }
}

/// Whether another chart is given the same values: each reads what it knows.
fn is_for_another(context: &Context<'_>, used: &ChartUse, values: &Value) -> bool {
    context.chart_uses().iter().any(|other| other.chart != used.chart && other.values.contains(values))
}

/// Whether one line gives a value to another chart, too, as a patch of all releases does: each reads what it
/// knows.
fn is_given_to_others(context: &Context<'_>, used: &ChartUse, it: &Unread<'_>, span: &Span) -> bool {
    let is_same = |other: &Span| other.file == span.file && other.start.line == span.start.line;
    let path = path_below(FieldPath::default(), &it.path);
    let others = context.chart_uses().iter().filter(|other| other.chart != used.chart);
    others.into_iter().any(|other| {
        other.values_at.as_ref().is_some_and(|place| {
            other.values.get(place.index).is_some_and(|values| path.get(values).is_some())
                && place_of(context, other, place.index, &it.path).is_some_and(|place| is_same(&place))
        })
    })
}

/// Whether a template reads a value that stands in the other values, or in the chart that depends on this.
fn is_read_elsewhere(context: &Context<'_>, used: &ChartUse, it: &Unread<'_>) -> bool {
    let Some(Step::Key(key)) = it.path.iter().rev().find(|step| matches!(step, Step::Key(_))) else {
        return false;
    };
    let Some(Step::Key(first)) = it.path.first() else { return false };
    let in_values = used.values.iter().any(|values| has_template_with(values, first));
    let templates = used.parent.as_ref().map(|folder| match folder.as_str() {
        "" => "templates/".to_owned(),
        folder => format!("{folder}/templates/"),
    });
    in_values
        || templates.is_some_and(|templates| {
            let files = &context.survey.files;
            let mut own = files.paths().filter(|path| path.starts_with(&templates));
            own.any(|path| files.text(path).is_some_and(|text| text.contains(key)))
        })
}

/// Whether a text among values is a template that names a value.
fn has_template_with(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text.contains("Values") && text.contains(name),
        Value::Array(items) => items.iter().any(|item| has_template_with(item, name)),
        Value::Object(map) => map.values().any(|below| has_template_with(below, name)),
        _ => false,
    }
}

/// Where a value stands, if that is known.
pub(super) fn place_of(
    context: &Context<'_>,
    used: &ChartUse,
    index: usize,
    path: &[Step<'_>],
) -> Option<Span> {
    if let Some(file) = used.files.iter().find(|file| file.index == index) {
        return place_in_file(context, file, path);
    }
    let place = used.values_at.as_ref().filter(|place| place.index == index)?;
    Some(match &place.writer {
        ValuesWriter::Release(at) => {
            let release = &context.survey.objects[*at];
            context.survey.span(release, &path_below(keys(&["spec", "values"]), path))
        }
        ValuesWriter::Application(app, field) => {
            context.survey.app_span(context.survey.app(*app), &path_below(field.clone(), path))
        }
    })
}

/// The line of a file that gives a value.
fn place_in_file(context: &Context<'_>, file: &ValuesFile, path: &[Step<'_>]) -> Option<Span> {
    let files = &context.survey.files;
    let text = files.text(&file.path)?;
    let document = tiphys_yaml::parse_first(&text, Profile::Go2).ok()??;
    let root = if file.below.is_empty() { FieldPath::default() } else { keys(&[&file.below]) };
    let start = place(&document.root, &path_below(root, path));
    Some(files.span(&Location::new(file.path.as_str(), start.line, start.column)))
}

/// Whether a line gives a value a name, which is there to be referred to.
fn is_anchor(context: &Context<'_>, span: &Span) -> bool {
    let text = context.survey.files.text(&span.file).unwrap_or_default();
    let line = text.lines().nth(span.start.line.max(1) as usize - 1).unwrap_or_default();
    line.contains(": &")
}
