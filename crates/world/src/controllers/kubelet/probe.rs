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
    /// What is wrong with the port that it asks for, if that is known.
    port_fault: Option<PortFault>,
    delay: Duration,
    period: Duration,
    failures: u32,
}

/// Why a port cannot be asked.
enum PortFault {
    /// The container has no port of this name.
    Unknown(String),
    /// The pod's program is known not to listen on it; what the one who dials says.
    Closed(String),
}

impl PortFault {
    /// What the kubelet says of it.
    fn message(&self, kind: &str) -> String {
        match self {
            Self::Unknown(name) => format!(
                "{kind} probe errored and resulted in unknown state: strconv.Atoi: parsing {name:?}: invalid syntax"
            ),
            Self::Closed(text) => format!("{kind} probe failed: {text}"),
        }
    }
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
    Some(Probe { port_fault: port_fault(sync.pod, spec, probe), delay, period, failures })
}

/// What is wrong with the port that a probe asks for.
fn port_fault(pod: &Value, spec: &Value, probe: &Value) -> Option<PortFault> {
    let (action, asked) = ["httpGet", "tcpSocket"]
        .into_iter()
        .find_map(|action| Some((action, probe.at(&[action, "port"])?)))?;
    let mut ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    let named = ports.find(|port| asked.is_string() && port.get("name") == Some(asked));
    // A number in quotes is one.
    let number = asked.as_i64().or_else(|| asked.as_str()?.parse::<u16>().ok().map(i64::from));
    if let (None, None, Some(name)) = (named, number, asked.as_str()) {
        return Some(PortFault::Unknown(name.to_owned()));
    }
    let port = number.or_else(|| named?.int_at(&["containerPort"]))?;
    let is_own = probe.at(&[action, "host"]).is_none();
    if !is_own || open_ports(pod)?.iter().any(|open| i64::from(*open) == port) {
        return None;
    }
    let address = format!("{}:{port}", pod.str_at(&["status", "podIP"]).unwrap_or_default());
    let refused = format!("dial tcp {address}: connect: connection refused");
    Some(PortFault::Closed(match action {
        "httpGet" => {
            let text = |field: &str| probe.str_at(&[action, field]);
            let scheme = text("scheme").unwrap_or("HTTP").to_lowercase();
            let path = text("path").unwrap_or("/");
            format!("Get \"{scheme}://{address}{path}\": {refused}")
        }
        _ => refused,
    }))
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
    if let Some((probe, fault)) = startup.as_ref().and_then(|probe| Some((probe, probe.port_fault.as_ref()?)))
    {
        tell_now_and_then(sync, spec, began, fault.message("Startup"), probe.delay, probe.period);
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
    if let Some(fault) = &probe.port_fault {
        tell_now_and_then(sync, spec, began, fault.message("Readiness"), startup + probe.delay, probe.period);
        return false;
    }
    match fault(sync, spec, began) {
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
        probe.port_fault.is_none() && remaining(began, probe.delay, sync.context.now).is_none()
    })
}

/// When a container is killed because its liveness or startup probe fails: probes do not reach the pod, or
/// nothing listens.
pub(super) fn liveness(sync: &mut Sync<'_>, spec: &Value, began: Timestamp) -> Option<Exit> {
    let closed = |kind: &str| {
        let probe = probe(sync, spec, kind)?;
        let text = match &probe.port_fault {
            Some(PortFault::Closed(text)) => Some(text.clone()),
            Some(PortFault::Unknown(_)) | None => None,
        };
        Some((probe, text))
    };
    let startup = closed("startupProbe").filter(|(_, text)| text.is_some());
    let kind = if startup.is_some() { "Startup" } else { "Liveness" };
    let (probe, text) = startup.or_else(|| closed("livenessProbe"))?;
    let blocked = || sync.context.behaviours.blocked(sync.pod, &Target::Probes {}, sync.context.view);
    let cause = text.or_else(|| blocked().map(|cause| cause.to_string()))?;
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
