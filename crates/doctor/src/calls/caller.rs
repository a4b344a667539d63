//! Who calls without an answer, and what can be said of it by its configuration alone.

use tiphys_cause::{Address, Cause, FailedCall, Failure};
use tiphys_value::Value;

use crate::{
    Object,
    cluster::{Cluster, pods},
    finding::Finding,
    pod_addresses::{Setting, settings, wires},
    policy::End,
    search_context::{Ill, Look},
};

/// Who calls.
pub(crate) struct Caller<'a> {
    pub(crate) workload: Object,
    pub(crate) pods: Vec<&'a Value>,
    pub(crate) settings: Vec<Setting>,
}

impl<'a> Caller<'a> {
    pub(crate) fn of_ill(look: &Look<'a>, ill: &Ill<'a>) -> Self {
        let settings = settings(look.cluster, ill.spec(), ill.namespace());
        Self { workload: ill.workload.clone(), pods: ill.pods.clone(), settings }
    }

    /// A workload that may be well, of whose configuration nothing is read.
    pub(crate) fn of_workload(cluster: &Cluster<'a>, workload: Object) -> Self {
        Self { pods: pods::of_workload(cluster, &workload), workload, settings: Vec::new() }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.workload.namespace
    }

    pub(super) fn end(&self) -> End<'a> {
        self.pods.first().map(|pod| End::of_pod(pod)).unwrap_or_default()
    }

    /// Whether a line names a host that the configuration tells the caller to call.
    pub(crate) fn names_what_it_calls(&self, line: &str) -> bool {
        // A name without a dot may be any word.
        let is_host = |host: &str| host.contains('.') && line.contains(host);
        wires(&self.settings).iter().any(|(address, _)| is_host(&address.host))
    }

    /// Names the caller, and its pods, as who suffers.
    pub(crate) fn suffers(&self, finding: Finding, symptom: &str) -> Finding {
        let finding = finding.suffers(self.workload.clone(), symptom);
        self.pods.iter().fold(finding, |finding, pod| finding.suffers(Object::from_live(pod), symptom))
    }
}

/// What is said where a call fails and the reason is not known: the caller is red, and why lies elsewhere.
pub(super) fn guess(caller: &Caller<'_>, call: &FailedCall, address: &Address) -> Finding {
    let summary =
        format!("{} calls {address} in vain ({:?}); why is not known", caller.workload, call.failure);
    let cause = match call.failure {
        Failure::Timeout | Failure::Unreachable | Failure::Reset => Cause::NetDegraded,
        _ => Cause::RunExits,
    };
    Finding::new(cause, caller.workload.clone(), 0.3, summary).shallow()
}

/// A value of the configuration that is wrong, told where it stands.
pub(crate) fn wrong_value(
    caller: &Caller<'_>,
    address: &Address,
    summary: String,
    confidence: f64,
) -> Finding {
    let wires = wires(&caller.settings);
    let setting = wires
        .iter()
        .find(|(wire, _)| wire == address)
        .or_else(|| wires.iter().find(|(wire, _)| wire.host == address.host))
        .or_else(|| wires.iter().find(|(wire, _)| address.is_ip() && wire.port == address.port));
    let (object, field) = match setting {
        Some((_, setting)) if !setting.source.kind.is_empty() => {
            (setting.source.clone(), setting.field.clone())
        }
        Some((_, setting)) => (caller.workload.clone(), setting.field.clone()),
        None => (caller.workload.clone(), String::new()),
    };
    let mut finding = Finding::new(Cause::ConfigWrongValue, object.clone(), confidence, summary);
    if let Some((_, setting)) = setting {
        finding =
            finding.field(field).evidence(object.to_string(), format!("{}={}", setting.key, setting.value));
    }
    finding.remedy(format!("Correct the address in {object}, and restart {}.", caller.workload), &[])
}
