//! # A port that no container has
//!
//! Probes, Services and monitors call ports by name. A name that no container declares stands for nothing: a
//! probe fails always, and a Service has no endpoint for that port. A number need not be declared; it is told
//! where the pods are probed at another one, which they declare, and nothing in them speaks of the number.
//!
//! People see: `Readiness probe errored: strconv.Atoi: parsing "htpp": invalid syntax`, `couldn't find port:
//! htpp`; connections to the Service are refused.
//!
//! ## Bad
//! ```yaml
//! ports: [{name: http, containerPort: 8080}]
//! readinessProbe: {httpGet: {path: /, port: htpp}}
//! ```
//! ## Good
//! ```yaml
//! readinessProbe: {httpGet: {path: /, port: http}}
//! ```
//! ## When to suppress
//! Where a sidecar with the port is injected when the pod is made.

use std::collections::HashMap;

use tiphys_diag::{Label, Severity, similar_names};
use tiphys_graph::{Object, ObjectId, Owner};
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{self, Container, Pod, list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E6-unknown-port",
    incident: "E6",
    severity: Severity::Error,
    title: "a port that no container has",
    page: page!("e6_unknown_port.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in context.survey.objects.iter().filter(|object| matches!(object.owner, Owner::App(_))) {
        let Some(pod) = pods::pod_of(object) else { continue };
        for container in pod.containers() {
            probes(context, &pod, &container, &mut once);
        }
    }
    for cluster in context.clusters() {
        let services =
            cluster.objects.iter().filter(|it| it.key.kind == "Service" && it.key.group.is_empty());
        let selected: Vec<(&Object, Vec<&Pod<'_>>)> =
            services.map(|service| (*service, cluster.selected_by(service).collect())).collect();
        let mut leading: HashMap<ObjectId, usize> = HashMap::new();
        for pod in selected.iter().flat_map(|(_, pods)| pods) {
            *leading.entry(pod.object.id).or_default() += 1;
        }
        for (service, pods) in selected.iter().filter(|(_, pods)| !pods.is_empty()) {
            targets(context, service, pods, &mut once);
            // Where several Services lead to the same pods, each may be for a port of its own.
            if pods.iter().all(|pod| leading.get(&pod.object.id) == Some(&1)) {
                unprobed(context, service, pods, &mut once);
            }
        }
    }
    once.report(report);
}

/// The names of the ports of a container.
fn names<'a>(container: &Container<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    list(container.value, "ports").iter().map(|port| text(port, "name")).filter(|name| !name.is_empty())
}

fn probes(context: &Context<'_>, pod: &Pod<'_>, container: &Container<'_>, once: &mut Once) {
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        for way in ["httpGet", "tcpSocket"] {
            let port = container.value.get(probe).and_then(|it| it.get(way)).and_then(|it| it.get("port"));
            if let Some(number) = port.and_then(Value::as_i64) {
                slip(context, pod, container, &container.path.key(probe).key(way).key("port"), number, once);
            }
            if way == "httpGet"
                && let Some(number) = port.and_then(Value::as_i64)
            {
                beside_other_probe(context, pod, container, probe, number, once);
            }
            let Some(name) = port.and_then(Value::as_str).filter(|name| name.parse::<u16>().is_err()) else {
                continue;
            };
            if names(container).any(|known| known == name) {
                continue;
            }
            let text = format!(
                "the {probe} of container {} of {} asks for port {name}, which the container does not have",
                container.name(),
                pod.object.title()
            );
            let diagnostic = RULE
                .diagnostic(text)
                .at(context.survey.span(pod.object, &container.path.key(probe).key(way).key("port")), "no port has this name")
                .because("the kubelet looks the name up among the container's ports; a probe that cannot be made has failed");
            let nearest = similar_names::nearest_slip(name, names(container));
            once.add(name, RULE.finding(context, pod.object, diagnostic).perhaps(name, nearest));
        }
    }
}

/// A probe of a port that is one slip away from the only one that the container says it has, and that the pod
/// does not speak of: no argument or variable has the number.
fn slip(
    context: &Context<'_>,
    pod: &Pod<'_>,
    container: &Container<'_>,
    path: &FieldPath,
    number: i64,
    once: &mut Once,
) {
    let all: Vec<i64> = pod
        .containers()
        .flat_map(|container| list(container.value, "ports"))
        .filter_map(|port| port.get("containerPort")?.as_i64())
        .collect();
    let own = list(container.value, "ports");
    let [Some(only)] = own.iter().map(|port| port.get("containerPort")?.as_i64()).collect::<Vec<_>>()[..]
    else {
        return;
    };
    let (wanted, said) = (number.to_string(), only.to_string());
    let speaks = ["args", "command", "env"]
        .iter()
        .any(|field| container.value.get(*field).is_some_and(|value| value.to_string().contains(&wanted)));
    if all.contains(&number) || speaks || !is_slip(&wanted, &said) {
        return;
    }
    let mut diagnostic = RULE
        .diagnostic(format!(
            "container {} of {} is probed at port {number}, and says that it has {only}",
            container.name(),
            pod.object.title()
        ))
        .at(context.survey.span(pod.object, path), "no container has this port")
        .because("where nothing listens a probe fails, and the pod is restarted or never ready");
    diagnostic.severity = Severity::Warning;
    let finding = RULE.finding(context, pod.object, diagnostic).likely();
    once.add(&wanted, finding.perhaps(&wanted, Some(&said)));
}

/// A probe of a port that no container of the pod says it has and nothing in the pod speaks of, beside one of
/// the same path at a port that the container has: what answers the one cannot answer the other.
fn beside_other_probe(
    context: &Context<'_>,
    pod: &Pod<'_>,
    container: &Container<'_>,
    probe: &str,
    number: i64,
    once: &mut Once,
) {
    const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
    let get = |probe: &str| container.value.get(probe).and_then(|it| it.get("httpGet"));
    let Some(own) = get(probe) else { return };
    let known = |port: &Value| {
        let ports = list(container.value, "ports").iter();
        let mut found =
            ports.filter(|it| it.get("containerPort") == Some(port) || it.get("name") == Some(port));
        found.next().and_then(|it| it.get("containerPort")?.as_i64())
    };
    let is_twin = |other: &&str| {
        get(other).is_some_and(|it| it.get("path") == own.get("path") && known(&it["port"]).is_some())
    };
    let Some(twin) = PROBES.into_iter().filter(|it| *it != probe).find(is_twin) else { return };
    let is_declared = pod
        .containers()
        .flat_map(|it| list(it.value, "ports"))
        .any(|it| it["containerPort"].as_i64() == Some(number));
    let wanted = number.to_string();
    let is_said = || {
        let fields = ["args", "command", "env", "envFrom", "lifecycle"];
        fields
            .iter()
            .any(|field| container.value.get(*field).is_some_and(|it| speaks_of(&it.to_string(), number)))
    };
    if is_declared
        || is_said()
        || pod.containers().filter(|it| it.path.to_string().contains("containers")).count() > 1
    {
        return;
    }
    let place = |probe: &str| container.path.key(probe).key("httpGet").key("port");
    let mut diagnostic = RULE
        .diagnostic(format!(
            "the {probe} of container {} of {} asks port {number}, which no container has",
            container.name(),
            pod.object.title()
        ))
        .at(context.survey.span(pod.object, &place(probe)), "no container has this port")
        .see(context.survey.span(pod.object, &place(twin)), format!("the {twin} asks the same path here"))
        .because("where nothing listens a probe fails, and the pod is restarted or never ready");
    diagnostic.severity = Severity::Warning;
    once.add(&wanted, RULE.finding(context, pod.object, diagnostic).likely());
}

/// Whether two numbers have the same digits but for one, or for the order of two.
fn is_slip(one: &str, other: &str) -> bool {
    const SHORTEST: usize = 4;
    if one.len() != other.len() || one.len() < SHORTEST {
        return false;
    }
    let differing: Vec<(u8, u8)> = one.bytes().zip(other.bytes()).filter(|(a, b)| a != b).collect();
    match differing[..] {
        // The last digit counts neighbouring ports.
        [(a, b)] => one.as_bytes().last() == other.as_bytes().last() && a != b,
        [(a, b), (c, d)] => a == d && b == c,
        _ => false,
    }
}

/// The first port that programs take without rights of their own, and that nobody takes for its default.
const FIRST_OWN: i64 = 1024;

/// A Service with one port, by number, which no container of its pods has or speaks of, while each of them is
/// probed at another one that it has, or has the port of the Service itself: there it listens.
fn unprobed(context: &Context<'_>, service: &Object, pods: &[&Pod<'_>], once: &mut Once) {
    let [port] = list(&service.value()["spec"], "ports") else { return };
    let Some(number) = port.get("targetPort").unwrap_or(&port["port"]).as_i64() else { return };
    let mut listening = None;
    for pod in pods {
        if speaks_of(&pod.object.value().to_string(), number) {
            return;
        }
        // Without probes, a container that says it has the port at which the Service is asked has that one.
        // That both say 80 means little.
        let of_service = port.get("targetPort").and(port["port"].as_i64()).filter(|port| *port >= FIRST_OWN);
        let said = || pod.containers().find_map(|container| declared(&container, of_service?));
        let Some(found) = pod.containers().find_map(|container| probed(&container)).or_else(said) else {
            return;
        };
        listening = Some((*pod, found));
    }
    let Some((pod, (probe, known))) = listening else { return };
    let field = if port.get("targetPort").is_some() { "targetPort" } else { "port" };
    let mut diagnostic = RULE
        .diagnostic(format!(
            "{} sends to port {number}, which no container of its pods has; {} listens at {known}",
            service.title(),
            pod.object.title()
        ))
        .at(
            context.survey.span(service, &keys(&["spec", "ports"]).index(0).key(field)),
            "no container has this port",
        )
        .see(context.survey.span(pod.object, &probe), "here it says so")
        .because("where nothing listens, connections are refused")
        .help(format!("perhaps targetPort: {known} is meant"));
    diagnostic.severity = Severity::Warning;
    let mut finding = RULE.finding(context, service, diagnostic).likely();
    // Where only the port is said, it is what others connect to.
    if field == "targetPort" {
        finding = finding.with_spelling(number.to_string(), known.to_string());
    }
    once.add(&number.to_string(), finding);
}

/// Where a container is probed over the network at a port that it says it has, and that port.
fn probed(container: &Container<'_>) -> Option<(FieldPath, i64)> {
    let own = list(container.value, "ports");
    for probe in ["readinessProbe", "livenessProbe", "startupProbe"] {
        for way in ["httpGet", "tcpSocket", "grpc"] {
            let Some(port) = container.value.get(probe).and_then(|it| it.get(way)?.get("port")) else {
                continue;
            };
            let known =
                own.iter().find(|it| it.get("containerPort") == Some(port) || it.get("name") == Some(port));
            if let Some(number) = known.and_then(|it| it.get("containerPort")?.as_i64()) {
                return Some((container.path.key(probe).key(way).key("port"), number));
            }
        }
    }
    None
}

/// Whether a text has a number in it, and not only as a part of another one.
fn speaks_of(text: &str, number: i64) -> bool {
    let number = number.to_string();
    text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits == number)
}

/// Where a container says that it has a port.
fn declared(container: &Container<'_>, number: i64) -> Option<(FieldPath, i64)> {
    let mut own = list(container.value, "ports").iter();
    let at = own.position(|it| it.get("containerPort").and_then(Value::as_i64) == Some(number))?;
    Some((container.path.key("ports").index(at).key("containerPort"), number))
}

fn targets(context: &Context<'_>, service: &Object, pods: &[&Pod<'_>], once: &mut Once) {
    for (at, port) in list(&service.value()["spec"], "ports").iter().enumerate() {
        let Some(name) = port.get("targetPort").and_then(Value::as_str) else { continue };
        let known: Vec<&str> =
            pods.iter().flat_map(|pod| pod.containers()).flat_map(|container| names(&container)).collect();
        if name.parse::<u16>().is_ok() || known.contains(&name) {
            continue;
        }
        let path: FieldPath = keys(&["spec", "ports"]).index(at).key("targetPort");
        let mut diagnostic = RULE
            .diagnostic(format!(
                "{} sends to port {name}, which no container of its pods has",
                service.title()
            ))
            .at(context.survey.span(service, &path), "no container port has this name")
            .because("the Service has no endpoint for the port, so that connections to it are refused");
        diagnostic.severity = Severity::Warning;
        diagnostic.related.push(Label {
            span: context.survey.span(pods[0].object, &pods[0].spec_path().key("containers")),
            text: format!("{} is selected", pods[0].object.title()),
        });
        let nearest = similar_names::nearest_slip(name, known.iter().copied());
        once.add(name, RULE.finding(context, service, diagnostic).perhaps(name, nearest));
    }
}
