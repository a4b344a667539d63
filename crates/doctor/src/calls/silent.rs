//! Programs that are ill and of which no word was saved: what their configuration names is evaluated by
//! objects alone. Only what is certain to stop a call counts.

use jiff::Timestamp;
use tiphys_cause::{Address, Cause, FailedCall, Failure};
use tiphys_value::{ObjectExt as _, Value};

use super::{
    Caller,
    external::absent_fault,
    service::{blocked, port_fault},
};
use crate::{
    address_target::{Target, is_near},
    cluster::{pods, services, time},
    finding::Finding,
    pod_addresses::{Setting, settings, wires},
    search_context::{Ill, Look},
};

/// Parts of names by which programs tell what they can do without: where they send measurements and traces.
const OPTIONAL: &[&str] = &[
    "otel",
    "otlp",
    "telemetry",
    "tracing",
    "trace",
    "jaeger",
    "zipkin",
    "tempo",
    "statsd",
    "sentry",
    "datadog",
    "newrelic",
    "prometheus",
    "pushgateway",
    "loki",
    "fluent",
    "logstash",
    "metrics",
    "analytics",
    "profil",
    "no_proxy",
    "cors",
    "allowed",
];

/// Seconds by which a fault and what it breaks are apart at most.
const APART: i64 = 10 * 60;
/// No word of the program was read: only objects tell.
const SURE: f64 = 0.75;

/// The fault on the way to what an ill workload is configured to call, where neither its log nor an end of
/// it was saved.
pub(crate) fn unheard<'a>(look: &Look<'a>, ill: &Ill<'a>) -> Option<Finding> {
    let is_heard = !ill.facts.is_empty()
        || ill.pods.iter().any(|pod| !look.cluster.logs(pod.namespace(), pod.name()).is_empty());
    if is_heard {
        return None;
    }
    let caller = Caller::of_ill(look, ill);
    let served = served_wires(look, ill);
    let wires = wires(&caller.settings);
    let needed = wires.iter().filter(|(address, setting)| {
        !is_optional(&address.host) && !is_optional(&setting.key) && !served.contains(&address.host)
    });
    let needed: Vec<_> = needed.collect();
    if let Some(finding) = cut_off_from_dns(look, ill, &caller, &needed) {
        return Some(finding);
    }
    let found = needed.iter().filter_map(|(address, setting)| fault(look, ill, &caller, address, setting));
    let found = found.map(|finding| Finding { confidence: finding.confidence.min(SURE), ..finding });
    found.max_by(|one, two| one.confidence.total_cmp(&two.confidence))
}

/// The policy or the setting that keeps a program from looking up any name that it is configured to call.
fn cut_off_from_dns<'a>(
    look: &Look<'a>,
    ill: &Ill<'a>,
    caller: &Caller<'a>,
    needed: &[&(Address, &Setting)],
) -> Option<Finding> {
    let (address, setting) = needed.iter().copied().find(|(address, _)| {
        !address.is_ip() && matches!(look.cluster.target(address, ill.namespace()), Target::Service(_))
    })?;
    let line = format!("{}={}", setting.key, setting.value);
    let call = FailedCall {
        failure: Failure::LookupTimeout,
        targets: vec![address.clone()],
        context: Vec::new(),
        line: line.clone(),
    };
    let finding = crate::causes::dns::lookup_fault(look, caller, &call)?;
    let is_certain = match finding.cause {
        Cause::NetPolicyDns => may_have_begun_with(look, ill, finding.since),
        Cause::DnsPolicy => has_never_run(ill),
        _ => false,
    };
    let finding = Finding { confidence: finding.confidence.min(SURE), ..finding };
    is_certain.then(|| {
        caller.suffers(finding.evidence(caller.workload.to_string(), line), "cannot look up what it calls")
    })
}

fn is_optional(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    OPTIONAL.iter().any(|part| low.contains(part))
}

/// The hosts that other pods of the workload are configured to call, which are well with them.
fn served_wires(look: &Look<'_>, ill: &Ill<'_>) -> Vec<String> {
    let members = pods::of_workload(look.cluster, &ill.workload).into_iter();
    let well = members.filter(|pod| pods::is_ready(pod)).filter_map(|pod| pod.get("spec"));
    let hosts = well.flat_map(|spec| {
        let settings = settings(look.cluster, spec, ill.namespace());
        wires(&settings).into_iter().map(|(address, _)| address.host).collect::<Vec<_>>()
    });
    hosts.collect()
}

fn fault<'a>(
    look: &Look<'a>,
    ill: &Ill<'a>,
    caller: &Caller<'a>,
    address: &Address,
    setting: &Setting,
) -> Option<Finding> {
    let call = |failure| FailedCall {
        failure,
        targets: vec![address.clone()],
        context: Vec::new(),
        line: format!("{}={}", setting.key, setting.value),
    };
    match look.cluster.target(address, ill.namespace()) {
        Target::Service(service) => {
            let pods = look.cluster.pods_of(service);
            let ready: Vec<&Value> = pods.iter().copied().filter(|pod| pods::is_ready(pod)).collect();
            if ready.is_empty() {
                return None;
            }
            let call = call(Failure::Timeout);
            let port = || port_fault(look.cluster, caller, address, service, &ready);
            let way = blocked(look, caller, &call, address, service, &ready);
            let way = way.filter(|finding| may_have_begun_with(look, ill, finding.since));
            way.or_else(|| port().filter(|_| has_never_run(ill)))
        }
        Target::Absent { namespace, name } if has_never_run(ill) => {
            let all = look.cluster.all("Service").iter();
            let serves = |it: &Value| address.port.is_none_or(|port| services::port(it, port).is_some());
            let mut near =
                all.filter(|it| it.namespace() == namespace && is_near(it.name(), &name) && serves(it));
            let is_meant = near.next().is_some();
            let finding = absent_fault(look, caller, &call(Failure::NoSuchHost), address, &namespace, &name)?;
            (is_meant && finding.cause == Cause::ServiceMissing).then_some(finding)
        }
        _ => None,
    }
    .map(|finding| {
        let source = match setting.source.kind.as_str() {
            "" => caller.workload.clone(),
            _ => setting.source.clone(),
        };
        caller
            .suffers(finding.evidence(source.to_string(), call(Failure::Timeout).line), "needs what it calls")
    })
}

/// Whether the pods were never well for long: what they read when they start may be why.
fn has_never_run(ill: &Ill<'_>) -> bool {
    let crashes = ill.pods.iter().flat_map(|pod| pods::statuses(pod)).any(|status| {
        pods::waiting(status).is_some_and(|(reason, _)| reason == "CrashLoopBackOff")
            && pods::ended(status)
                .is_some_and(|end| !matches!(end.int_at(&["exitCode"]), Some(0 | 137 | 143)))
    });
    crashes || well_until(ill).is_none()
}

/// When pods that had been well for a while became ill.
fn well_until(ill: &Ill<'_>) -> Option<Timestamp> {
    let since = ill.since?;
    let started = ill.pods.iter().filter_map(|pod| time(pod, &["status", "startTime"])).max()?;
    (since.as_second() - started.as_second() > APART).then_some(since)
}

/// Whether what changed at a time may be why the pods are ill: those that had been well became so about then.
fn may_have_begun_with(look: &Look<'_>, ill: &Ill<'_>, changed: Option<Timestamp>) -> bool {
    let Some(ill_since) = well_until(ill) else { return true };
    let apart = |changed: Timestamp| (ill_since.as_second() - changed.as_second()).abs() <= APART;
    changed.or(look.cluster.now).is_some_and(apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_measures_is_optional() {
        for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "jaeger-agent.tracing", "STATSD_HOST"] {
            assert!(is_optional(name), "{name}");
        }
        for name in ["DB_HOST", "redis.shop.svc", "ORDERS_URL"] {
            assert!(!is_optional(name), "{name}");
        }
    }
}
