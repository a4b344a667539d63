//! # Values of app-template that name a part that they do not have
//!
//! The chart app-template makes everything from its values, whose parts name each other: a Service its
//! controller, an Ingress or route its Service, a volume the controllers and containers that mount it. A
//! name that none has lets Helm fail, and nothing of the release is upgraded. A container that does not exist
//! mounts nothing, silently.
//!
//! People see: `No enabled controller found with this identifier`, `No enabled Service found with this
//! identifier`, `Not a valid persistence.type`, a HelmRelease that stays at the version before, a program
//! that does not find its volume.
//!
//! ## Bad
//! ```yaml
//! controllers: {web: {containers: {app: {image: {repository: web, tag: v1}}}}}
//! service: {app: {controller: main, ports: {http: {port: 80}}}}
//! ```
//! ## Good
//! ```yaml
//! controllers: {web: {containers: {app: {image: {repository: web, tag: v1}}}}}
//! service: {app: {controller: web, ports: {http: {port: 80}}}}
//! ```
//! ## When to suppress
//! Where other values complete these.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, similar_names};
use tiphys_value::{Map, ObjectExt, Value};

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        app_template::{self, enabled},
        chart_uses::ChartUse,
        dedup::Once,
        placeholders,
        pods::{list, text},
        value_steps::Step,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-app-template",
    incident: "D2",
    severity: Severity::Error,
    title: "values of app-template that name a part that they do not have",
    page: page!("d2_app_template.rs"),
    check,
};

/// The newest major version of which the probes were looked at.
const NEWEST: u64 = 4;

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let uses = context.chart_uses().iter().filter(|used| used.chart == "app-template");
    for used in uses.filter(|used| !used.has_hidden_values) {
        // Before version 2 there was one controller and no name for it.
        let values = used.merged_values();
        if values.get("controllers").is_none_or(|it| !it.is_object()) {
            continue;
        }
        let release = used.release.as_ref().map(|release| release.name.as_str()).unwrap_or_default();
        let services = app_template::service_names(release, &values, &used.version);
        // What the chart makes of probes in later versions nobody looked at.
        let is_known = app_template::major(&used.version).is_some_and(|major| major <= NEWEST);
        let of_probes = |fault: &WrongPart<'_>| fault.path.contains(&Step::Key("probes"));
        // Since version 3 an Ingress names a Service of the values by its identifier.
        let is_by_identifier = app_template::major(&used.version).is_some_and(|major| major >= 3);
        let found = faults(&values, services.filter(|_| !release.is_empty()), is_by_identifier);
        let own = own_names(context, &values, release);
        let accounts = app_template::major(&used.version).filter(|major| *major >= 4).and(account(&values));
        let found = found.into_iter().filter(|fault| is_known || !of_probes(fault));
        for fault in found.chain(own).chain(accounts) {
            add(context, used, &fault, &mut once);
        }
    }
    once.report(report);
}

/// Volumes from a ConfigMap or Secret of the same values by the name that these give it, and not by the one
/// that it has in the cluster: `identifier` makes that of it.
fn own_names<'v>(context: &Context<'_>, values: &'v Value, release: &str) -> Vec<WrongPart<'v>> {
    let is_there = |kind: &str, name: &str| {
        context.survey.objects.iter().any(|object| object.key.kind == kind && object.key.name == name)
    };
    let mut found = Vec::new();
    for (volume, it) in enabled(values, "persistence") {
        let (kind, made) = match text(it, "type") {
            "configMap" => ("ConfigMap", "configMaps"),
            "secret" => ("Secret", "secrets"),
            _ => continue,
        };
        let name = text(it, "name");
        let is_own = enabled(values, made).iter().any(|(own, _)| *own == name);
        if !is_own || name == release || is_there(kind, name) {
            continue;
        }
        let path = vec![Step::Key("persistence"), Step::Key(volume), Step::Key("name")];
        let message = format!(
            "volume {volume} takes {kind}/{name}, and that of these values has the release's name before it: identifier: {name} is meant"
        );
        found.push(WrongPart {
            path,
            message,
            spelling: None,
            silent: Some("the pod waits for an object that nothing makes"),
        });
    }
    found
}

/// Since version 4 the accounts have identifiers: what was the setting of the only one is none of these.
fn account(values: &Value) -> Option<WrongPart<'_>> {
    let accounts = values.get("serviceAccount")?.as_object()?;
    let (field, _) = accounts.iter().find(|(key, value)| {
        matches!(key.as_str(), "create" | "name" | "annotations" | "labels") && !value.is_object()
    })?;
    Some(WrongPart {
        path: vec![Step::Key("serviceAccount"), Step::Key(field)],
        message: format!(
            "serviceAccount.{field} is of versions before 4: here each account has an identifier above it, and a controller names its own by serviceAccount.identifier or .name"
        ),
        spelling: None,
        silent: None,
    })
}

/// A part of the values that the chart refuses, or takes no notice of.
struct WrongPart<'v> {
    path: Vec<Step<'v>>,
    message: String,
    /// The name and the one that is meant.
    spelling: Option<(String, String)>,
    /// What comes of it, if the chart does not refuse its values.
    silent: Option<&'static str>,
}

/// What comes of most parts that the chart does not refuse.
const UNREAD: &str = "the chart takes no notice of it";

fn add(context: &Context<'_>, used: &ChartUse, fault: &WrongPart<'_>, once: &mut Once) {
    let index = used.values.len().saturating_sub(1);
    let span = place_of(context, used, index, &fault.path).unwrap_or_else(|| used.span.clone());
    let mut diagnostic = RULE.diagnostic(format!("{}: {}", used.by, fault.message)).at(span, "named here");
    diagnostic = match fault.silent {
        Some(effect) => {
            diagnostic.severity = Severity::Warning;
            diagnostic.because(effect)
        }
        None => diagnostic.because("the chart refuses its values: Helm renders and upgrades nothing"),
    };
    let finding = Finding::new(RULE.incident, diagnostic).likely();
    let finding = match &fault.spelling {
        Some((wrong, meant)) => finding.perhaps(wrong, Some(meant)),
        None => finding,
    };
    once.add(&fault.message, finding);
}

fn names<'v>(parts: &[(&'v str, &'v Value)]) -> BTreeSet<&'v str> {
    parts.iter().map(|(name, _)| *name).collect()
}

fn is_open(text: &str) -> bool {
    text.contains("{{") || placeholders::is_in(text)
}

/// Fields of a container, none of which is called as containers are.
const FIELDS: [&str; 10] = [
    "args",
    "command",
    "env",
    "envFrom",
    "image",
    "lifecycle",
    "ports",
    "probes",
    "resources",
    "securityContext",
];

struct Reader<'v> {
    controllers: Vec<(&'v str, &'v Value)>,
    services: Vec<(&'v str, &'v Value)>,
    /// The names that the Services have in the cluster, where `name` asks for these.
    full: Option<BTreeSet<String>>,
    faults: Vec<WrongPart<'v>>,
}

/// The faults of values. `services` are the names that the Services have in the cluster, if that is known.
fn faults(values: &Value, services: Option<BTreeSet<String>>, is_by_identifier: bool) -> Vec<WrongPart<'_>> {
    let mut reader = Reader {
        controllers: enabled(values, "controllers"),
        services: enabled(values, "service"),
        full: services.clone().filter(|_| is_by_identifier),
        faults: Vec::new(),
    };
    reader.services(values);
    reader.ingresses(values);
    reader.routes(values);
    reader.volumes(values);
    reader.monitors(values, services.as_ref());
    reader.containers(values);
    reader.faults
}

impl<'v> Reader<'v> {
    /// A name that has to be one of some; nothing if it is, or is filled in later.
    fn check_name(
        &mut self,
        path: &[Step<'v>],
        name: &str,
        known: &BTreeSet<&str>,
        what: &str,
        is_silent: bool,
    ) {
        if name.is_empty() || known.contains(name) || is_open(name) || known.iter().any(|it| is_open(it)) {
            return;
        }
        let near = similar_names::nearest_slip(name, known.iter().copied());
        let only = known.first().copied().filter(|_| known.len() == 1);
        let meant = near.or(only);
        let all: Vec<&str> = known.iter().copied().collect();
        let message = match all.as_slice() {
            [] => format!("there is no {what} {name}, and no other"),
            all => format!("there is no {what} {name}, only {}", all.join(", ")),
        };
        let spelling = meant.map(|meant| (name.to_owned(), meant.to_owned()));
        self.faults.push(WrongPart {
            path: path.to_vec(),
            message,
            spelling,
            silent: is_silent.then_some(UNREAD),
        });
    }

    fn services(&mut self, values: &'v Value) {
        let controllers = names(&self.controllers);
        for (name, service) in enabled(values, "service") {
            let path = [Step::Key("service"), Step::Key(name), Step::Key("controller")];
            self.check_name(&path, text(service, "controller"), &controllers, "controller", false);
        }
    }

    /// A Service by its identifier, and one of its ports by its name.
    fn backend(&mut self, path: &[Step<'v>], backend: &'v Value) {
        let services = names(&self.services);
        let identifier = text(backend, "identifier");
        let at = |key: &'static str| [path, &[Step::Key(key)]].concat();
        self.check_name(&at("identifier"), identifier, &services, "service", false);
        self.full_name(&at("name"), backend);
        let service = self.services.iter().find(|(name, _)| *name == identifier).map(|(_, it)| *it);
        if let (Some(service), Some(port)) = (service, backend.get("port").and_then(Value::as_str)) {
            let is_number = port.chars().all(|c| c.is_ascii_digit());
            if !is_number {
                let ports = names(&enabled(service, "ports"));
                self.check_name(
                    &at("port"),
                    port,
                    &ports,
                    &format!("port of service {identifier} called"),
                    false,
                );
            }
        }
    }

    /// The name of a Service in the cluster, for which somebody wrote its identifier.
    fn full_name(&mut self, path: &[Step<'v>], backend: &'v Value) {
        let name = text(backend, "name");
        let Some(full) = self.full.as_ref().filter(|_| text(backend, "identifier").is_empty()) else {
            return;
        };
        let is_identifier = self.services.iter().any(|(own, _)| *own == name);
        if !is_identifier || full.contains(name) || is_open(name) {
            return;
        }
        let all: Vec<&str> = full.iter().map(String::as_str).collect();
        let message = format!(
            "the Ingress names the Service {name}, and there is only {}: write `identifier: {name}`",
            all.join(", ")
        );
        let silent = Some("`name` is taken as it is: the Ingress leads to a Service that is not there");
        self.faults.push(WrongPart { path: path.to_vec(), message, spelling: None, silent });
    }

    fn ingresses(&mut self, values: &'v Value) {
        for (name, ingress) in enabled(values, "ingress") {
            for (at, host) in list(ingress, "hosts").iter().enumerate() {
                for (index, of_path) in list(host, "paths").iter().enumerate() {
                    let Some(service) = of_path.get("service") else { continue };
                    let path = [
                        Step::Key("ingress"),
                        Step::Key(name),
                        Step::Key("hosts"),
                        Step::Index(at),
                        Step::Key("paths"),
                        Step::Index(index),
                        Step::Key("service"),
                    ];
                    self.backend(&path, service);
                }
            }
        }
    }

    fn routes(&mut self, values: &'v Value) {
        for (name, route) in enabled(values, "route") {
            for (at, rule) in list(route, "rules").iter().enumerate() {
                for (index, backend) in list(rule, "backendRefs").iter().enumerate() {
                    let path = [
                        Step::Key("route"),
                        Step::Key(name),
                        Step::Key("rules"),
                        Step::Index(at),
                        Step::Key("backendRefs"),
                        Step::Index(index),
                    ];
                    let services = names(&self.services);
                    let at = [&path[..], &[Step::Key("identifier")]].concat();
                    self.check_name(&at, text(backend, "identifier"), &services, "service", false);
                }
            }
        }
    }

    fn volumes(&mut self, values: &'v Value) {
        const TYPES: [&str; 8] = [
            "configMap",
            "custom",
            "emptyDir",
            "hostPath",
            "image",
            "nfs",
            "persistentVolumeClaim",
            "secret",
        ];
        let controllers = names(&self.controllers);
        for (name, volume) in enabled(values, "persistence") {
            let path = |key: &'v str| vec![Step::Key("persistence"), Step::Key(name), Step::Key(key)];
            let of_type = text(volume, "type");
            // `pvc` was its name in the first version, which has no list of controllers.
            let old = (of_type == "pvc" && !controllers.is_empty()).then_some("persistentVolumeClaim");
            let near = || similar_names::nearest_slip(of_type, TYPES.into_iter());
            if let Some(meant) = old.or_else(near).filter(|_| !TYPES.contains(&of_type)) {
                let message = format!("there is no type of volume {of_type}, {meant} is meant");
                let spelling = Some((of_type.to_owned(), meant.to_owned()));
                self.faults.push(WrongPart { path: path("type"), message, spelling, silent: None });
            }
            let made = match of_type {
                "configMap" => "configMaps",
                "secret" => "secrets",
                _ => "",
            };
            if !made.is_empty() && text(volume, "name").is_empty() {
                let made = names(&enabled(values, made));
                self.check_name(&path("identifier"), text(volume, "identifier"), &made, of_type, false);
            }
            let mounts = volume.get("advancedMounts").and_then(Value::as_object).into_iter().flatten();
            for (controller, of_containers) in mounts {
                let at = [&path("advancedMounts")[..], &[Step::Key(controller)]].concat();
                self.check_name(&at, controller, &controllers, "controller", false);
                let of_controller =
                    self.controllers.iter().find(|(name, _)| name == controller).map(|(_, it)| *it);
                let Some(of_controller) = of_controller else { continue };
                let containers = containers(of_controller);
                for container in of_containers.as_object().into_iter().flat_map(Map::keys) {
                    let at = [&at[..], &[Step::Key(container)]].concat();
                    let what = format!("container of controller {controller} called");
                    self.check_name(&at, container, &containers, &what, true);
                }
            }
        }
    }

    /// The ports that monitors name are those of the Service.
    fn monitors(&mut self, values: &'v Value, named: Option<&BTreeSet<String>>) {
        let services = names(&self.services);
        for (name, monitor) in enabled(values, "serviceMonitor") {
            let path = [Step::Key("serviceMonitor"), Step::Key(name)];
            if let Some(named) = named.filter(|named| !named.is_empty()) {
                let at = [&path[..], &[Step::Key("serviceName")]].concat();
                let named: BTreeSet<&str> = named.iter().map(String::as_str).collect();
                self.check_name(&at, text(monitor, "serviceName"), &named, "Service", true);
            }
            let identifier = monitor.str_at(&["service", "identifier"]).unwrap_or_default();
            let at = [&path[..], &[Step::Key("service"), Step::Key("identifier")]].concat();
            self.check_name(&at, identifier, &services, "service", false);
            let is_other = monitor.get("serviceName").is_some()
                || monitor.get("selector").is_some()
                || monitor.at(&["service", "name"]).is_some();
            let of_name = self.services.iter().find(|(name, _)| *name == identifier);
            let only = self.services.first().filter(|_| self.services.len() == 1 && identifier.is_empty());
            let Some((called, service)) = of_name.or(only).copied().filter(|_| !is_other) else { continue };
            let ports = names(&enabled(service, "ports"));
            for (index, endpoint) in list(monitor, "endpoints").iter().enumerate() {
                let at =
                    [&path[..], &[Step::Key("endpoints"), Step::Index(index), Step::Key("port")]].concat();
                let what = format!("port of service {called} called");
                self.check_name(&at, text(endpoint, "port"), &ports, &what, true);
            }
        }
    }

    fn containers(&mut self, values: &'v Value) {
        for (controller, of_controller) in self.controllers.clone() {
            for kind in ["containers", "initContainers"] {
                self.no_container((controller, kind), of_controller);
                for (name, container) in enabled(of_controller, kind) {
                    let path =
                        [Step::Key("controllers"), Step::Key(controller), Step::Key(kind), Step::Key(name)];
                    self.image(&path, (controller, name), container);
                    self.mounts(values, (controller, name));
                    self.environment(values, &path, container);
                    self.probes(&path, container);
                }
            }
        }
    }

    /// What stands among the containers and is none: a field that is indented too far.
    fn no_container(&mut self, (controller, kind): (&'v str, &'v str), of_controller: &'v Value) {
        let entries = of_controller.get(kind).and_then(Value::as_object).into_iter().flatten();
        for (name, _) in entries.filter(|(_, it)| !it.is_object() && !it.is_null()) {
            let path =
                vec![Step::Key("controllers"), Step::Key(controller), Step::Key(kind), Step::Key(name)];
            let message =
                format!("{name} of controller {controller} stands among the {kind}, and is no container");
            self.faults.push(WrongPart { path, message, spelling: None, silent: None });
        }
    }

    fn image(&mut self, path: &[Step<'v>], (controller, name): (&str, &str), container: &'v Value) {
        let Some(image) = container.get("image") else {
            // A field of a container that stands beside it is taken for one more.
            if FIELDS.contains(&name) {
                let message =
                    format!("{name} of controller {controller} is taken for a container, which has no image");
                self.faults.push(WrongPart { path: path.to_vec(), message, spelling: None, silent: None });
            }
            return;
        };
        let path = [path, &[Step::Key("image")]].concat();
        let what = format!("container {name} of controller {controller}");
        let message = match image {
            Value::String(_) => format!("the image of {what} is a text, and not a repository with a tag"),
            Value::Object(map)
                if map.get("repository").is_some()
                    && map.get("tag").is_none()
                    && map.get("digest").is_none() =>
            {
                format!("the image of {what} has no tag")
            }
            Value::Object(map) if map.get("repository").is_none() && map.get("tag").is_some() => {
                format!("the image of {what} has no repository")
            }
            _ => return,
        };
        self.faults.push(WrongPart { path, message, spelling: None, silent: None });
    }

    /// The places that a container mounts volumes at; each takes one.
    fn mounts(&mut self, values: &'v Value, (controller, name): (&str, &str)) {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for (volume, it) in enabled(values, "persistence") {
            let own = it.at(&["advancedMounts", controller, name]).and_then(Value::as_array);
            let mounts = list(it, "globalMounts").iter().chain(own.into_iter().flatten());
            for at in mounts.map(|mount| text(mount, "path").trim_end_matches('/')) {
                if at.is_empty() || is_open(at) {
                    continue;
                }
                if let Some(other) = seen.insert(at, volume).filter(|other| *other != volume) {
                    let message = format!(
                        "container {name} of controller {controller} mounts {other} and {volume} at {at}: must be unique"
                    );
                    let path = vec![Step::Key("persistence"), Step::Key(volume)];
                    self.faults.push(WrongPart { path, message, spelling: None, silent: None });
                }
            }
        }
    }

    fn environment(&mut self, values: &'v Value, path: &[Step<'v>], container: &'v Value) {
        for (at, from) in list(container, "envFrom").iter().enumerate() {
            for (field, made) in [("configMapRef", "configMaps"), ("secretRef", "secrets")] {
                let Some(identifier) = from.str_at(&[field, "identifier"]) else { continue };
                let path = [
                    path,
                    &[Step::Key("envFrom"), Step::Index(at), Step::Key(field), Step::Key("identifier")],
                ]
                .concat();
                let known = names(&enabled(values, made));
                self.check_name(&path, identifier, &known, made.trim_end_matches('s'), false);
            }
        }
    }

    /// What a probe asks is taken from its `spec` only if it is `custom`.
    fn probes(&mut self, path: &[Step<'v>], container: &'v Value) {
        const HANDLERS: [&str; 4] = ["exec", "grpc", "httpGet", "tcpSocket"];
        let probes = container.get("probes").and_then(Value::as_object).into_iter().flatten();
        for (kind, probe) in probes {
            let is = |field: &str| probe.get(field) == Some(&Value::Bool(true));
            let handler = HANDLERS.into_iter().find(|it| probe.at(&["spec", it]).is_some());
            if let Some(handler) = handler.filter(|_| is("enabled") && !is("custom")) {
                let path = [path, &[Step::Key("probes"), Step::Key(kind), Step::Key("spec")]].concat();
                let message =
                    format!("the {kind} probe has {handler} and is not `custom`: a port is asked instead");
                self.faults.push(WrongPart { path, message, spelling: None, silent: Some(UNREAD) });
            }
        }
    }
}

/// The containers of a controller, also those that start it.
fn containers(controller: &Value) -> BTreeSet<&str> {
    let maps = ["containers", "initContainers"].map(|kind| controller.get(kind).and_then(Value::as_object));
    maps.into_iter().flatten().flat_map(|map| map.keys()).map(String::as_str).collect()
}
