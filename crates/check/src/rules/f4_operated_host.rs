//! # An address that no operator and no release gives
//!
//! Operators make the Services of their resources, and call them by rules of their own: CloudNativePG makes
//! `shop-rw`, `shop-ro` and `shop-r` of the Cluster `shop`, the MariaDB operator `db-primary` only where
//! there are replicas, Strimzi `events-kafka-bootstrap`. So does the chart app-template: the only Service of
//! a release has the release's name, and no ending. The rule speaks where the resources of the namespace are
//! in the repository, and none of them makes the Service; where an address is of a namespace that nothing in
//! the repository has, while all others look for the Service in one that there is; and where only a resource
//! of another namespace makes it.
//!
//! People see: `could not translate host name "shop-db-rw.data.svc.cluster.local" to address: Name or service
//! not known`, `UnknownHostException`.
//!
//! ## Bad
//! ```yaml
//! kind: Cluster                              # of postgresql.cnpg.io
//! metadata: {name: shop, namespace: data}
//! ---
//! kind: Secret
//! stringData: {HOST: shop-db-rw.data.svc.cluster.local}
//! ```
//! ## Good
//! ```yaml
//! stringData: {HOST: shop-rw.data.svc.cluster.local}
//! ```
//! ## When to suppress
//! Where the resource is made by something outside of the repository.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use regex::{Captures, Regex};
use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{App, Object, Survey};
use tiphys_value::{FieldPath, ObjectExt};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        app_template,
        dedup::Once,
        operated_services::{OperatedKind, fits},
        unused_files,
        value_steps::{each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-operated-host",
    incident: "F4",
    severity: Severity::Warning,
    title: "an address that no operator and no release gives",
    page: page!("f4_operated_host.rs"),
    check,
};

/// The name of a Service with its namespace.
static FULL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[/@,\s=\x22'])([a-z0-9][a-z0-9-]*)\.([a-z0-9][a-z0-9-]*)\.svc(?:\.cluster\.local)?\.?(?:[:/\s,;?\x22']|$)",
    )
    .expect("the pattern is well formed")
});

/// The resources of operators in one namespace, wherever the repository has them.
type Operated<'a> = Vec<(&'static OperatedKind, &'a Object)>;

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey.flux.as_deref().unwrap_or(context.survey);
    let mut operated: BTreeMap<&str, Operated<'_>> = BTreeMap::new();
    for object in &survey.objects {
        if let Some(kind) = OperatedKind::of_object(object) {
            operated.entry(&object.key.namespace).or_default().push((kind, object));
        }
    }
    // One whose name or namespace has still to be filled in may be any.
    let is_open = operated.iter().any(|(namespace, all)| {
        namespace.contains('$') || namespace.is_empty() || all.iter().any(|(_, it)| it.key.name.contains('$'))
    });
    if is_open {
        operated.clear();
    }
    let makers = makers_by_namespace(survey);
    let mut once = Once::default();
    let mentions = mentions(survey);
    for mention in &mentions {
        let Mention { object, path, name, namespace } = mention;
        let own = makers.get(namespace.as_str());
        let of_namespace = operated.get(namespace.as_str()).map(Vec::as_slice).unwrap_or_default();
        let is_of_operator = || {
            let is_made = |(kind, it): &(&OperatedKind, &Object)| {
                kind.services(it.value()).iter().any(|pattern| fits(pattern, name))
                    || name.starts_with(&format!("{}-", it.key.name))
            };
            of_namespace.iter().any(is_made)
        };
        let of_releases = || own.and_then(|own| meant_release(name, own)).filter(|_| !is_of_operator());
        if let Some((resource, service)) = meant(name, of_namespace, own).or_else(of_releases) {
            let diagnostic = RULE
                .diagnostic(format!(
                    "{} names Service/{name} in {namespace}, which nothing makes",
                    object.title()
                ))
                .at(survey.span(object, path), "in this text")
                .see(survey.start(resource), format!("of {} there are other Services", resource.title()))
                .because("operators and charts call their Services after the resource or release");
            let diagnostic = match &service {
                Some(service) => diagnostic.help(format!("perhaps {service}.{namespace} is meant")),
                None => diagnostic,
            };
            let mut finding = Finding::new(RULE.incident, diagnostic).object(object.title()).likely();
            finding.app = survey.app_of(object).map(|app| app.name().to_owned());
            if let Some(service) = service {
                finding =
                    finding.with_spelling(format!("{name}.{namespace}"), format!("{service}.{namespace}"));
            }
            once.add(name, finding);
        }
    }
    other_namespaces(context, survey, &mentions, &mut once);
    made_elsewhere(survey, &mentions, &operated, &makers, &mut once);
    once.report(report);
}

/// Addresses of what an operator makes of a resource, in a namespace that has no such resource and nothing
/// else that may make the Service, while only one namespace of the repository has it.
fn made_elsewhere(
    survey: &Survey,
    mentions: &[Mention<'_>],
    operated: &BTreeMap<&str, Operated<'_>>,
    makers: &BTreeMap<&str, Makers<'_>>,
    once: &mut Once,
) {
    let is_made_by = |(kind, it): &(&OperatedKind, &Object), name: &str| {
        kind.services(it.value()).iter().any(|pattern| !pattern.contains('*') && pattern == name)
    };
    let makes = |namespace: &str, name: &str| {
        operated.get(namespace).into_iter().flatten().find(|it| is_made_by(it, name)).map(|(_, it)| *it)
    };
    for mention in mentions {
        let (name, namespace) = (mention.name.as_str(), mention.namespace.as_str());
        let all: Vec<(&str, &Object)> =
            operated.keys().filter_map(|of| Some((*of, makes(of, name)?))).collect();
        let [(usual, maker)] = all[..] else { continue };
        let is_begun = |own: &str| name == own || name.starts_with(&format!("{own}-"));
        let of_namespace = makers.get(namespace);
        let may_be_there = usual == namespace
            || of_namespace.is_none_or(|own| {
                own.services.contains(name)
                    || own.unseen.iter().any(|it| is_begun(it))
                    || own.releases.iter().any(|(_, services)| services.contains(name))
            })
            || survey.objects.iter().any(|it| {
                it.key.namespace == namespace && it.key.group.contains('.') && is_begun(&it.key.name)
            });
        let is_used_right = mentions.iter().any(|it| it.name == name && it.namespace == usual);
        if may_be_there || !is_used_right {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!(
                "{} names Service/{name} in {namespace}, and there is only one in {usual}",
                mention.object.title()
            ))
            .at(survey.span(mention.object, &mention.path), "in this text")
            .see(survey.start(maker), format!("{} makes the one in {usual}", maker.title()))
            .because("the cluster's DNS answers for Services that are there, by name and namespace")
            .help(format!("perhaps {name}.{usual} is meant"));
        let mut finding = Finding::new(RULE.incident, diagnostic).object(mention.object.title()).likely();
        finding.app = survey.app_of(mention.object).map(|app| app.name().to_owned());
        once.add(name, finding.with_spelling(format!("{name}.{namespace}"), format!("{name}.{usual}")));
    }
}

/// The address of a Service in the text of an object.
struct Mention<'a> {
    object: &'a Object,
    path: FieldPath,
    name: String,
    namespace: String,
}

/// All addresses of Services in texts of objects, but those of certificates, which may be for names that
/// nobody asks.
fn mentions(survey: &Survey) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    for object in &survey.objects {
        let is_certificate = object.key.kind == "Certificate";
        if is_certificate || unused_files::is_in_unused_folder(&object.rendered.location.file) {
            continue;
        }
        each_text(object.value(), &mut Vec::new(), &|_| true, &mut |steps, text| {
            for host in hosts(text) {
                let (Some(name), Some(namespace)) = (host.get(1), host.get(2)) else { continue };
                found.push(Mention {
                    object,
                    path: path_below(FieldPath::default(), steps),
                    name: name.as_str().to_owned(),
                    namespace: namespace.as_str().to_owned(),
                });
            }
        });
    }
    found
}

/// The one address of a Service that is of another namespace than in all other texts, and of one that nothing
/// in the repository has.
fn other_namespaces(context: &Context<'_>, survey: &Survey, mentions: &[Mention<'_>], once: &mut Once) {
    let mut named: BTreeMap<&str, BTreeMap<&str, Vec<&Mention<'_>>>> = BTreeMap::new();
    for mention in mentions {
        named.entry(&mention.name).or_default().entry(&mention.namespace).or_default().push(mention);
    }
    for (name, by_namespace) in &named {
        let [(one, first), (other, second)] = by_namespace.iter().collect::<Vec<_>>()[..] else { continue };
        let (odd, mention, usual, others) = match (first.as_slice(), second.as_slice()) {
            ([mention], others @ [_, _, ..]) => (one, mention, other, others),
            (others @ [_, _, ..], [mention]) => (other, mention, one, others),
            _ => continue,
        };
        if has_namespace(context, survey, odd) || !has_namespace(context, survey, usual) {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!(
                "{} names Service/{name} in {odd}, a namespace that nothing has",
                mention.object.title()
            ))
            .at(survey.span(mention.object, &mention.path), "in this text")
            .see(survey.span(others[0].object, &others[0].path), format!("here it is in {usual}"))
            .because(format!(
                "all {} others look for it in {usual}, and the name of this one is not known",
                others.len()
            ))
            .help(format!("perhaps {name}.{usual} is meant"));
        let mut finding = Finding::new(RULE.incident, diagnostic).object(mention.object.title()).likely();
        finding.app = survey.app_of(mention.object).map(|app| app.name().to_owned());
        once.add(name, finding.with_spelling(format!("{name}.{odd}"), format!("{name}.{usual}")));
    }
}

/// Whether the repository has a namespace, or speaks of it as one.
fn has_namespace(context: &Context<'_>, survey: &Survey, namespace: &str) -> bool {
    const KEYS: [&str; 4] = ["name:", "namespace:", "targetNamespace:", "storageNamespace:"];
    let says = |line: &str| {
        let line = line.trim().trim_start_matches("- ");
        let value = KEYS.iter().find_map(|key| line.strip_prefix(key)).unwrap_or_default().trim();
        let value =
            value.split_once(' ').filter(|(mark, _)| mark.starts_with('&')).map_or(value, |(_, value)| value);
        value.trim_matches(['"', '\'']) == namespace
    };
    let is_of_app = |app: &App| app.application.spec.destination.namespace == namespace;
    let is_in_or_is = |it: &Object| {
        it.key.namespace == namespace || (it.key.kind == "Namespace" && it.key.name == namespace)
    };
    survey.objects.iter().any(is_in_or_is)
        || survey.apps.iter().any(is_of_app)
        || context.survey.files.any_text(|text| text.contains(namespace) && text.lines().any(says))
}

/// The names of Services with their namespaces, but for those in remarks.
fn hosts(text: &str) -> impl Iterator<Item = Captures<'_>> {
    // Most texts name no host, and some are very long.
    let read = if text.contains(".svc") { text } else { "" };
    let lines = read.lines().filter(|line| !line.trim_start().starts_with(['#', ';']));
    lines.flat_map(|line| FULL.captures_iter(line))
}

/// What may make a Service in a namespace: Services themselves, and releases and Applications that are not
/// seen.
#[derive(Default)]
struct Makers<'a> {
    services: BTreeSet<&'a str>,
    unseen: BTreeSet<&'a str>,
    /// Releases of app-template, each with the Services that it makes.
    releases: Vec<(&'a Object, BTreeSet<String>)>,
}

fn makers_by_namespace(survey: &Survey) -> BTreeMap<&str, Makers<'_>> {
    let mut makers: BTreeMap<&str, Makers<'_>> = BTreeMap::new();
    let versions = app_template::oci_versions(survey);
    for object in &survey.objects {
        let own = makers.entry(&object.key.namespace).or_default();
        match object.key.kind.as_str() {
            "Service" => drop(own.services.insert(&object.key.name)),
            "HelmRelease" => match made_by_template(object, &versions) {
                Some(services) => own.releases.push((object, services)),
                None => drop(own.unseen.insert(&object.key.name)),
            },
            _ => {}
        }
    }
    // Those of Flux are there as HelmReleases.
    for app in survey.apps.iter().filter(|app| !app.is_rendered() && !survey.is_of_flux) {
        let namespace = app.application.spec.destination.namespace.as_str();
        makers.entry(namespace).or_default().unseen.insert(app.name());
    }
    makers
}

/// The Services that a release of app-template makes, if that is sure.
fn made_by_template(release: &Object, versions: &BTreeMap<(&str, &str), &str>) -> Option<BTreeSet<String>> {
    let version = app_template::version_of(release, versions)?;
    let values = release.value().at(&["spec", "values"])?;
    app_template::service_names(app_template::release_name(release), values, version)
}

/// The release of app-template that is meant by a name that none of its Services has, and the one that is.
fn meant_release<'a>(name: &str, makers: &Makers<'a>) -> Option<(&'a Object, Option<String>)> {
    let is_made = makers.releases.iter().any(|(_, services)| services.contains(name));
    let is_begun = |own: &&str| name == *own || name.starts_with(&format!("{own}-"));
    if is_made || makers.services.contains(name) || makers.unseen.iter().any(is_begun) {
        return None;
    }
    let begins = |it: &&(&Object, BTreeSet<String>)| {
        name.strip_prefix(it.0.key.name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let longest = makers.releases.iter().filter(begins).max_by_key(|(release, _)| release.key.name.len())?;
    let (release, services) = longest;
    let only = services.first().filter(|_| services.len() == 1).cloned();
    let nearest =
        || similar_names::nearest_slip(name, services.iter().map(String::as_str)).map(str::to_owned);
    (!services.is_empty()).then(|| (*release, only.or_else(nearest)))
}

/// The resource whose Service is meant by a name that none has, and that Service if it is plain which; `None`
/// if something may make it.
fn meant<'a>(
    name: &str,
    operated: &[(&'static OperatedKind, &'a Object)],
    makers: Option<&Makers<'_>>,
) -> Option<(&'a Object, Option<String>)> {
    let is_made = |(kind, object): &(&'static OperatedKind, &Object)| {
        kind.services(object.value()).iter().any(|pattern| fits(pattern, name))
            // Further Services that a resource lists itself.
            || object.value()["spec"].to_string().contains(&format!("\"{name}\""))
    };
    // A release may make what its name begins.
    let is_begun = |own: &&str| name == *own || name.starts_with(&format!("{own}-"));
    let may_make = |it: &Makers<'_>| it.services.contains(name) || it.unseen.iter().any(is_begun);
    if operated.iter().any(is_made) || makers.is_some_and(may_make) {
        return None;
    }
    operated.iter().find_map(|(kind, object)| {
        let wanted = kind.resource_of(name)?;
        let of_kind = || operated.iter().filter(|(other, _)| std::ptr::eq(*other, *kind)).map(|(_, it)| *it);
        let ending = &name[wanted.len().min(name.len())..];
        let only = of_kind().next().filter(|_| of_kind().count() == 1);
        let nearest = similar_names::nearest_slip(wanted, of_kind().map(|it| it.key.name.as_str()));
        // What begins as a resource is called, or the other way round, is about that one.
        let begins = |it: &&Object| wanted.starts_with(&it.key.name) || it.key.name.starts_with(wanted);
        let resource = of_kind()
            .find(|it| it.key.name == wanted || Some(it.key.name.as_str()) == nearest)
            .or_else(|| of_kind().find(begins))
            .or(only);
        let service = resource.and_then(|resource| {
            let all = kind.services(resource.value());
            let same = format!("{}{ending}", resource.key.name);
            let usual = all.iter().find(|it| fits(it, &same)).map(|_| same.clone());
            usual.or_else(|| all.first().filter(|it| !it.contains('*')).cloned())
        });
        Some((resource.unwrap_or(object), service))
    })
}
