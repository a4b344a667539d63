//! ConfigMaps and Secrets: absent, without a key, with a wrong value, or changed after the pod started.

use jiff::Timestamp;
use tiphys_cause::{Address, Cause, Complaint, RefusedValue, absent};
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    calls::Caller,
    cluster::{condition, items, pods, time},
    dependencies,
    finding::Finding,
    pod_addresses::wires,
    search_context::{Ill, Look},
    symptoms::unread_schedule,
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = look.ill.iter().flat_map(|ill| missing(look, ill)).collect();
    found.extend(look.cluster.all("CronJob").iter().filter_map(|cron| schedule(look, cron)));
    found
}

/// A CronJob whose schedule or time zone nobody can read.
fn schedule(look: &Look<'_>, cron: &Value) -> Option<Finding> {
    let event = unread_schedule(look.cluster, cron)?;
    let object = Object::from_live(cron);
    let is_zone = event.reason == "UnknownTimeZone";
    let field = if is_zone { "spec.timeZone" } else { "spec.schedule" };
    let value = cron.str_at(&["spec", if is_zone { "timeZone" } else { "schedule" }]).unwrap_or_default();
    let what = format!("{object} makes no Jobs: {field} is {value:?}, which cannot be read");
    Some(
        Finding::new(Cause::ConfigWrongValue, object.clone(), 0.93, what)
            .field(field)
            .since(event.first)
            .evidence(format!("Event of {object}"), event.message.clone())
            .remedy(
                if is_zone {
                    "Name a zone of the tz database: Europe/Berlin."
                } else {
                    "Write five fields: 0 2 * * *."
                },
                &[],
            ),
    )
}

/// Reasons of events that tell which absent objects a pod names.
const CONFIGURED: &[&str] = &["FailedMount", "Failed", "FailedCreatePodSandBox"];

/// What a container cannot be configured with.
fn missing(look: &Look<'_>, ill: &Ill<'_>) -> Vec<Finding> {
    let mut words = Vec::new();
    for pod in &ill.pods {
        let object = Object::from_live(pod);
        for status in pods::statuses(pod) {
            if let Some((reason, message)) = pods::waiting(status)
                && matches!(reason, "CreateContainerConfigError" | "CreateContainerError")
            {
                words.push((format!("{object}, waiting: {reason}"), message.to_owned()));
            }
        }
        let waits = pods::statuses(pod).any(|status| pods::waiting(status).is_some())
            || items(pod, &["status", "containerStatuses"]).next().is_none();
        let events =
            look.cluster.events(&object).filter(|event| waits && CONFIGURED.contains(&event.reason.as_str()));
        words.extend(events.map(|event| (format!("Event of {object}"), event.message.clone())));
    }
    let mut found: Vec<Finding> = Vec::new();
    for (source, message) in words {
        let Some(absent) = absent(&message) else { continue };
        let name = if absent.name.is_empty() {
            named_by_volume(ill, &message, absent.kind)
        } else {
            Some(absent.name.clone())
        };
        let Some(name) = name else { continue };
        let namespace = if absent.is_cluster_wide() { "" } else { ill.namespace() };
        let object = Object::new(absent.kind, namespace, &name);
        let is_data = matches!(absent.kind, "Secret" | "ConfigMap");
        let live = look.cluster.live(&object);
        let has_key = absent.key.as_ref().is_some_and(|key| live.is_some_and(|live| has_key(live, key)));
        // What is there by now was late, no more.
        if live.is_some() && (absent.key.is_none() || has_key) {
            continue;
        }
        let finding = match &absent.key {
            Some(key) => Finding::new(
                Cause::ConfigKeyMissing,
                object.clone(),
                0.95,
                format!("{object} has no key {key}, which {} asks for", ill.workload),
            )
            .field(format!("data.{key}"))
            .remedy(
                format!("Add the key {key}, or correct the reference."),
                &[format!(
                    "kubectl -n {} get {} {name} -o jsonpath='{{.data}}'",
                    object.namespace,
                    object.kind.to_lowercase()
                )],
            ),
            None => Finding::new(
                Cause::ConfigMissing,
                object.clone(),
                0.95,
                format!("{object} does not exist, and {} needs it", ill.workload),
            )
            .remedy(format!("Make {object}, or correct the reference in {}.", ill.workload), &[]),
        };
        let finding = if look.cluster.knows_makers() || !is_data { finding } else { finding.not_known() };
        // Who should make it is red: why is the cause, whether it is known or not.
        let mut makers = dependencies::upstream(look.cluster, &object);
        makers.extend(unseen_makers(look, &object));
        makers.extend(refused_makers(look, &object, &ill.workload));
        let finding = makers.iter().cloned().fold(finding, Finding::below);
        // So is why one that should have made it long ago says nothing at all.
        let is_open = |it: &Object| look.is_red(it) || has_done_nothing(look, it);
        let finding = if makers.iter().any(is_open) { finding.not_known() } else { finding };
        let finding = undelivered(look, &object, &ill.workload).into_iter().fold(finding, Finding::below);
        let finding = ill.pods.iter().fold(finding, |finding, pod| {
            finding.suffers(Object::from_live(pod), "its container is not configured")
        });
        found.push(
            finding
                .suffers(ill.workload.clone(), "its pods are not configured")
                .evidence(source, message)
                .since(ill.since),
        );
    }
    found
}

/// Whether a copy from a store outside of the cluster has no status: only events tell how it fails.
fn has_done_nothing(look: &Look<'_>, maker: &Object) -> bool {
    let is_copy = |kind: &str| kind.starts_with("Vault") && kind.ends_with("Secret");
    look.cluster
        .live(maker)
        .is_some_and(|live| is_copy(live.kind()) && crate::causes::operator::has_no_status(live))
}

/// Resources that fail, of kinds that were not saved, and that share their name with a missing Secret:
/// operators write the credentials of what they make into Secrets that are named after it.
fn unseen_makers(look: &Look<'_>, missing: &Object) -> Vec<Object> {
    /// A shorter beginning is shared by chance.
    const SHORTEST: usize = 4;
    let shares_name = |other: &Object| {
        let same = missing.name.bytes().zip(other.name.bytes()).take_while(|(one, two)| one == two).count();
        let stem = missing.name.get(..same).unwrap_or_default();
        let is_whole = same == missing.name.len() || same == other.name.len();
        let stem = if is_whole { stem } else { stem.rsplit_once('-').map_or("", |(stem, _)| stem) };
        stem.len() >= SHORTEST
    };
    let is_near = |other: &&Object| {
        look.cluster.case.in_part.contains(&other.kind)
            && look.cluster.live(other).is_some_and(|live| live.gvk().group.contains('.'))
            && (other.namespace.is_empty() || other.namespace == missing.namespace)
            && shares_name(other)
    };
    let is_data = missing.kind == "Secret" || missing.kind == "ConfigMap";
    look.red.keys().filter(|_| is_data).filter(is_near).cloned().collect()
}

/// Ill workloads that asked the API server for a missing object and were refused: who only uses it mounts it.
fn refused_makers(look: &Look<'_>, missing: &Object, user: &Object) -> Vec<Object> {
    let plural = format!("{}s", missing.kind.to_ascii_lowercase());
    let is_meant = |forbidden: &tiphys_cause::Forbidden| {
        forbidden.resource == plural
            && forbidden.namespace.as_ref().is_none_or(|it| *it == missing.namespace)
            && forbidden.line.split(['"', '\\', '\'']).any(|word| word == missing.name)
    };
    let asks = |ill: &&Ill<'_>| {
        ill.workload != *user
            && ill
                .facts
                .iter()
                .any(|fact| matches!(&fact.fact, crate::log_evidence::Fact::Forbidden(it) if is_meant(it)))
    };
    look.ill.iter().filter(asks).map(|ill| ill.workload.clone()).collect()
}

/// The file that a program does not find where a Secret or ConfigMap is mounted which lacks it.
pub(crate) fn missing_file(look: &Look<'_>, ill: &Ill<'_>) -> Option<Finding> {
    let logs = ill.pods.iter().flat_map(|pod| look.cluster.logs(pod.namespace(), pod.name()));
    let told = logs.flat_map(|log| log.last_lines().map(move |line| (log.source(), line)));
    told.filter_map(|(source, line)| Some((source, line, tiphys_cause::absent_file(line)?)))
        .find_map(|(source, line, path)| lacking_mount(look, ill, path).map(|it| it.evidence(source, line)))
        .map(|finding| finding.since(ill.since))
}

/// The mounted object that should hold a file and does not.
fn lacking_mount(look: &Look<'_>, ill: &Ill<'_>, path: &str) -> Option<Finding> {
    let mounts = pods::containers(ill.spec()).flat_map(|container| items(container, &["volumeMounts"]));
    let is_whole = |mount: &&Value| mount.str_at(&["subPath"]).is_none();
    let (mount, key) = mounts.filter(is_whole).find_map(|mount| {
        let folder = mount.str_at(&["mountPath"])?.trim_end_matches('/');
        // A program whose working folder is the root leaves the first slash out.
        let folder = if path.starts_with('/') { folder } else { folder.trim_start_matches('/') };
        let key = path.strip_prefix(folder)?.strip_prefix('/')?;
        (!key.is_empty() && !key.contains('/')).then_some((mount, key))
    })?;
    let volume = items(ill.spec(), &["volumes"]).find(|it| it.get("name") == mount.get("name"))?;
    let named = |kind: &str, path: &[&str]| {
        // Keys may be given other names as files.
        let is_plain = volume.at(&[path[0], "items"]).is_none();
        volume.str_at(path).filter(|_| is_plain).map(|name| Object::new(kind, ill.namespace(), name))
    };
    let object =
        named("Secret", &["secret", "secretName"]).or_else(|| named("ConfigMap", &["configMap", "name"]))?;
    let new = |cause, summary: String, remedy: String| {
        let command = format!(
            "kubectl -n {} get {} {} -o jsonpath='{{.data}}'",
            object.namespace,
            object.kind.to_lowercase(),
            object.name
        );
        Finding::new(cause, object.clone(), 0.92, summary)
            .field(format!("data.{key}"))
            .remedy(remedy, &[command])
            .suffers(ill.workload.clone(), "does not find its file")
    };
    match look.cluster.live(&object) {
        Some(live) if live.get("data").is_some_and(Value::is_object) && !has_key(live, key) => Some(new(
            Cause::ConfigKeyMissing,
            format!("{object} has no key {key}, which {} reads as the file {path}", ill.workload),
            format!("Add the key {key}, or correct the path that the program reads."),
        )),
        None if look.cluster.has_kind(&object.kind) && look.cluster.knows_makers() => {
            let finding = new(
                Cause::ConfigMissing,
                format!("{object} does not exist, and {} reads {path} from it", ill.workload),
                format!("Make {object} with the key {key}."),
            );
            Some(dependencies::upstream(look.cluster, &object).into_iter().fold(finding, Finding::below))
        }
        _ => None,
    }
}

/// What should have delivered a missing object, and fails at building or applying it.
fn undelivered(look: &Look<'_>, missing: &Object, workload: &Object) -> Vec<Object> {
    let cluster = look.cluster;
    let names_it = |text: &str| {
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')));
        // Files are named after the objects that they hold.
        words.any(|word| word == missing.name || word.split('.').next() == Some(missing.name.as_str()))
    };
    let label = |key: &str| cluster.live(workload).and_then(|live| live.label(key)).unwrap_or_default();
    let brings_workload = |live: &Value| {
        live.name() == label("kustomize.toolkit.fluxcd.io/name")
            && live.namespace() == label("kustomize.toolkit.fluxcd.io/namespace")
    };
    let fails_to_build = |live: &&&Value| {
        let ready = condition(live, "Ready").filter(|it| it.str_at(&["status"]) == Some("False"));
        let text = |key| ready.and_then(|it| it.str_at(&[key])).unwrap_or_default();
        match text("reason") {
            "BuildFailed" => {
                let decrypts = missing.kind == "Secret" && live.at(&["spec", "decryption"]).is_some();
                names_it(text("message")) || brings_workload(live) || decrypts
            }
            "ReconciliationFailed" => names_it(text("message")),
            _ => false,
        }
    };
    let kustomizations = cluster.all("Kustomization").iter().filter(fails_to_build);
    let mut found: Vec<Object> = kustomizations.map(|live| Object::from_live(live)).collect();
    for app in cluster.all("Application") {
        let errors = items(app, &["status", "conditions"])
            .filter(|it| it.str_at(&["type"]) == Some("ComparisonError"))
            .filter_map(|it| it.str_at(&["message"]));
        if errors.into_iter().any(names_it) {
            found.push(Object::from_live(app));
        }
        for result in items(app, &["status", "operationState", "syncResult", "resources"]) {
            let text = |key| result.str_at(&[key]).unwrap_or_default();
            if text("status") == "SyncFailed"
                && (text("namespace"), text("name")) == (&*missing.namespace, &*missing.name)
            {
                found.push(Object::new(text("kind"), text("namespace"), text("name")));
            }
        }
    }
    found
}

fn has_key(live: &Value, key: &str) -> bool {
    // A dump may leave the values of Secrets out, and their keys with them.
    let fields =
        ["data", "binaryData", "stringData"].map(|field| live.at(&[field]).and_then(Value::as_object));
    let is_told = fields.iter().any(Option::is_some);
    is_told && fields.into_iter().flatten().any(|data| data.contains_key(key))
}

/// The ConfigMap or Secret of the volume that a message is about.
fn named_by_volume(ill: &Ill<'_>, message: &str, kind: &str) -> Option<String> {
    let path: &[&str] = if kind == "Secret" { &["secret", "secretName"] } else { &["configMap", "name"] };
    let volumes: Vec<&Value> =
        items(ill.spec(), &["volumes"]).filter(|volume| volume.str_at(path).is_some()).collect();
    let told = volumes
        .iter()
        .find(|volume| message.contains(&format!("\"{}\"", volume.str_at(&["name"]).unwrap_or_default())));
    told.or(volumes.first()).and_then(|volume| volume.str_at(path)).map(str::to_owned)
}

/// When the values of a ConfigMap or Secret were changed last.
fn changed(live: &Value) -> Option<Timestamp> {
    let touches = |entry: &&Value| {
        entry.at(&["fieldsV1", "f:data"]).is_some() || entry.at(&["fieldsV1", "f:stringData"]).is_some()
    };
    items(live, &["metadata", "managedFields"])
        .filter(touches)
        .filter_map(|entry| time(entry, &["time"]))
        .max()
}

/// When the newest container of the pods was started.
fn started(pods: &[&Value]) -> Option<Timestamp> {
    let running = pods
        .iter()
        .flat_map(|pod| pods::statuses(pod))
        .filter_map(|status| time(status, &["state", "running", "startedAt"]));
    running.max()
}

/// The objects that a pod reads once, when it starts, and that were changed after it did.
fn changed_since_start<'a>(look: &Look<'a>, caller: &Caller<'a>) -> Vec<(Object, Timestamp)> {
    let Some(started) = started(&caller.pods) else { return Vec::new() };
    let spec = caller.pods.first().and_then(|pod| pod.get("spec")).unwrap_or(&Value::Null);
    let mut names = Vec::new();
    dependencies::configuration(spec, &caller.workload.namespace, &mut names);
    let changed = names
        .into_iter()
        .filter(|object| matches!(object.kind.as_str(), "ConfigMap" | "Secret"))
        .filter_map(|object| {
            let at = changed(look.cluster.live(&object)?)?;
            (at > started).then_some((object, at))
        });
    changed.collect()
}

/// The pod still uses an address that its configuration no longer names.
pub(crate) fn stale_address<'a>(look: &Look<'a>, caller: &Caller<'a>, address: &Address) -> Option<Finding> {
    let is_current = wires(&caller.settings).iter().any(|(wire, _)| wire.host == address.host);
    if is_current {
        return None;
    }
    let Some((object, at)) = changed_since_start(look, caller).into_iter().next() else {
        return renamed(caller, address);
    };
    Some(stale(caller, object, at, &format!("it still calls {address}")))
}

/// The configuration names a sibling of the address that is called: it was changed, although nothing tells
/// when.
fn renamed(caller: &Caller<'_>, address: &Address) -> Option<Finding> {
    let domain =
        |host: &str| host.split_once('.').map(|(_, domain)| domain.to_owned()).filter(|it| it.contains('.'));
    let wires = wires(&caller.settings);
    let (wire, setting) = wires.iter().find(|(wire, setting)| {
        setting.source.kind == "ConfigMap"
            && setting.is_read_once
            && wire.host != address.host
            && domain(&wire.host).is_some()
            && domain(&wire.host) == domain(&address.host)
    })?;
    let kind = caller.workload.kind.to_lowercase();
    let what = format!("{} names {wire}, and {} still calls {address}", setting.source, caller.workload);
    Some(
        Finding::new(Cause::ConfigStale, setting.source.clone(), 0.65, what)
            .field(setting.field.clone())
            .evidence(setting.source.to_string(), format!("{}={}", setting.key, setting.value))
            .remedy(
                "Restart the pods, so that they read the new values.",
                &[format!(
                    "kubectl -n {} rollout restart {kind} {}",
                    caller.workload.namespace, caller.workload.name
                )],
            ),
    )
}

fn stale(caller: &Caller<'_>, object: Object, at: Timestamp, how: &str) -> Finding {
    let summary =
        format!("{object} was changed at {at}, after the pods of {} started: {how}", caller.workload);
    let kind = caller.workload.kind.to_lowercase();
    let command =
        format!("kubectl -n {} rollout restart {kind} {}", caller.workload.namespace, caller.workload.name);
    let finding = Finding::new(Cause::ConfigStale, object.clone(), 0.92, summary)
        .since(Some(at))
        .evidence(format!("{object}, managedFields"), format!("changed at {at}"))
        .remedy("Restart the pods, so that they read the new values.", &[command]);
    match started(&caller.pods) {
        Some(started) => {
            finding.evidence(caller.workload.to_string(), format!("its containers run since {started}"))
        }
        None => finding,
    }
}

/// Credentials that the other side refuses.
pub(crate) fn credentials<'a>(
    look: &Look<'a>,
    ill: &Ill<'a>,
    complaint: &Complaint,
    source: &str,
) -> Finding {
    let caller = Caller::of_ill(look, ill);
    if let Some((object, at)) =
        changed_since_start(look, &caller).into_iter().find(|(object, _)| object.kind == "Secret")
    {
        return caller.suffers(
            stale(&caller, object, at, "it still sends the old credentials")
                .evidence(source, &complaint.line),
            "its credentials are refused",
        );
    }
    let mut names = Vec::new();
    let of_container = told_by(ill.spec(), source);
    dependencies::configuration(of_container.as_ref().unwrap_or(ill.spec()), ill.namespace(), &mut names);
    let word = |name: &str| {
        ["pass", "cred", "auth", "db", "user", "postgres", "mysql", "redis", "mongo", "rabbit", "token"]
            .iter()
            .any(|word| name.contains(word))
    };
    let pulls: Vec<&str> =
        items(ill.spec(), &["imagePullSecrets"]).filter_map(|it| it.str_at(&["name"])).collect();
    let secrets: Vec<&Object> =
        names.iter().filter(|it| it.kind == "Secret" && !pulls.contains(&it.name.as_str())).collect();
    let secret = secrets.iter().find(|it| word(&it.name)).or(secrets.first());
    let object = secret.map_or_else(|| ill.workload.clone(), |secret| (*secret).clone());
    let summary = format!(
        "the credentials that {} sends are refused{}",
        ill.workload,
        if complaint.subject.is_empty() { String::new() } else { format!(" (user {})", complaint.subject) }
    );
    let mut finding = Finding::new(Cause::ConfigCredentials, object.clone(), 0.85, summary)
        .evidence(source, &complaint.line)
        .remedy("Make the Secrets of both sides equal, and restart who read the old one.", &[]);
    if let Some(secret) = secret {
        finding = finding.evidence(ill.workload.to_string(), format!("takes its credentials from {secret}"));
        finding = dependencies::upstream(look.cluster, secret).into_iter().fold(finding, Finding::below);
    }
    caller.suffers(finding, "its credentials are refused")
}

/// Of a specification with several containers what the one uses whose log a source names: the credentials of
/// others are none of its own.
fn told_by(spec: &Value, source: &str) -> Option<Value> {
    let all: Vec<&Value> = pods::containers(spec).collect();
    let name = source.strip_prefix("log ")?.rsplit('/').next()?;
    let container = all.iter().find(|it| all.len() > 1 && it.str_at(&["name"]) == Some(name))?;
    let mounted: Vec<&str> =
        items(container, &["volumeMounts"]).filter_map(|it| it.str_at(&["name"])).collect();
    let volumes = items(spec, &["volumes"]);
    let is_mounted = |it: &&Value| it.str_at(&["name"]).is_some_and(|name| mounted.contains(&name));
    let volumes: Vec<&Value> = volumes.filter(is_mounted).collect();
    Some(tiphys_value::json!({"containers": [container], "volumes": volumes}))
}

/// A variable that the kubelet sets for a Service of the namespace, and that the program takes for its own.
fn service_link(look: &Look<'_>, ill: &Ill<'_>, refused: &RefusedValue, source: &str) -> Option<Finding> {
    let mut links = refused.words.iter().filter(|word| word.starts_with("tcp://"));
    let service = links.find_map(|word| {
        let address = tiphys_cause::addresses(word).into_iter().next()?;
        match look.cluster.target(&address, ill.namespace()) {
            crate::address_target::Target::Service(service) => Some(service),
            _ => None,
        }
    })?;
    let service = Object::from_live(service);
    let summary = format!(
        "{} takes a variable that the kubelet sets for {service} for one of its own settings",
        ill.workload
    );
    Some(
        Finding::new(Cause::ConfigWrongValue, ill.workload.clone(), 0.9, summary)
            .field("spec.template.spec.enableServiceLinks")
            .evidence(source, &refused.line)
            .since(ill.since)
            .remedy("Set enableServiceLinks: false, or set the variable to what the program expects.", &[]),
    )
}

/// The annotation of a pod that holds a value: what is injected into the pod reads its settings there.
fn annotation_with(ill: &Ill<'_>, refused: &RefusedValue) -> Option<(String, String)> {
    let all = ill.pods.first()?.at(&["metadata", "annotations"])?.as_object()?;
    let is_meant = |value: &str| refused.words.iter().any(|word| word.len() >= 3 && word == value);
    let (key, value) = all.iter().find(|(_, value)| value.as_str().is_some_and(is_meant))?;
    Some((format!("spec.template.metadata.annotations.{key}"), format!("{key}={}", value.as_str()?)))
}

/// The ConfigMap beside a program that holds the key and the value which it refuses: it reads it over the
/// API, and mounts nothing. With the key and the value.
fn read_over_api(look: &Look<'_>, ill: &Ill<'_>, refused: &RefusedValue) -> Option<(Object, String, String)> {
    let line = refused.line.replace("\\\"", "\"");
    let quoted: Vec<&str> = line.split(['"', '\'', '`']).collect();
    let beside = look.cluster.all("ConfigMap").iter().filter(|it| it.namespace() == ill.namespace());
    let mut holders = beside.filter_map(|live| {
        let data = live.get("data")?.as_object()?;
        let (key, value) = data.iter().find(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            quoted.contains(&key.as_str()) && !value.is_empty() && line.contains(value)
        })?;
        Some((Object::from_live(live), key.clone(), value.as_str()?.to_owned()))
    });
    let found = holders.next()?;
    holders.next().is_none().then_some(found)
}

/// A value that the program refuses, led back to where it is set.
pub(crate) fn refused_value<'a>(
    look: &Look<'a>,
    ill: &Ill<'a>,
    refused: &RefusedValue,
    source: &str,
) -> Finding {
    let caller = Caller::of_ill(look, ill);
    if let Some(finding) = service_link(look, ill, refused, source) {
        return caller.suffers(finding, "refuses its configuration");
    }
    let word = |value: &str| {
        refused.words.iter().any(|word| !word.is_empty() && (value == word || value.trim() == word))
    };
    let by_value = caller.settings.iter().find(|setting| word(&setting.value) || word(&setting.key));
    let setting = by_value.or_else(|| {
        caller.settings.iter().find(|setting| {
            refused.words.iter().any(|word| word.len() >= 4 && setting.value.contains(word.as_str()))
        })
    });
    let annotation = if setting.is_none() { annotation_with(ill, refused) } else { None };
    let read =
        if setting.is_none() && annotation.is_none() { read_over_api(look, ill, refused) } else { None };
    let (object, confidence) = match setting {
        _ if read.is_some() => (read.as_ref().map(|(object, ..)| object.clone()).unwrap_or_default(), 0.8),
        Some(setting) if !setting.source.kind.is_empty() => (setting.source.clone(), 0.88),
        Some(_) => (ill.workload.clone(), 0.88),
        None if annotation.is_some() => (ill.workload.clone(), 0.88),
        None => (ill.workload.clone(), 0.6),
    };
    let what = if refused.words.is_empty() { "a value".to_owned() } else { refused.words.join(", ") };
    let mut finding = Finding::new(
        Cause::ConfigWrongValue,
        object.clone(),
        confidence,
        format!("{} refuses {what}", ill.workload),
    )
    .evidence(source, &refused.line)
    .since(ill.since)
    .remedy(format!("Correct the value in {object}, and restart {}.", ill.workload), &[]);
    if let Some(setting) = setting {
        finding = finding
            .field(setting.field.clone())
            .evidence(object.to_string(), format!("{}={}", setting.key, setting.value));
    }
    if let Some((object, key, value)) = read {
        finding = finding.field(format!("data.{key}")).evidence(object.to_string(), format!("{key}={value}"));
    }
    if let Some((field, told)) = annotation {
        finding = finding.field(field).evidence(object.to_string(), told);
    }
    caller.suffers(finding, "refuses its configuration")
}
