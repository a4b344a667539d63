//! Charts whose dependencies are out of reach.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use regex::Regex;
use tiphys_helm::{Chart, ChartFile};

/// What a rendering misses where it lacks the dependencies of a chart.
pub(super) fn dependencies_of(chart: &Chart) -> String {
    format!("{DEPENDENCIES}{}", chart.name())
}

const DEPENDENCIES: &str = "dependencies of chart ";

/// Whether what is missed is dependencies of a chart.
pub(super) fn is_of_chart(missed: &str) -> bool {
    missed.starts_with(DEPENDENCIES)
}

/// Takes from a chart the dependencies that it lacks, the templates that ask for them, and those of some
/// names.
pub(super) fn reduce(chart: &mut Chart, left_out: &BTreeSet<String>) {
    let missing: Vec<String> = chart
        .missing_dependencies()
        .iter()
        .flat_map(|it| [it.name.clone(), it.alias.clone()])
        .filter(|name| !name.is_empty())
        .collect();
    let missed: Vec<_> = chart.missing_dependencies().into_iter().cloned().collect();
    chart.metadata.dependencies.retain(|wanted| !missed.contains(wanted));
    let texts: Vec<(&ChartFile, String)> = chart
        .templates
        .iter()
        .map(|file| {
            let bytes = file.data().map(|data| data.to_vec()).unwrap_or_default();
            (file, String::from_utf8_lossy(&bytes).into_owned())
        })
        .collect();
    let mut tainted: BTreeSet<usize> = BTreeSet::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    loop {
        let before = tainted.len();
        for (at, (file, text)) in texts.iter().enumerate() {
            if tainted.contains(&at) || !(asks_for(text, &missing) || includes(text, &names)) {
                continue;
            }
            tainted.insert(at);
            if file.name.rsplit('/').next().is_some_and(|base| base.starts_with('_')) {
                names.extend(DEFINED.captures_iter(text).map(|found| found[1].to_owned()));
            }
        }
        if tainted.len() == before {
            break;
        }
    }
    let is_partial = |file: &ChartFile| file.name.rsplit('/').next().is_some_and(|it| it.starts_with('_'));
    let kept = texts.iter().enumerate().filter(|(at, (file, _))| {
        // What is defined there is not rendered by itself.
        (is_partial(file) || !tainted.contains(at)) && !left_out.contains(file.name.as_ref())
    });
    chart.templates = Arc::new(kept.map(|(_, (file, _))| (*file).clone()).collect());
}

/// The names of templates that a text defines.
static DEFINED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"define\s+"([^"]+)""#).expect("the expression is right"));

/// Whether a template includes one of some names.
fn includes(text: &str, names: &BTreeSet<String>) -> bool {
    names.iter().any(|name| text.contains(&format!("\"{name}\"")))
}

/// Whether a template looks at the values of charts, whose own defaults nobody knows, or at the charts
/// themselves.
fn asks_for(text: &str, charts: &[String]) -> bool {
    let values = |name: &str| {
        let path = format!(".Values.{name}");
        let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        text.match_indices(&path).any(|(at, _)| is_whole(&text[at + path.len()..]))
    };
    text.contains(".Subcharts")
        || charts
            .iter()
            .any(|name| values(name) || (text.contains(".Values") && text.contains(&format!("\"{name}\""))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_chart_are_told_from_values_that_begin_alike() {
        let charts = ["db".to_owned()];
        for (text, expected) in [
            ("{{ .Values.db.host }}", true),
            ("{{ index .Values \"db\" \"host\" }}", true),
            ("{{ .Values.dbName }}", false),
            ("{{ .Values.web.db }}", false),
        ] {
            assert_eq!(asks_for(text, &charts), expected, "{text}");
        }
    }
}
