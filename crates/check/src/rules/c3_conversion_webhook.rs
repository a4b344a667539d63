//! # A definition is left with a conversion webhook that nobody answers
//!
//! Definitions with several versions ask a webhook to convert between them. Published bundles name a Service
//! that is none; whoever installs them apart from the chart has to put the real one in its place, in every
//! definition of the group. One that is left out cannot be read or written in any version but the stored one.
//!
//! People see: `conversion webhook for external-secrets.io/v1beta1, Kind=ExternalSecret failed: Post
//! "https://…svc:443/convert": service "…" not found`, and Applications with sync status `Unknown`.
//!
//! ## Bad
//! ```yaml
//! patches:   # the conversion of stores is mended, that of externalsecrets is not
//!   - {target: {kind: CustomResourceDefinition, name: secretstores.external-secrets.io}, path: webhook.yaml}
//! ```
//! ## Good
//! A patch for each definition of the group that has objects.
//!
//! ## When to suppress
//! Where the definition has but one version, or the bundle names the right Service for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tiphys_diag::Severity;
use tiphys_graph::{App, Object, Outcome, edges::plural_of};
use tiphys_value::{Location, ObjectExt, Value};
use tiphys_vfs::{join, parent};

use crate::{Context, Finding, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C3-conversion-webhook",
    incident: "C3",
    severity: Severity::Warning,
    title: "one definition of a group is left with the conversion webhook of the bundle",
    page: page!("c3_conversion_webhook.rs"),
    check,
};

/// A patch that mends the conversion of a definition.
struct Mended {
    /// The kustomization that lists it, and the line.
    place: Location,
    /// The Service that it names.
    service: String,
}

fn check(context: &Context<'_>, report: &mut Report) {
    for app in context.survey.apps.iter().filter(|app| matches!(app.outcome, Outcome::Unseen(_))) {
        let mut mended: BTreeMap<String, Mended> = BTreeMap::new();
        for path in app.read.iter().filter(|path| path.ends_with("kustomization.yaml")) {
            mended.extend(patches(context, path));
        }
        if !mended.is_empty() {
            compare(context, app, &mended, report);
        }
    }
}

/// The definitions whose conversion a kustomization patches, by name.
fn patches(context: &Context<'_>, path: &Arc<str>) -> Vec<(String, Mended)> {
    let files = &context.survey.files;
    let (Some(text), Some(content)) = (files.text(path), files.value(path)) else { return Vec::new() };
    let entries = content.get("patches").and_then(Value::as_array).into_iter().flatten();
    let found = entries.filter_map(|entry| {
        let is_definition = entry.str_at(&["target", "kind"]) == Some("CustomResourceDefinition");
        let name = entry.str_at(&["target", "name"]).filter(|_| is_definition)?;
        let patch = match entry.str_at(&["patch"]) {
            Some(patch) => Arc::new(tiphys_yaml::from_yaml(patch).ok()?),
            None => {
                let folder = parent(path).unwrap_or_default();
                files.value(&join(folder, entry.str_at(&["path"])?).ok()?)?
            }
        };
        let service = patch.at(&["spec", "conversion", "webhook", "clientConfig", "service"])?;
        let service = format!("{} in {}", service.str_at(&["name"])?, service.str_at(&["namespace"])?);
        let line = text.lines().position(|line| line.contains(name))?;
        let place = Location::new(path.clone(), u32::try_from(line + 1).unwrap_or(u32::MAX), 0);
        Some((name.to_owned(), Mended { place, service }))
    });
    found.collect()
}

/// Objects of the groups of mended definitions whose own definition is not among them: one for each
/// definition.
fn compare(context: &Context<'_>, app: &App, mended: &BTreeMap<String, Mended>, report: &mut Report) {
    let index = &context.analyses().edges.index;
    let mut told = BTreeSet::new();
    let objects = context.survey.objects.iter().filter(|object| {
        object.environment == Some(app.environment) && object.cluster.as_ref() == app.cluster()
    });
    for object in objects {
        let sibling = mended.iter().find(|(name, _)| group_of(name) == object.key.group);
        let Some((other, how)) = sibling.filter(|_| !object.key.group.is_empty()) else { continue };
        let definition = format!("{}.{}", plural_of(index, object), object.key.group);
        if !mended.contains_key(&definition) && told.insert(definition.clone()) {
            report.add(finding(context, app, object, &definition, other, how));
        }
    }
}

fn group_of(definition: &str) -> &str {
    definition.split_once('.').map_or("", |(_, group)| group)
}

fn finding(
    context: &Context<'_>,
    app: &App,
    object: &Object,
    definition: &str,
    other: &str,
    how: &Mended,
) -> Finding {
    let message = format!(
        "{} gives {other} the conversion webhook {}, but leaves {definition} with that of the bundle",
        app.name(),
        how.service
    );
    let diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.files.span(&how.place), "this definition is mended")
        .see(context.survey.start(object), format!("{} is of the other one", object.title()))
        .because("the Service that a bundle names is a placeholder: every conversion of its objects fails, and with it their sync")
        .help(format!("patch the conversion of {definition} in the same way"));
    Finding::new(RULE.incident, diagnostic).app(app.name()).likely()
}
