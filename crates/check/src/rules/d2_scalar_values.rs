//! # A value of another kind than a chart takes
//!
//! Templates read values below one another: `ports.http.port`. Where somebody gives a number for
//! `ports.http`, the template finds nothing below it, and Helm ends. Newer versions of a chart often turn a
//! number into a map. Lists and maps do not stand for each other, `"false"` is a text that counts as true,
//! and a chart with a schema refuses every other kind.
//!
//! What the rule says of charts that are out of reach goes by the values that they are known to read.
//!
//! People see: `can't evaluate field port in type interface {}`,
//! `cannot overwrite table with non table`, `Invalid type. Expected: boolean, given: string`, a release that
//! is not rendered.
//!
//! ## Bad
//! ```yaml
//! ports: {http: 30080}
//! ```
//! ## Good
//! ```yaml
//! ports: {http: {port: 80, nodePort: 30080}}
//! ```
//! ## When to suppress
//! Where the version that is installed takes the other kind there, and is none that was looked at.

use tiphys_diag::Severity;
use tiphys_value::Value;

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_uses::ChartUse,
        dedup::Once,
        known_values::{KnownValues, Scalar},
        several_values,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-scalar-values",
    incident: "D2",
    severity: Severity::Warning,
    title: "a value of another kind than a chart takes",
    page: page!("d2_scalar_values.rs"),
    check,
};

/// How many of them make a chart another one than is known.
const OF_ANOTHER_CHART: usize = 4;

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for used in context.chart_uses() {
        let Some(known) = KnownValues::of_use(used) else { continue };
        for (index, values) in used.values.iter().enumerate() {
            kinds(context, used, known, (index, values), &mut once);
            let scalars = known.find_scalars(values);
            if scalars.is_empty() || scalars.len() >= OF_ANOTHER_CHART {
                continue;
            }
            const MOST: usize = 8;
            let (oldest, newest) = known.versions;
            let names: Vec<String> = scalars.iter().map(ToString::to_string).collect();
            let span = |it: &Scalar<'_>| {
                place_of(context, used, index, &it.path).unwrap_or_else(|| used.span.clone())
            };
            let below = |it: &Scalar<'_>| {
                let below: Vec<&str> = it.known.iter().take(MOST).copied().collect();
                format!("the chart reads {} below it", below.join(", "))
            };
            let mut diagnostic = RULE
                .diagnostic(format!(
                    "{} gives chart {} no map for {}",
                    used.by,
                    known.chart,
                    several_values::the_values(&names)
                ))
                .at(span(&scalars[0]), below(&scalars[0]));
            for it in &scalars[1..] {
                diagnostic = diagnostic.see(span(it), below(it));
            }
            let diagnostic = diagnostic
                .because("a template that reads below a text or number ends, and Helm renders nothing")
                .help(format!(
                    "this goes by what versions {oldest} to {newest} of the chart read, which is out of reach"
                ));
            let finding = Finding::new(RULE.incident, diagnostic).likely();
            once.add(&format!("{} {}", names.join(" "), used.by), finding);
        }
    }
    once.report(report);
}

/// Tells the values of one writer that are of another kind than the chart takes.
fn kinds(
    context: &Context<'_>,
    used: &ChartUse,
    known: &KnownValues,
    (index, values): (usize, &Value),
    once: &mut Once,
) {
    let wrong = known.find_wrong_kinds(used, values);
    if wrong.is_empty() || wrong.len() >= OF_ANOTHER_CHART {
        return;
    }
    let (oldest, newest) = known.versions;
    for it in &wrong {
        let span = place_of(context, used, index, &it.path).unwrap_or_else(|| used.span.clone());
        let mut diagnostic = RULE
            .diagnostic(format!(
                "{} gives chart {} {} for {it}, which is {} there",
                used.by, known.chart, it.given, it.wanted
            ))
            .at(span, format!("{} is meant", it.wanted))
            .help(format!(
                "this goes by what versions {oldest} to {newest} of the chart take, which is out of reach"
            ));
        diagnostic.mechanism = match it.wanted.is_asked {
            true => "Helm renders nothing if values do not fit the schema of the chart".to_owned(),
            false => "templates write it where the other kind stands, or take it for true".to_owned(),
        };
        once.add(&format!("{it} {}", used.by), Finding::new(RULE.incident, diagnostic).likely());
    }
}
