//! # A chart that its repository does not have
//!
//! The index of a chart repository lists its charts by name. Of much used repositories it is known which ones
//! they are; another name is most often that of the repository, of the program, or a slip.
//!
//! People see: `chart "open-telemetry" not found in https://… repository`, `no chart version found for …`.
//!
//! ## Bad
//! ```yaml
//! source: {repoURL: https://prometheus-community.github.io/helm-charts, chart: kube-prometheus, targetRevision: 75.4.0}
//! ```
//! ## Good
//! ```yaml
//! source: {repoURL: https://prometheus-community.github.io/helm-charts, chart: kube-prometheus-stack, targetRevision: 75.4.0}
//! ```
//! ## When to suppress
//! Where the chart is newer than this version of Tiphys.

use tiphys_diag::{Severity, similar_names};

use crate::{
    Context, Finding, Report, Rule,
    support::{chart_uses::ChartUse, dedup::Once, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-unknown-chart",
    incident: "D2",
    severity: Severity::Warning,
    title: "a chart that its repository does not have",
    page: page!("d2_unknown_chart.rs"),
    check,
};

const KNOWN: &str = include_str!("../../data/charts-of-repositories.txt");

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for used in
        context.chart_uses().iter().filter(|it| !placeholders::is_in(&it.chart) && !it.chart.is_empty())
    {
        // A name with a slash is told by another rule.
        let own = format!("/{}", used.chart);
        let repository = used.repository.strip_suffix(&own).unwrap_or(&used.repository);
        let Some(charts) = charts_of(repository).filter(|_| !used.chart.contains('/')) else { continue };
        if !charts.contains(&used.chart.as_str()) {
            once.add(&used.chart, finding(used, repository, &charts));
        }
    }
    once.report(report);
}

fn finding(used: &ChartUse, repository: &str, charts: &[&str]) -> Finding {
    const MOST: usize = 12;
    let near = similar_names::nearest_slip(&used.chart, charts.iter().copied());
    let longer: Vec<&str> = charts.iter().copied().filter(|it| it.contains(&used.chart)).collect();
    let help = match (near, longer.as_slice()) {
        (Some(near), _) => format!("write chart: {near}"),
        (None, []) if charts.len() > MOST => "look the name up in the repository's index".to_owned(),
        (None, []) => format!("it has {}", charts.join(", ")),
        (None, longer) => format!("it has {}", longer[..longer.len().min(MOST)].join(", ")),
    };
    let diagnostic = RULE
        .diagnostic(format!("there is no chart {} in {repository}, which {} takes", used.chart, used.by))
        .at(used.span.clone(), "no chart has this name")
        .because("the index of a chart repository lists its charts by name; of this one all are known")
        .help(help);
    Finding::new(RULE.incident, diagnostic).likely().perhaps(&used.chart, near)
}

/// The charts of a repository, if all of them are known.
fn charts_of(address: &str) -> Option<Vec<&'static str>> {
    let rest = address.strip_prefix("https://")?.trim_end_matches('/');
    let (host, folder) = rest.split_once('/').unwrap_or((rest, ""));
    let owner = host.strip_suffix(".github.io")?.to_lowercase();
    let lines = KNOWN.lines().filter(|line| !line.starts_with('#'));
    let mut known = lines.filter_map(|line| line.split_once(": "));
    let (_, names) = known.find(|(of, _)| match of.split_once('/') {
        Some((of, below)) => of == owner && below == folder,
        None => *of == owner,
    })?;
    Some(names.split(' ').collect())
}

#[cfg(test)]
mod tests {
    use super::charts_of;

    #[test]
    fn repositories_are_known_by_owner_and_folder() {
        assert!(charts_of("https://metallb.github.io/metallb").is_some_and(|it| it == ["metallb"]));
        assert!(
            charts_of("https://kubernetes.github.io/ingress-nginx/")
                .is_some_and(|it| it == ["ingress-nginx"])
        );
        for address in ["https://kubernetes.github.io/other", "https://charts.example.com", "metallb"] {
            assert!(charts_of(address).is_none(), "{address}");
        }
    }
}
