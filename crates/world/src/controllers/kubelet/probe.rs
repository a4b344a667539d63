//! Probes: when a running container counts as started, ready, or broken (core/v1 Probe).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tiphys_value::ObjectExt;

use super::{
    Sync,
    container::{Kind, field},
    remaining,
};
use crate::behaviour::{Exit, Span, Target, open_ports};

/// How often the same failure of a probe is told.
const TELL_EVERY: u64 = 300;

struct Probe {
    /// The name of a port that the container does not have.
    unknown_port: Option<String>,
    /// What a probe says of a port on which nothing listens, if that is known.
    closed: Option<String>,
    delay: Duration,
    period: Duration,
    failures: u32,
}

fn probe(sync: &Sync<'_>, spec: &Value, kind: &str) -> Option<Probe> {
    let probe = spec.get(kind).filter(|probe| probe.is_object())?;
    let seconds = |field: &str, default: i64| {
        Duration::from_secs(probe.int_at(&[field]).unwrap_or(default).unsigned_abs())
    };
    let failures = probe.int_at(&["failureThreshold"]).and_then(|n| u32::try_from(n).ok()).unwrap_or(3);
    let successes =
        probe.int_at(&["successThreshold"]).and_then(|n| u32::try_from(n).ok()).unwrap_or(1).max(1);
    let period = seconds("periodSeconds", 10).max(Duration::from_secs(1));
    let delay = match sync.context.settings.probe_delays {
        true => seconds("initialDelaySeconds", 0) + period * (successes - 1),
        false => Duration::ZERO,
    };
    let (unknown_port, closed) = (unknown_port(spec, probe), closed(sync.pod, spec, probe));
    Some(Probe { unknown_port, closed, delay, period, failures })
}

/// What a probe says that asks for a port on which the pod's program is known not to listen.
fn closed(pod: &Value, spec: &Value, probe: &Value) -> Option<String> {
    let (action, asked) = ["httpGet", "tcpSocket"]
        .into_iter()
        .find_map(|action| Some((action, probe.at(&[action, "port"])?)))?;
    if probe.at(&[action, "host"]).is_some() {
        return None;
    }
    let named = || {
        let mut ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
        ports.find(|port| port.get("name") == Some(asked))?.int_at(&["containerPort"])
    };
    let port = asked.as_i64().or_else(|| asked.as_str()?.parse().ok()).or_else(named)?;
    if open_ports(pod)?.iter().any(|open| i64::from(*open) == port) {
        return None;
    }
    let address = format!("{}:{port}", pod.str_at(&["status", "podIP"]).unwrap_or_default());
    let refused = format!("dial tcp {address}: connect: connection refused");
    Some(match action {
        "httpGet" => {
            let text = |field: &str| probe.str_at(&[action, field]);
            let scheme = text("scheme").unwrap_or("HTTP").to_lowercase();
            let path = text("path").unwrap_or("/");
            format!("Get \"{scheme}://{address}{path}\": {refused}")
        }
        _ => refused,
    })
}

/// The name by which a probe asks for a port, if no port of the container has it.
fn unknown_port(spec: &Value, probe: &Value) -> Option<String> {
    let actions = ["httpGet", "tcpSocket"].into_iter();
    let name = actions.filter_map(|action| probe.str_at(&[action, "port"])).next()?;
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    let is_known = ports.into_iter().any(|port| port.str_at(&["name"]) == Some(name));
    // A number in quotes is one.
    (!is_known && name.parse::<u16>().is_err()).then(|| name.to_owned())
}

/// What the kubelet says of a port that it cannot find.
fn errored(kind: &str, name: &str) -> String {
    format!(
        "{kind} probe errored and resulted in unknown state: strconv.Atoi: parsing {name:?}: invalid syntax"
    )
}

/// What a probe finds wrong with a container.
fn fault(sync: &Sync<'_>, spec: &Value, began: Timestamp) -> Result<(), ProbeFault> {
    let behaviours = sync.context.behaviours;
    if let Some(cause) = behaviours.blocked(sync.pod, &Target::Probes {}, sync.context.view) {
        return Err(ProbeFault::Lasting(cause.to_string()));
    }
    let Some(rule) = behaviours.containers.iter().find(|rule| rule.is_about(sync.pod, spec)) else {
        return Ok(());
    };
    if let Some(text) = &rule.ready.never {
        return Err(ProbeFault::Lasting(text.clone()));
    }
    if let Some(cause) = rule.unmet(sync.pod, behaviours, sync.context.view) {
        return Err(ProbeFault::Lasting(cause.to_string()));
    }
    match remaining(began, rule.ready.after.0, sync.context.now) {
        Some(left) => Err(ProbeFault::Until(left)),
        None => Ok(()),
    }
}

enum ProbeFault {
    Lasting(String),
    Until(Duration),
}

/// Whether a container is Ready. Without a readiness probe whatever runs is.
pub(super) fn readiness(sync: &mut Sync<'_>, spec: &Value, began: Timestamp) -> bool {
    let startup = probe(sync, spec, "startupProbe");
    if let Some((probe, text)) = startup.as_ref().and_then(|probe| Some((probe, probe.closed.as_ref()?))) {
        let message = format!("Startup probe failed: {text}");
        tell_now_and_then(sync, spec, began, message, probe.delay, probe.period);
        return false;
    }
    if let Some((probe, port)) =
        startup.as_ref().and_then(|probe| Some((probe, probe.unknown_port.as_ref()?)))
    {
        tell_now_and_then(sync, spec, began, errored("Startup", port), probe.delay, probe.period);
        return false;
    }
    let startup = startup.map_or(Duration::ZERO, |probe| probe.delay);
    if let Some(left) = remaining(began, startup, sync.context.now) {
        sync.look_again(left);
        return false;
    }
    let Some(probe) = probe(sync, spec, "readinessProbe") else { return true };
    if let Some(left) = remaining(began, startup + probe.delay, sync.context.now) {
        sync.look_again(left);
        return false;
    }
    if let Some(port) = &probe.unknown_port {
        tell_now_and_then(sync, spec, began, errored("Readiness", port), startup + probe.delay, probe.period);
        return false;
    }
    let found = match &probe.closed {
        Some(text) => Err(ProbeFault::Lasting(text.clone())),
        None => fault(sync, spec, began),
    };
    match found {
        Ok(()) => {
            let has_needs = sync
                .context
                .behaviours
                .containers
                .iter()
                .any(|rule| !rule.needs.is_empty() && rule.is_about(sync.pod, spec));
            if has_needs {
                sync.look_again(probe.period);
            }
            true
        }
        Err(ProbeFault::Until(left)) => {
            sync.look_again(left);
            false
        }
        Err(ProbeFault::Lasting(text)) => {
            let message = format!("Readiness probe failed: {text}");
            tell_now_and_then(sync, spec, began, message, startup + probe.delay, probe.period);
            false
        }
    }
}

/// Tells of a probe that goes on failing, when it begins and every [`TELL_EVERY`] seconds.
fn tell_now_and_then(
    sync: &mut Sync<'_>,
    spec: &Value,
    began: Timestamp,
    message: String,
    from: Duration,
    period: Duration,
) {
    let ran = sync.context.now.as_second().saturating_sub(began.as_second()).unsigned_abs();
    if ran.saturating_sub(from.as_secs()) % TELL_EVERY < period.as_secs() {
        let name = spec.str_at(&["name"]).unwrap_or_default();
        sync.tell(true, "Unhealthy", message, Some(&field(Kind::App, name)));
    }
    sync.look_again(period);
}

/// Whether a container counts as started: at once, or when its startup probe has succeeded.
pub(super) fn is_started(sync: &Sync<'_>, spec: &Value, began: Timestamp) -> bool {
    probe(sync, spec, "startupProbe").is_none_or(|probe| {
        probe.unknown_port.is_none()
            && probe.closed.is_none()
            && remaining(began, probe.delay, sync.context.now).is_none()
    })
}

/// When a container is killed because its liveness or startup probe fails: probes do not reach the pod, or
/// nothing listens.
pub(super) fn liveness(sync: &mut Sync<'_>, spec: &Value, began: Timestamp) -> Option<Exit> {
    let startup = probe(sync, spec, "startupProbe").filter(|probe| probe.closed.is_some());
    let kind = if startup.is_some() { "Startup" } else { "Liveness" };
    let probe = startup.or_else(|| probe(sync, spec, "livenessProbe"))?;
    let blocked = || sync.context.behaviours.blocked(sync.pod, &Target::Probes {}, sync.context.view);
    let cause = probe.closed.clone().or_else(|| blocked().map(|cause| cause.to_string()))?;
    let after = probe.delay + probe.period * probe.failures;
    if remaining(began, after, sync.context.now).is_none() {
        let name = spec.str_at(&["name"]).unwrap_or_default();
        let field = field(Kind::App, name);
        sync.tell(true, "Unhealthy", format!("{kind} probe failed: {cause}"), Some(&field));
        let message = format!("Container {name} failed {} probe, will be restarted", kind.to_lowercase());
        sync.tell(false, "Killing", message, Some(&field));
    }
    Some(Exit { code: 137, after: Span(after), reason: None, message: None })
}
