//! Prometheus' text form.

use std::fmt::Write as _;

use tiphys_model::Application;
use tiphys_source::Histogram;

/// The labels that every measurement of an Application has.
pub(super) fn pairs_of(app: &Application) -> Vec<(&'static str, String)> {
    vec![
        ("namespace", app.metadata.namespace.clone()),
        ("name", app.metadata.name.clone()),
        ("project", app.project().to_owned()),
    ]
}

/// `{a="b",c="d"}`.
pub(super) fn labels_of<N: AsRef<str>>(pairs: &[(N, String)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}=\"{}\"", name.as_ref(), escaped(value))).collect();
    format!("{{{}}}", all.join(","))
}

/// One family of metrics.
pub(crate) fn family(text: &mut String, name: &str, kind: &str, help: &str, rows: &[(String, f64)]) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in rows {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

/// The head of a histogram.
pub(super) fn head(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
}

/// The rows of a histogram.
pub(super) fn write_histogram(text: &mut String, name: &str, base: &[(&str, String)], took: &Histogram) {
    let with = |bound: String| labels_of(&[base.to_vec(), vec![("le", bound)]].concat());
    for (bound, count) in Histogram::BOUNDS.iter().zip(&took.within) {
        let _ = writeln!(text, "{name}_bucket{} {count}", with(bound.to_string()));
    }
    let _ = writeln!(text, "{name}_bucket{} {}", with("+Inf".to_owned()), took.count);
    let _ = writeln!(text, "{name}_sum{} {}", labels_of(base), took.seconds);
    let _ = writeln!(text, "{name}_count{} {}", labels_of(base), took.count);
}
