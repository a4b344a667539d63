//! # A release whose name Helm does not take
//!
//! Helm takes names of lower case letters, digits and dashes, of at most 53 characters. Argo CD and Flux hand
//! `releaseName` on as it is: the chart is not rendered. ApplicationSets that take their parameters from
//! elsewhere show it only in the cluster.
//!
//! People see: `invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?…$ and the length must
//! not be longer than 53`.
//!
//! ## Bad
//! ```yaml
//! helm: {releaseName: shop_web}
//! ```
//! ## Good
//! ```yaml
//! helm: {releaseName: shop-web}
//! ```
//! ## When to suppress
//! Where a patch writes another name.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, placeholders, pods::list, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-release-name",
    incident: "C2",
    severity: Severity::Warning,
    title: "a release whose name Helm does not take",
    page: page!("c2_release_name.rs"),
    check,
};

/// The longest name (helm.sh/helm, `releaseNameMaxLen`).
const LONGEST: usize = 53;

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        if unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        for (name, field) in names(object) {
            if name.is_empty() || is_filled_in(name) || is_valid(name) {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!(
                    "{} has the release name {name:?}, which Helm does not take",
                    object.title()
                ))
                .at(context.survey.span(object, &field), "invalid release name")
                .because("Helm refuses the name before it renders anything")
                .help(format!("lower case letters, digits and dashes, at most {LONGEST}"));
            once.add(name, RULE.finding(context, object, diagnostic).likely());
        }
    }
    once.report(report);
}

/// The names of releases in an object.
fn names(object: &Object) -> Vec<(&str, FieldPath)> {
    let value = object.value();
    let steps: &[&str] = match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("argoproj.io", "Application") => &["spec"],
        ("argoproj.io", "ApplicationSet") => &["spec", "template", "spec"],
        ("helm.toolkit.fluxcd.io", "HelmRelease") => {
            let name = value.str_at(&["spec", "releaseName"]);
            return name.map(|name| (name, keys(&["spec", "releaseName"]))).into_iter().collect();
        }
        _ => return Vec::new(),
    };
    let Some(spec) = value.at(steps) else { return Vec::new() };
    let one = spec.get("source").map(|source| (source, keys(steps).key("source")));
    let several = list(spec, "sources").iter().enumerate();
    let several = several.map(|(at, source)| (source, keys(steps).key("sources").index(at)));
    one.into_iter()
        .chain(several)
        .filter_map(|(source, path)| {
            Some((source.str_at(&["helm", "releaseName"])?, path.key("helm").key("releaseName")))
        })
        .collect()
}

fn is_filled_in(name: &str) -> bool {
    name.contains("{{") || name.contains('$') || placeholders::is_in(name)
}

fn is_valid(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_inner)
            && part.ends_with(is_inner)
            && part.chars().all(|c| is_inner(c) || c == '-')
    };
    name.len() <= LONGEST && name.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::{is_filled_in, is_valid};

    #[test]
    fn names_are_judged_as_helm_does() {
        assert!(is_valid("shop-web") && is_valid("shop.web") && is_valid("1"));
        for name in ["shop_web", "Shop", "-shop", "shop-", "shop..web", "shop web"] {
            assert!(!is_valid(name), "{name}");
        }
        assert!(!is_valid(&"a".repeat(54)));
        assert!(is_filled_in("{{ .name }}") && is_filled_in("${NAME}"));
    }
}
