//! # An image under a chart that is made for another one
//!
//! Some charts start their image through scripts that only the publisher's own image has (Bitnami's lie in
//! `/opt/bitnami`). With the official image in its place the scripts are missing, and the containers crash.
//!
//! People see: `Init:CrashLoopBackOff`, `/opt/bitnami/scripts/…: No such file or directory`.
//!
//! ## Bad
//! ```yaml
//! # values of a Bitnami chart
//! image: {registry: docker.io, repository: rabbitmq, tag: 3.13-management}
//! ```
//! ## Good
//! A chart or an operator that is made for the official image.
//!
//! ## When to suppress
//! Where the image is a copy of the publisher's under another name.

use tiphys_diag::Severity;
use tiphys_graph::Owner;
use tiphys_value::Value;

use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_uses::ChartUse,
        dedup::Once,
        images::{DOCKER, Image},
        pods::{self, Container},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E4-foreign-image",
    incident: "E4",
    severity: Severity::Warning,
    title: "an image under a chart that is made for another publisher's",
    page: page!("e4_foreign_image.rs"),
    check,
};

/// What the scripts of a publisher look like, and what its images are called.
const PUBLISHERS: [(&str, &str, &str); 1] = [("/opt/bitnami", "bitnami", "Bitnami")];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in context.survey.objects.iter().filter(|object| matches!(object.owner, Owner::App(_))) {
        let Some(pod) = pods::pod_of(object) else { continue };
        for container in pod.containers() {
            let Some(image) = Image::parse(container.image()) else { continue };
            let Some((_, _, publisher)) = PUBLISHERS.iter().find(|(script, name, _)| {
                is_official(&image) && !image.path.contains(name) && runs(&container, script)
            }) else {
                continue;
            };
            let diagnostic = RULE
                .diagnostic(format!(
                    "container {} of {} runs {publisher}'s scripts in image {}, which is not {publisher}'s",
                    container.name(),
                    object.title(),
                    container.image()
                ))
                .at(context.survey.value_span(object, &container.path.key("image")), "this image is another publisher's")
                .because("the chart starts the container through scripts that only the publisher's own image holds")
                .help("use a chart or an operator that is made for this image");
            once.add(container.image(), RULE.finding(context, object, diagnostic));
        }
    }
    for used in context.chart_uses() {
        if let Some((image, finding)) = of_chart(context, used) {
            once.add(&image, finding);
        }
    }
    once.report(report);
}

/// A chart out of reach whose scripts are a publisher's, with an image of another one in its values.
fn of_chart(context: &Context<'_>, used: &ChartUse) -> Option<(String, Finding)> {
    const REPOSITORIES: [(&str, &str); 3] =
        [("charts.bitnami.com/", "Bitnami"), ("/bitnamicharts/", "Bitnami"), ("bitnami/charts/", "Bitnami")];
    let (_, publisher) = REPOSITORIES.iter().find(|(part, _)| used.repository.contains(part))?;
    let repository = used.text(&["image", "repository"])?;
    // What starts the container otherwise needs none of the scripts.
    if ["command", "args", "arguments"].iter().any(|field| used.value(&[field]).is_some()) {
        return None;
    }
    let registry = used.text(&["global", "imageRegistry"]).filter(|it| !it.is_empty());
    let registry = registry.or_else(|| used.text(&["image", "registry"])).filter(|it| !it.is_empty());
    let name = registry.map_or_else(|| repository.clone(), |registry| format!("{registry}/{repository}"));
    Image::parse(&name).filter(is_official)?;
    let diagnostic = RULE
        .diagnostic(format!(
            "{} gives chart {} of {publisher} the image {name}, which is not {publisher}'s",
            used.by, used.chart
        ))
        .at(used.span.clone(), "this chart starts its containers through scripts")
        .because("the scripts are only in the publisher's own image: the pods end in Init:CrashLoopBackOff or do not start")
        .help("use a chart or an operator that is made for this image");
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    let finding = match used.app {
        Some(app) => finding.app(context.survey.app(app).name()),
        None => finding,
    };
    Some((name, finding))
}

/// An image of Docker's own library; what others publish may be a copy.
fn is_official(image: &Image<'_>) -> bool {
    image.registry == DOCKER && !image.path.contains('/')
}

/// Whether a container starts something below a path.
fn runs(container: &Container<'_>, path: &str) -> bool {
    ["command", "args"].iter().any(|field| {
        let texts = pods::list(container.value, field).iter().filter_map(Value::as_str);
        texts.into_iter().any(|text| text.contains(path))
    })
}
