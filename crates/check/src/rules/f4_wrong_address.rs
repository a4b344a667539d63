//! # A text names a Service by a port that it does not have
//!
//! Programs find each other by addresses in their environment, arguments and configuration:
//! `http://db.shop.svc.cluster.local:5432`. The cluster's DNS answers for every Service that is there, and
//! the connection goes to the Service's address; but only the ports that the Service declares lead anywhere.
//! A Service's `targetPort`, the number that the program listens on, does not count. Without the colon before
//! the port the name itself is wrong. Without a port `http://` means 80, and `https://` means 443.
//!
//! People see: `dial tcp 10.96.12.7:8080: connect: connection refused`, `i/o timeout`, `no such host`, while
//! all pods run.
//!
//! ## Bad
//! ```yaml
//! # the Service web has port 80, and targetPort 8080
//! env: [{name: WEB, value: "http://web.shop.svc.cluster.local:8080"}]
//! ```
//! ## Good
//! ```yaml
//! env: [{name: WEB, value: "http://web.shop.svc.cluster.local:80"}]
//! ```
//! ## When to suppress
//! Where a text only mentions the address, or another program adds the port to the Service.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner};
use tiphys_value::{FieldPath, ResourceKey};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        placeholders,
        pods::{self, list, text},
        unrendered_files, unused_files,
        value_steps::{Step, each_text, path_below},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-wrong-address",
    incident: "F4",
    severity: Severity::Warning,
    title: "a text that names a Service by a port that it does not have",
    page: page!("f4_wrong_address.rs"),
    check,
};

/// The name of a Service in the cluster's DNS, with a port.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"([a-z0-9][a-z0-9-]*)\.([a-z0-9][a-z0-9-]*)\.svc(?:\.cluster\.local)?\.?:(\d{1,5})(?:[^0-9A-Za-z.{$]|$)";
    Regex::new(pattern).expect("the pattern is well formed")
});

/// The end of such a name with a port that no colon precedes.
static WITHOUT_COLON: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[a-z0-9]\.svc\.cluster\.local\d{2,5}(?:[^0-9A-Za-z.-]|$)")
        .expect("the pattern is well formed")
});

/// A name alone, in an address with a scheme or after a user: of the namespace of whoever asks.
static SHORT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:://|://[^\s/@:]*:[^\s/@]*@)([a-z][a-z0-9-]*):(\d{1,5})(?:[^0-9A-Za-z.{$]|$)")
        .expect("the pattern is well formed")
});

/// An address with no port, as a whole text.
static WITHOUT_PORT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^(https?)://([a-z][a-z0-9-]*)(?:\.([a-z0-9][a-z0-9-]*)(?:\.svc(?:\.cluster\.local)?)?)?\.?(?:/.*)?$";
    Regex::new(pattern).expect("the pattern is well formed")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        let is_described = object.key.kind == "CustomResourceDefinition";
        let is_open = unrendered_files::is_from_unused_chart(context.survey, object)
            || unrendered_files::may_be_a_patch(context.survey, object)
            || unused_files::is_in_unused_folder(&object.rendered.location.file);
        if is_described || is_open {
            continue;
        }
        variables_without_port(context, object, &mut once);
        let Some(fields) = object.value().as_object() else { continue };
        for (name, value) in fields.iter().filter(|(name, _)| *name != "metadata" && *name != "status") {
            let reads = |key: &str| !is_for_people(key);
            each_text(value, &mut vec![Step::Key(name)], &reads, &mut |steps, text| {
                if text.contains(".svc") || text.contains("://") {
                    judge(context, object, &path_below(FieldPath::default(), steps), text, &mut once);
                }
            });
        }
    }
    once.report(report);
}

/// Whether a field or a file of a ConfigMap is there to be read by people.
fn is_for_people(name: &str) -> bool {
    let ends_with = |ending: &str| {
        name.len()
            .checked_sub(ending.len())
            .and_then(|at| name.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(ending))
    };
    ["description", "summary", "message", "notes"].iter().any(|word| name.eq_ignore_ascii_case(word))
        || [".md", ".txt", ".html"].into_iter().any(ends_with)
}

fn judge(context: &Context<'_>, object: &Object, path: &FieldPath, text: &str, once: &mut Once) {
    for line in text.lines().filter(|line| !is_remark(line)) {
        if let Some(found) = WITHOUT_COLON.find(line) {
            let what = format!("an address in {} has no colon before its port", object.title());
            let diagnostic = RULE
                .diagnostic(what.clone())
                .at(context.survey.span(object, path), found.as_str().trim().to_owned())
                .because("the cluster's DNS knows no such name");
            once.add(&what, RULE.finding(context, object, diagnostic).likely());
        }
        // With a pod in front it is the address of that pod, which has every port that the pod has.
        let is_of_pod = |at: usize| line[..at].ends_with('.');
        let addresses = ADDRESS.captures_iter(line);
        for address in addresses.filter(|it| it.get(1).is_some_and(|name| !is_of_pod(name.start()))) {
            let (name, namespace, port) = (&address[1], &address[2], &address[3]);
            if let Some(finding) = wrong_port(context, object, path, (name, namespace, port)) {
                once.add(&address[0], finding);
            }
        }
        for address in SHORT.captures_iter(line).filter(|_| is_read_by_pods(object)) {
            let place = (&address[1], object.key.namespace.as_str(), &address[2]);
            if let Some(finding) = wrong_port(context, object, path, place) {
                once.add(&address[0], finding);
            }
        }
    }
}

/// Judges addresses in variables that leave the port to the scheme. A variable for the port beside them may
/// be put behind each of them.
fn variables_without_port(context: &Context<'_>, object: &Object, once: &mut Once) {
    let Some(pod) = pods::pod_of(object) else { return };
    for container in pod.containers() {
        let variables = list(container.value, "env");
        if variables.iter().any(|variable| text(variable, "name").to_ascii_lowercase().contains("port")) {
            continue;
        }
        for (at, variable) in variables.iter().enumerate() {
            let Some(address) = WITHOUT_PORT.captures(text(variable, "value")) else { continue };
            let namespace = address.get(3).map_or(object.key.namespace.as_str(), |it| it.as_str());
            let port = if &address[1] == "https" { "443" } else { "80" };
            let path = container.path.key("env").index(at).key("value");
            let place = (&address[2], namespace, port);
            if let Some(mut finding) = wrong_port(context, object, &path, place) {
                let help = format!("an address with {}:// and no port means {port}", &address[1]);
                finding.diagnostic.help.push(help);
                once.add(&address[0], finding);
            }
        }
    }
}

/// Whether pods of the object's own namespace read what stands in it.
fn is_read_by_pods(object: &Object) -> bool {
    let is_map = object.key.kind == "ConfigMap" && object.key.group.is_empty();
    !object.key.namespace.is_empty() && (is_map || pods::pod_of(object).is_some())
}

/// Whether a line is a comment, in one of the usual languages.
fn is_remark(line: &str) -> bool {
    ["#", "//", ";", "--", "*"].iter().any(|mark| line.trim_start().starts_with(mark))
}

/// The finding for an address whose Service is there, in every shape that it has, and has no such port.
fn wrong_port(
    context: &Context<'_>,
    object: &Object,
    path: &FieldPath,
    (name, namespace, port): (&str, &str, &str),
) -> Option<Finding> {
    let number: i64 = port.parse().ok()?;
    let services = services(context, object, name, namespace);
    let first = services.first()?;
    if services.iter().any(|service| has_port(service, number)) {
        return None;
    }
    let what = format!("{} names port {number} of {}, which it does not have", object.title(), first.title());
    let ports = list(&first.value()["spec"], "ports");
    let known: Vec<String> = ports.iter().map(|port| port["port"].to_string()).collect();
    let mut diagnostic = RULE
        .diagnostic(what)
        .at(context.survey.span(object, path), "in this text")
        .see(
            context.survey.span(first, &keys(&["spec", "ports"])),
            format!("its ports are {}", known.join(", ")),
        )
        .because("the address of a Service answers on its own ports only");
    if ports.iter().any(|port| port["targetPort"].as_i64() == Some(number)) {
        diagnostic = diagnostic.help(format!("{number} is a targetPort: name the port that leads to it"));
    }
    Some(RULE.finding(context, object, diagnostic).likely())
}

/// The Services of a name that an object can mean: those of its own cluster, and for what no Application
/// reaches those that none reaches either.
fn services<'a>(context: &'a Context<'_>, object: &Object, name: &str, namespace: &str) -> Vec<&'a Object> {
    let is_loose = |object: &Object| matches!(object.owner, Owner::Unit(_));
    let key = ResourceKey::new("", "Service", namespace, name);
    let all = context.survey.with_key(&key);
    all.filter(|it| it.world() == object.world() || is_loose(it) && is_loose(object)).collect()
}

/// Whether a Service has a port, or may have it: one without an address of its own leads to every port of its
/// pods.
fn has_port(service: &Object, number: i64) -> bool {
    let spec = &service.value()["spec"];
    let ports = list(spec, "ports");
    text(spec, "clusterIP") == "None"
        || text(spec, "type") == "ExternalName"
        || ports.is_empty()
        || placeholders::has_placeholder(spec)
        || ports.iter().any(|port| port["port"].as_i64().is_none_or(|port| port == number))
}
