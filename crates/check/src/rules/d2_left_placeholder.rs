//! # A placeholder was left in the values of a chart
//!
//! Pages about a chart show `<YOUR_CLIENT_ID>` or `REPLACE_ME` where everyone has a value of their own. Copied
//! into a repository it is a value like any other: the chart renders, and the program is refused when it
//! signs in.
//!
//! People see: `401 Unauthorized`, `invalid client`, a login page that says that the client is unknown.
//!
//! `ghcr.io/owner/web` is one, too, where other images of the repository have a true owner at that registry: the
//! Applications pull an image that nobody pushed.
//!
//! The rule speaks of values where at most five such values are in the repository: a template for others
//! has many.
//!
//! ## Bad
//! ```yaml
//! values: {oauth: {clientId: "<YOUR_CLIENT_ID>"}}
//! ```
//! ## Good
//! ```yaml
//! values: {oauth: {existingSecret: operator-oauth}}
//! ```
//! ## When to suppress
//! Where another tool replaces the text.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::{Severity, Span};
use tiphys_graph::Object;

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, images::Image, placeholders, pods, unused_files, value_steps::each_text},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-left-placeholder",
    incident: "D2",
    severity: Severity::Warning,
    title: "a placeholder was left in the values of a chart",
    page: page!("d2_left_placeholder.rs"),
    check,
};

/// How many make a template of the repository.
const MANY: usize = 5;

/// What is written for a value that everyone has to give.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"<(?:YOUR|MY|INSERT|REPLACE|CHANGE|ENTER|ADD|PUT)[A-Z0-9_ -]*>|(?i:<your[-_ ][a-z0-9_ -]+>)|REPLACE_?ME|YOUR_[A-Z0-9_]+";
    Regex::new(&format!(r"^(?:{words})$")).expect("the expression is right")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let mut found: Vec<(String, Span, String)> = Vec::new();
    for used in context.chart_uses() {
        if unused_files::is_in_unused_folder(&used.span.file) || placeholders::is_skeleton(&used.span.file) {
            continue;
        }
        for (index, values) in used.values.iter().enumerate() {
            each_text(values, &mut Vec::new(), &|_| true, &mut |steps, text| {
                if PLACEHOLDER.is_match(text)
                    && let Some(place) = place_of(context, used, index, steps)
                    && found.iter().all(|(_, at, _)| *at != place)
                {
                    found.push((text.to_owned(), place, used.by.clone()));
                }
            });
        }
    }
    owners(context, report);
    if found.len() > MANY {
        return;
    }
    for (text, place, by) in found {
        let diagnostic = RULE
            .diagnostic(format!("{by} is given {text}, which stands for a value of your own"))
            .at(place, "a placeholder")
            .because("the chart takes it for a value, and the program is refused where it uses it")
            .help("write the value, or name a Secret that has it");
        report.add(Finding::new(RULE.incident, diagnostic).likely());
    }
}

/// Images of Applications with a word for an owner in the place of one, where other images of the
/// repository have its true owner.
fn owners(context: &Context<'_>, report: &mut Report) {
    const WORDS: [&str; 8] = [
        "owner",
        "your-github-username",
        "your-org",
        "your-user",
        "your-username",
        "yourorg",
        "yourusername",
        "<owner>",
    ];
    let survey = context.survey;
    let is_rendered = |object: &&Object| survey.app_of(object).is_some_and(|app| !survey.is_symbolic(app));
    let pods: Vec<_> = survey.objects.iter().filter(is_rendered).filter_map(pods::pod_of).collect();
    let owner_at = |image: &str, registry: &str| {
        Image::parse(image).filter(|it| it.registry == registry).map(|it| it.publisher().1.to_owned())
    };
    let mut once = Once::default();
    for pod in &pods {
        for container in pod.containers() {
            let Some(image) = Image::parse(container.image()) else { continue };
            let (registry, word) = image.publisher();
            if !WORDS.contains(&word) || unused_files::is_in_unused_folder(&pod.object.rendered.location.file)
            {
                continue;
            }
            // The owner whose repository this is, as its other images have it.
            let is_own = |owner: &str| {
                let address = format!("/{owner}/").to_ascii_lowercase();
                let mut apps = survey.apps.iter().flat_map(|app| app.application.spec.effective_sources());
                apps.any(|source| source.repo_url.to_ascii_lowercase().contains(&address))
            };
            let mut others = pods.iter().flat_map(|pod| pod.containers());
            let Some(owner) =
                others.find_map(|it| owner_at(it.image(), registry).filter(|it| it != word && is_own(it)))
            else {
                continue;
            };
            let diagnostic = RULE
                .diagnostic(format!(
                    "image {} of {} has {word:?} in the place of an owner",
                    container.image(),
                    pod.object.title()
                ))
                .at(survey.span(pod.object, &container.path.key("image")), "nobody pushes this image")
                .because("the registry answers `denied` or `not found`, and the pod waits with ErrImagePull")
                .help(format!("other images of this repository are at {registry}/{owner}"));
            // Many images of one owner have one cause.
            once.add_by(format!("{registry}/{word}"), RULE.finding(context, pod.object, diagnostic).likely());
        }
    }
    once.report(report);
}

#[cfg(test)]
mod tests {
    use super::PLACEHOLDER;

    #[test]
    fn placeholders_stand_alone() {
        for text in ["<YOUR_CLIENT_ID>", "<your-domain>", "REPLACEME", "YOUR_TOKEN"] {
            assert!(PLACEHOLDER.is_match(text), "{text}");
        }
        for text in ["<none>", "<a>", "see <YOUR_ID> there", "yours", "<no value>"] {
            assert!(!PLACEHOLDER.is_match(text), "{text}");
        }
    }
}
