//! # An OCIRepository whose address names no chart
//!
//! An OCIRepository of Flux names one artifact. A registry has no folders to look into: the address of a
//! HelmRepository, to which the name of a chart is added, is an artifact that nobody pushed. The API server
//! takes only addresses that begin with `oci://`. A HelmRepository names the folder, and the release names the
//! chart: an address that ends in the chart too asks for it below itself.
//!
//! People see: `failed to pull artifact from 'oci://registry.example.com/shop/charts': GET …: DENIED: denied`,
//! `NAME_UNKNOWN: repository name not known to registry`.
//!
//! ## Bad
//! ```yaml
//! kind: OCIRepository
//! spec: {url: oci://registry.example.com/shop/charts, ref: {tag: 1.2.3}}
//! ```
//! ## Good
//! ```yaml
//! kind: OCIRepository
//! spec: {url: oci://registry.example.com/shop/charts/web, ref: {tag: 1.2.3}}
//! ```
//! ## When to suppress
//! Where a chart is called `charts`.

use std::collections::BTreeSet;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::ObjectExt;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::{self, keys},
        placeholders,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-oci-address",
    incident: "D2",
    severity: Severity::Warning,
    title: "an OCIRepository whose address names no chart",
    page: page!("d2_oci_address.rs"),
    check,
};

/// What folders of charts are called, and no chart is.
const FOLDERS: [&str; 5] = ["bitnamicharts", "charts", "charts-mirror", "helm-charts", "helmcharts"];

fn is_of_flux(object: &Object) -> bool {
    object.key.group == "source.toolkit.fluxcd.io"
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let of_kind = |kind: &'static str| survey.objects.iter().filter(move |it| it.key.kind == kind);
    let address = |object: &'_ Object| {
        let url = object.value().str_at(&["spec", "url"]).filter(|url| !placeholders::is_in(url))?;
        Some(url.trim_end_matches('/').to_owned())
    };
    let repositories: Vec<(&Object, String)> =
        of_kind("OCIRepository").filter_map(|object| Some((object, address(object)?))).collect();
    let released: BTreeSet<&str> = of_kind("HelmRelease")
        .filter(|it| it.value().str_at(&["spec", "chartRef", "kind"]) == Some("OCIRepository"))
        .filter_map(|it| it.value().str_at(&["spec", "chartRef", "name"]))
        .collect();
    let mut once = Once::default();
    of_applications(context, &mut once);
    of_releases(context, &mut once);
    for (object, url) in repositories.iter().filter(|(it, url)| is_of_flux(it) && !url.starts_with("oci://"))
    {
        let diagnostic = RULE
            .diagnostic(format!("{} has the address {url}, which does not begin with oci://", object.title()))
            .at(survey.span(object, &keys(&["spec", "url"])), "no address of an artifact")
            .because("the API server refuses an OCIRepository whose address does not begin so")
            .help(format!("write oci://{}", url.split_once("://").map_or(url.as_str(), |(_, rest)| rest)));
        once.add(url, RULE.finding(context, object, diagnostic).likely());
    }
    for (object, url) in repositories.iter().filter(|(it, _)| released.contains(it.value().name())) {
        let last = url.rsplit('/').next().unwrap_or_default();
        let inner = format!("{url}/");
        let chart = repositories.iter().find(|(_, other)| other.starts_with(&inner));
        if chart.is_none() && !FOLDERS.contains(&last) {
            continue;
        }
        let mut diagnostic = RULE
            .diagnostic(format!("{} names a folder of charts, and no chart: {url}", object.title()))
            .at(survey.span(object, &keys(&["spec", "url"])), "this is pulled as it stands")
            .because("Flux adds no name to the address of an OCIRepository, as it does with a HelmRepository")
            .help(format!("add the chart's name: {url}/{}", object.value().name()));
        if let Some((chart, _)) = chart {
            diagnostic =
                diagnostic.see(survey.span(chart, &keys(&["spec", "url"])), "a chart of the same folder");
        }
        once.add(url, RULE.finding(context, object, diagnostic).likely());
    }
    once.report(report);
}

/// Repositories of charts whose address has the name of the chart once more behind the folder.
fn of_releases(context: &Context<'_>, once: &mut Once) {
    let survey = context.survey;
    for release in survey.objects.iter().filter(|it| it.key.kind == "HelmRelease") {
        let spec = &release.value()["spec"]["chart"]["spec"];
        let field = |steps: &[&str]| spec.str_at(steps).unwrap_or_default();
        let (chart, name) = (field(&["chart"]), field(&["sourceRef", "name"]));
        let is_named =
            |it: &&Object| is_of_flux(it) && it.key.kind == "HelmRepository" && it.key.name == name;
        let mut named = survey.objects.iter().filter(is_named);
        let (Some(repository), None) = (named.next(), named.next()) else { continue };
        let url = repository.value().str_at(&["spec", "url"]).unwrap_or_default().trim_end_matches('/');
        let Some(folder) =
            url.strip_prefix("oci://").and_then(|url| url.strip_suffix(chart)?.strip_suffix('/'))
        else {
            continue;
        };
        if chart.is_empty() || !folder.rsplit('/').next().is_some_and(|last| FOLDERS.contains(&last)) {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!(
                "{} asks for {url}/{chart}: the address already ends in the chart",
                release.title()
            ))
            .at(survey.span(repository, &keys(&["spec", "url"])), "ends in the name of a chart")
            .see(survey.span(release, &keys(&["spec", "chart", "spec", "chart"])), "this name is added to it")
            .because("Flux adds the name of the chart to the address of a HelmRepository")
            .help(format!("write oci://{folder}"));
        once.add(url, RULE.finding(context, release, diagnostic).likely());
    }
}

/// Registries, in which nobody finds a repository of Git.
const REGISTRIES: [&str; 5] =
    ["ghcr.io/", "quay.io/", "docker.io/", "registry-1.docker.io/", "public.ecr.aws/"];

/// Sources of Applications that are artifacts and lack the scheme: without a chart, the address is Git's.
fn of_applications(context: &Context<'_>, once: &mut Once) {
    for app in &context.survey.apps {
        let spec = &app.application.spec;
        for (at, source) in spec.effective_sources().iter().enumerate() {
            let url = source.repo_url.as_str();
            let is_of_registry = REGISTRIES.iter().any(|host| url.starts_with(host));
            if !is_of_registry || !source.chart.is_empty() {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!("Application {} takes an artifact from {url}, which does not begin with oci://", app.name()))
                .at(context.survey.app_span(app, &field_paths::source(spec, at).key("repoURL")), "taken for a repository of Git")
                .because("the engine asks an address without a scheme for the references of Git: repository not found")
                .help(format!("write oci://{url}"));
            once.add(url, Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
        }
    }
}
