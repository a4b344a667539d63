//! # A chart pulls images that were withdrawn
//!
//! What a chart pulls stands in its own defaults, which are as old as its version. When a publisher withdraws
//! the tags, as Bitnami did on 2025-08-28, every version of the chart before that day names images that
//! cannot be pulled any more – and so do values that name one of its tags. Pods that run keep running until a
//! node has to pull the image again.
//!
//! People see: `Failed to pull image "docker.io/bitnami/rabbitmq:4.1.3-debian-12-r1": … not found`,
//! `ImagePullBackOff`.
//!
//! ## Bad
//! ```yaml
//! spec: {source: {repoURL: https://charts.bitnami.com/bitnami, chart: rabbitmq, targetRevision: 14.0.0}}
//! ```
//! ## Good
//! ```yaml
//! # A chart or operator of the publisher of the software itself; for the time being, in the values of the old one:
//! image: {repository: bitnamilegacy/rabbitmq}
//! ```
//! ## When to suppress
//! Where the cluster pulls through a mirror that still has the image.

use tiphys_diag::Severity;
use tiphys_value::Value;

use super::e3_withdrawn_image::withdrawn;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_uses::ChartUse,
        dedup::Once,
        images::{DOCKER, Image},
        known_charts, placeholders,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E3-withdrawn-chart",
    incident: "E3",
    severity: Severity::Error,
    title: "a chart that pulls images that were withdrawn",
    page: page!("e3_withdrawn_chart.rs"),
    check,
};

const OF_BITNAMI: &str = include_str!("../../data/charts-of-bitnami.txt");

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for used in context.chart_uses() {
        if placeholders::is_in(&used.repository) || placeholders::is_skeleton(&used.span.file) {
            continue;
        }
        let named = withdrawn_images(used);
        let cause = named.first().cloned();
        match cause {
            Some(image) => once.add(&image, by_values(context, used, &image)),
            None if !used.has_hidden_values && is_by_default(used) => {
                once.add(&used.chart, by_default(context, used))
            }
            None => {}
        }
    }
    once.report(report);
}

/// The images that the values name and that were withdrawn.
fn withdrawn_images(used: &ChartUse) -> Vec<String> {
    let mut found = Vec::new();
    for values in &used.values {
        images(used, values, 0, &mut found);
    }
    // A chart whose values name only the tag brings the rest itself.
    let (repository, tag) = (used.text(&["image", "repository"]), used.text(&["image", "tag"]));
    if let (None, Some(tag)) = (repository, tag.filter(|tag| !tag.is_empty()))
        && is_of_bitnami(used)
        && pulls_from_docker(used, &[])
        && used.text(&["image", "digest"]).is_none_or(|digest| digest.is_empty())
    {
        found.push(format!("docker.io/bitnami/{}:{tag}", used.chart));
    }
    let is_gone = |name: &String| {
        let image = Image::parse(name);
        image.is_some_and(|image| withdrawn(&image).is_some_and(|(_, severity)| severity == Severity::Error))
    };
    found.retain(is_gone);
    found
}

/// Images that stand in values as `repository` and `tag`, with or without `registry`, in parts of the chart
/// that are not switched off.
fn images(used: &ChartUse, values: &Value, depth: usize, found: &mut Vec<String>) {
    const MAX_DEPTH: usize = 16;
    let Some(map) = values.as_object().filter(|_| depth < MAX_DEPTH) else { return };
    // A part that is switched off pulls nothing.
    if map.get("enabled") == Some(&Value::Bool(false)) {
        return;
    }
    let text = |key: &str| map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let (Some(repository), Some(tag), None) = (text("repository"), text("tag"), text("digest"))
        && pulls_from_docker(used, &[values])
    {
        found.push(match text("registry") {
            Some(registry) => format!("{registry}/{repository}:{tag}"),
            None => format!("{repository}:{tag}"),
        });
    }
    for below in map.values() {
        images(used, below, depth + 1, found);
    }
}

/// Whether no other registry is given for an image, or for all of them.
fn pulls_from_docker(used: &ChartUse, own: &[&Value]) -> bool {
    let for_all = used.text(&["global", "imageRegistry"]);
    let of_image = own.iter().filter_map(|values| values.get("registry")?.as_str());
    let of_image = of_image.map(str::to_owned).next();
    let registry = for_all.into_iter().chain(of_image.or_else(|| used.text(&["image", "registry"])));
    registry
        .into_iter()
        .all(|registry| matches!(registry.as_str(), "" | DOCKER | "registry-1.docker.io" | "index.docker.io"))
}

fn is_of_bitnami(used: &ChartUse) -> bool {
    ["charts.bitnami.com/", "/bitnamicharts/", "bitnami/charts/"]
        .iter()
        .any(|part| used.repository.contains(part))
}

/// Whether the images that the chart names by itself were withdrawn, and nothing puts others in their place.
fn is_by_default(used: &ChartUse) -> bool {
    let mut known =
        OF_BITNAMI.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let Some((_, first)) = known.find(|(chart, _)| *chart == used.chart).filter(|_| is_of_bitnami(used))
    else {
        return false;
    };
    let version = used.version.trim();
    // What a range of versions without an end stands for is as new as can be.
    let is_told =
        !version.is_empty() && !version.contains(['>', '*', '$', '{']) && !version.starts_with(['x', 'X']);
    let is_replaced = ["repository", "digest"]
        .iter()
        .any(|field| used.text(&["image", field]).is_some_and(|it| !it.is_empty()))
        || used.text(&["image", "tag"]).is_some_and(|tag| !tag.is_empty());
    is_told && known_charts::is_older(version, first) && !is_replaced && pulls_from_docker(used, &[])
}

const LEGACY: &str = "for the time being: bitnamilegacy/ holds the old tags, without updates; better is the publisher of the software itself, with a chart made for its image";

fn by_values(context: &Context<'_>, used: &ChartUse, image: &str) -> Finding {
    let message = format!(
        "image {image}, which {} gives chart {}, cannot be pulled: the publisher withdrew all versioned tags on 2025-08-28",
        used.by, used.chart
    );
    finding(context, used, message, "its values name the image")
}

fn by_default(context: &Context<'_>, used: &ChartUse) -> Finding {
    let message = format!(
        "chart {} {} of {} pulls images of docker.io/bitnami, whose versioned tags were withdrawn on 2025-08-28",
        used.chart, used.version, used.by
    );
    let mut finding = finding(context, used, message, "the images stand in the chart's own values");
    finding.diagnostic.severity = Severity::Warning;
    finding.likely()
}

fn finding(context: &Context<'_>, used: &ChartUse, message: String, label: &str) -> Finding {
    let diagnostic = RULE
        .diagnostic(message)
        .at(used.span.clone(), label)
        .because(
            "a node that does not have the image yet cannot pull it, and the pod stays in ImagePullBackOff",
        )
        .help(LEGACY);
    let mut finding = Finding::new(RULE.incident, diagnostic);
    match used.app {
        Some(app) => finding.app(context.survey.app(app).name()),
        // Nobody is seen to install it.
        None => {
            finding.diagnostic.severity = Severity::Warning;
            finding
        }
    }
}
