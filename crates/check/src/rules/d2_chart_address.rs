//! # No charts are published at the address
//!
//! A chart repository is a folder with an `index.yaml`. Of much used hosts it is known in which folders they
//! have one; at any other address of the host there is none. The folder is easily left out, or written twice.
//!
//! People see: `looks like "https://…" is not a valid chart repository or cannot be reached: failed to fetch
//! https://…/index.yaml : 404 Not Found`.
//!
//! ## Bad
//! ```yaml
//! source: {repoURL: https://prometheus-community.github.io/charts, chart: prometheus, targetRevision:
//! 25.0.0}
//! ```
//! ## Good
//! ```yaml
//! source: {repoURL: https://prometheus-community.github.io/helm-charts, chart: prometheus, targetRevision:
//! 25.0.0}
//! ```
//! ## When to suppress
//! Where the host publishes charts in a folder that is newer than this version of Tiphys.

use tiphys_diag::Severity;

use crate::{
    Context, Finding, Report, Rule,
    support::{chart_uses::ChartUse, dedup::Once, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-chart-address",
    incident: "D2",
    severity: Severity::Warning,
    title: "an address at which no charts are published",
    page: page!("d2_chart_address.rs"),
    check,
};

const KNOWN: &str = include_str!("../../data/addresses-of-repositories.txt");

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for used in context.chart_uses().iter().filter(|it| !placeholders::is_in(&it.repository)) {
        let own = format!("/{}", used.chart);
        let address = used.repository.strip_suffix(&own).unwrap_or(&used.repository);
        if let Some(right) = right_addresses(address) {
            once.add(address, finding(used, address, &right));
        }
    }
    once.report(report);
}

fn finding(used: &ChartUse, address: &str, right: &[String]) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!(
            "no charts are published at {address}, where {} takes {} from",
            used.by, used.chart
        ))
        .at(used.span.clone(), "taken from there")
        .because("a chart repository has an index.yaml, and this address of the host has none")
        .help(format!("write {}", right.join(", or ")));
    Finding::new(RULE.incident, diagnostic).likely()
}

/// The addresses at which a host publishes charts, if they are known and the given one is none of them.
fn right_addresses(address: &str) -> Option<Vec<String>> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let (host, folder) =
        rest.trim_end_matches('/').split_once('/').unwrap_or((rest.trim_end_matches('/'), ""));
    let lines = KNOWN.lines().filter(|line| !line.starts_with('#'));
    let (_, folders) = lines.filter_map(|line| line.split_once(": ")).find(|(known, _)| *known == host)?;
    let folders: Vec<&str> = folders.split(' ').map(|it| if it == "." { "" } else { it }).collect();
    let address = |folder: &&str| match *folder {
        "" => format!("https://{host}"),
        folder => format!("https://{host}/{folder}"),
    };
    (!folders.contains(&folder)).then(|| folders.iter().map(address).collect())
}

#[cfg(test)]
mod tests {
    use super::right_addresses;

    #[test]
    fn hosts_have_charts_in_their_folders_alone() {
        for right in [
            "https://charts.jetstack.io",
            "https://charts.jetstack.io/",
            "https://helm.traefik.io/traefik",
            "https://nats-io.github.io/k8s/helm/charts/",
            "https://charts.example.com/stable",
            "oci://charts.jetstack.io/stable",
        ] {
            assert_eq!(right_addresses(right), None, "{right}");
        }
        let wrong = right_addresses("https://helm.traefik.io").expect("the folder is missing");
        assert_eq!(wrong, ["https://helm.traefik.io/traefik"]);
        assert!(right_addresses("https://charts.jetstack.io/charts").is_some());
        assert!(right_addresses("https://prometheus-community.github.io").is_some());
    }
}
