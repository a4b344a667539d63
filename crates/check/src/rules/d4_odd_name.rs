//! # One place calls the cluster, region, domain or repository otherwise
//!
//! Some names stand in many files: that of the cluster in Terraform and in the values of controllers, the
//! domain in every host, the region in every store of secrets, the address of the repository in every
//! Application. Where one place has nearly the name that all others have, it is a slip; what goes by it finds
//! nothing, and says so only much later.
//!
//! People see: `cluster "acme-prd" not found`, `No cluster found for name: acme-prd`, `repository not found`,
//! `ResourceNotFoundException: Secrets Manager can't find the specified secret`, a host that no DNS has.
//!
//! ## Bad
//! ```yaml
//! # Terraform: cluster_name = "acme-prod"
//! source: {chart: cluster-autoscaler, helm: {valuesObject: {autoDiscovery: {clusterName: acme-prd}}}}
//! ```
//! ## Good
//! ```yaml
//! source: {chart: cluster-autoscaler, helm: {valuesObject: {autoDiscovery: {clusterName: acme-prod}}}}
//! ```
//! ## When to suppress
//! Where both names are right.

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;
use tiphys_diag::{Severity, Span, similar_names};
use tiphys_graph::{Object, ObjectScope, tools::terraform::Block};
use tiphys_model::repository;
use tiphys_value::{FieldPath, ObjectExt};

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        cloud_facts::is_example,
        cluster::Cluster,
        dedup::Once,
        field_paths::{self, keys},
        placeholders,
        pods::list,
        unused_files,
        value_steps::{Step, each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D4-odd-name",
    incident: "D4",
    severity: Severity::Warning,
    title: "one place calls the cluster, region, domain or repository otherwise",
    page: page!("d4_odd_name.rs"),
    check,
};

/// A name that stands somewhere.
struct Fact {
    value: String,
    span: Span,
    /// Who says so, for messages.
    who: String,
}

/// How many places have to agree for one to be odd.
const ENOUGH: usize = 3;

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let of_terraform = clusters_of_terraform(context);
    for named in clusters_of_charts(context).values() {
        slips("cluster", named, &of_terraform, 1, &mut once);
    }
    for cluster in context.clusters() {
        slips("domain", &domains(context, cluster), &[], ENOUGH, &mut once);
        regions(context, cluster, &mut once);
    }
    slips("repository", &repositories(context), &[], ENOUGH, &mut once);
    once.report(report);
}

/// Names that stand in one place and are slips for one that stands in several, or in as many others.
fn slips(what: &str, facts: &[Fact], others: &[Fact], enough: usize, once: &mut Once) {
    let mut by_value: BTreeMap<&str, Vec<&Fact>> = BTreeMap::new();
    for fact in facts.iter().chain(others) {
        by_value.entry(&fact.value).or_default().push(fact);
    }
    for (value, places) in &by_value {
        let [odd] = places[..] else { continue };
        if others.iter().any(|it| std::ptr::eq(it, odd)) {
            continue;
        }
        let mut usual = by_value.iter().filter(|(other, places)| *other != value && places.len() >= enough);
        let Some((meant, _)) = usual.find(|(other, _)| is_slip(value, other)) else { continue };
        let known = &by_value[meant];
        let count = known.len();
        let places = if count == 1 { "another place has".to_owned() } else { format!("{count} others have") };
        let diagnostic = RULE
            .diagnostic(format!("{} has {what} {value}, and {places} {meant}", odd.who))
            .at(odd.span.clone(), "the only one that says so")
            .see(known[0].span.clone(), format!("{} has {meant}", known[0].who))
            .because("what goes by a name that nothing else has finds nothing")
            .help(format!("write {meant}"));
        let finding = Finding::new(RULE.incident, diagnostic).likely();
        once.add(value, finding.with_spelling(*value, *meant));
    }
}

/// Whether two names are the same but for one word, which is nearly the other's: `eu` and `us`, `lan` and `wan`,
/// `team-a` and `team-b`, `db1` and `db2`, `chart` and `charts` are names of their own.
fn is_slip(name: &str, other: &str) -> bool {
    // Of a short word a letter may be lost; another letter makes another word.
    const SHORTEST: usize = 3;
    const SHORTEST_OF_ONE_LENGTH: usize = 5;
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
    };
    let (own, others) = (words(name), words(other));
    let differing: Vec<_> = own.iter().zip(&others).filter(|(one, other)| one != other).collect();
    let [(one, other)] = differing[..] else { return false };
    let shortest = if one.len() == other.len() { SHORTEST_OF_ONE_LENGTH } else { SHORTEST };
    let is_plural =
        one.strip_suffix('s') == Some(other.as_str()) || other.strip_suffix('s') == Some(one.as_str());
    own.len() == others.len()
        && one.len().min(other.len()) >= shortest
        && !is_plural
        && !similar_names::differ_in_digits_only(one, other)
        && similar_names::nearest_slip(one, [other.as_str()].into_iter()).is_some()
}

/// Where the values of much used charts name the cluster.
const CLUSTER_VALUES: [(&str, &[&str]); 6] = [
    ("aws-cloudwatch-metrics", &["clusterName"]),
    ("aws-load-balancer-controller", &["clusterName"]),
    ("cluster-autoscaler", &["autoDiscovery", "clusterName"]),
    ("karpenter", &["settings", "clusterName"]),
    ("karpenter", &["settings", "aws", "clusterName"]),
    ("k8s-monitoring", &["cluster", "name"]),
];

/// The names that values of charts give their cluster, by where they are released.
fn clusters_of_charts(context: &Context<'_>) -> BTreeMap<ObjectScope, Vec<Fact>> {
    let mut found: BTreeMap<ObjectScope, Vec<Fact>> = BTreeMap::new();
    for used in context.chart_uses() {
        let Some(release) = &used.release else { continue };
        for (chart, path) in CLUSTER_VALUES.iter().filter(|(chart, _)| *chart == used.chart) {
            let steps: Vec<Step<'_>> = path.iter().map(|step| Step::Key(step)).collect();
            for (index, values) in used.values.iter().enumerate() {
                let Some(name) = values.str_at(path).filter(|name| is_plain(name)) else { continue };
                let span = place_of(context, used, index, &steps).unwrap_or_else(|| used.span.clone());
                found.entry(release.scope.clone()).or_default().push(Fact {
                    value: name.to_owned(),
                    span,
                    who: format!("chart {chart}"),
                });
            }
        }
    }
    found
}

/// The names of the clusters that Terraform makes.
fn clusters_of_terraform(context: &Context<'_>) -> Vec<Fact> {
    let mut found = Vec::new();
    for (file, blocks) in &context.survey.tools().terraform.files {
        if is_example(file) || unused_files::is_in_unused_folder(file) {
            continue;
        }
        for block in blocks {
            let name = cluster_attribute(block).and_then(|attribute| block.get(attribute));
            let Some(expression) = name else { continue };
            let Some(text) = expression.as_str().filter(|text| is_plain(text)) else { continue };
            let who = format!("Terraform's {}", block.address());
            found.push(Fact { value: text.to_owned(), span: expression.span.clone(), who });
        }
    }
    found
}

/// The attribute of a block that names the cluster it makes.
fn cluster_attribute(block: &Block) -> Option<&'static str> {
    let source = block.str("source").unwrap_or_default();
    let is_module = block.kind == "module" && (source.contains("/eks/") || source.ends_with("/eks"));
    let resources = ["aws_eks_cluster", "google_container_cluster", "azurerm_kubernetes_cluster"];
    if is_module && block.get("cluster_name").is_some() {
        Some("cluster_name")
    } else {
        let makes = is_module || resources.iter().any(|kind| block.is_resource(kind));
        makes.then_some("name")
    }
}

/// The domains of the hosts that come into a cluster: what follows the first step.
fn domains(context: &Context<'_>, cluster: &Cluster<'_>) -> Vec<Fact> {
    let mut found: Vec<Fact> = Vec::new();
    for object in &cluster.objects {
        for (field, host) in hosts(object) {
            let Some((_, domain)) = host.split_once('.').filter(|(_, domain)| domain.contains('.')) else {
                continue;
            };
            if !is_plain(host.trim_start_matches("*.")) {
                continue;
            }
            // One object counts once, however often it says so.
            let who = object.title();
            if found.iter().all(|it| it.who != who || it.value != domain) {
                found.push(Fact { value: domain.to_owned(), span: context.survey.span(object, &field), who });
            }
        }
    }
    found
}

/// The hosts of an object that brings them in.
fn hosts(object: &Object) -> Vec<(FieldPath, &str)> {
    let spec = &object.value()["spec"];
    let texts = |field: &'static str| {
        let all = list(spec, field).iter().enumerate();
        all.filter_map(move |(at, it)| Some((keys(&["spec", field]).index(at), it.as_str()?))).collect()
    };
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("networking.k8s.io", "Ingress") => {
            let rules = list(spec, "rules").iter().enumerate();
            rules
                .filter_map(|(at, it)| {
                    Some((keys(&["spec", "rules"]).index(at).key("host"), it.str_at(&["host"])?))
                })
                .collect()
        }
        ("gateway.networking.k8s.io", kind) if kind.ends_with("Route") => texts("hostnames"),
        ("networking.istio.io", "VirtualService") => texts("hosts"),
        ("cert-manager.io", "Certificate") => texts("dnsNames"),
        _ => Vec::new(),
    }
}

/// The Git repositories that Applications read.
fn repositories(context: &Context<'_>) -> Vec<Fact> {
    let survey = context.survey;
    let mut found = Vec::new();
    for app in &survey.apps {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            if !source.chart.is_empty() || placeholders::is_in(&source.repo_url) {
                continue;
            }
            let span = survey.app_span(app, &field_paths::source(spec, at).key("repoURL"));
            let who = format!("Application {}", app.name());
            found.push(Fact { value: repository::normalize(&source.repo_url), span, who });
        }
    }
    found
}

/// A region that one place of a cluster has, where all others, and Terraform, have another one.
fn regions(context: &Context<'_>, cluster: &Cluster<'_>, once: &mut Once) {
    static REGION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^(?:af|ap|ca|eu|il|me|mx|sa|us)(?:-gov)?-(?:north|south|east|west|central)+-[1-9]$")
            .expect("the pattern is well formed")
    });
    let ObjectScope::Cluster(..) = cluster.scope() else { return };
    let mut found: Vec<Fact> = Vec::new();
    for object in cluster.objects.iter().filter(|it| !is_of_several_regions(it)) {
        each_text(object.value(), &mut Vec::new(), &|_| true, &mut |steps, text| {
            if REGION.is_match(text) {
                let span = context.survey.span(object, &path_below(FieldPath::default(), steps));
                found.push(Fact { value: text.to_owned(), span, who: object.title() });
            }
        });
    }
    let files = &context.survey.files;
    let configured = files.ending(&[".tf", ".tfvars", ".hcl"]).filter(|path| !is_example(path));
    let of_terraform: String =
        configured.filter_map(|path| files.text(path)).map(|text| text.to_string()).collect();
    let mut counts: BTreeMap<&str, Vec<&Fact>> = BTreeMap::new();
    found.iter().for_each(|fact| counts.entry(&fact.value).or_default().push(fact));
    let [(one, few), (other, many)] = counts.iter().collect::<Vec<_>>()[..] else { return };
    let (odd, usual, places, known) =
        if few.len() <= many.len() { (one, other, few, many) } else { (other, one, many, few) };
    let [fact] = places[..] else { return };
    let is_settled = of_terraform.contains(*usual) && !of_terraform.contains(*odd);
    if !is_settled || known.len() + 1 < ENOUGH {
        return;
    }
    let diagnostic = RULE
        .diagnostic(format!(
            "{} has region {odd}, and {} others and Terraform have {usual}",
            fact.who,
            known.len()
        ))
        .at(fact.span.clone(), "the only one that says so")
        .see(known[0].span.clone(), format!("{} has {usual}", known[0].who))
        .because("in another region the cloud finds nothing by the names that are meant")
        .help(format!("write {usual}, if nothing is kept in {odd}"));
    once.add(odd, Finding::new(RULE.incident, diagnostic).likely());
}

/// Whether an object is about more regions than one, or about a bucket or copy that may be anywhere.
fn is_of_several_regions(object: &Object) -> bool {
    const ELSEWHERE: [&str; 5] = ["replica", "backup", "dr-", "global", "cloudfront"];
    let name = object.key.name.to_ascii_lowercase();
    ELSEWHERE.iter().any(|word| name.contains(word)) || object.key.kind == "CustomResourceDefinition"
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !placeholders::is_in(text)
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::{is_plain, is_slip};

    #[test]
    fn names_of_their_own_are_no_slips() {
        assert!(is_slip("acme-prd", "acme-prod") && is_slip("shop.exmaple.io", "shop.example.io"));
        assert!(!is_slip("edge-lan.acme.io", "edge-wan.acme.io") && !is_slip("acme/charts", "acme/chart"));
        for (one, other) in
            [("acme-eu", "acme-us"), ("qa.acme.io", "prod.acme.io"), ("db1", "db2"), ("a-b", "a")]
        {
            assert!(!is_slip(one, other), "{one} {other}");
        }
    }

    #[test]
    fn names_that_something_fills_in_are_left_alone() {
        assert!(!is_plain("acme-${ENV}") && !is_plain("{{ name }}") && !is_plain(""));
        assert!(is_plain("acme-prod"));
    }
}
