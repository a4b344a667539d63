//! Objects that an enforced policy of the repository refuses, and that are there all the same: their engine
//! is out of reach, or came after them. The next change of them is refused.

use std::collections::BTreeSet;

use tiphys_apiserver::{ResourceId, Snapshot};
use tiphys_cause::Cause as Id;
use tiphys_check::rules::{PolicyRefusal, policy_refusals};
use tiphys_stage::{causes::Cause, mechanism::Mechanism};
use tiphys_value::ObjectExt as _;

use super::hidden_cause::hidden_cause;
use crate::{rehearse::text::object_name, up::plan::Plan};

/// What is refused at the end. `was` is the repository before a change: what it refused then is not told.
pub(super) fn refused(end: &Snapshot, was: Option<&Plan>, plan: &Plan) -> Vec<Cause> {
    let all: BTreeSet<PolicyRefusal> = policy_refusals(&plan.survey).into_iter().collect();
    if all.is_empty() {
        return Vec::new();
    }
    let known = was.map(|was| policy_refusals(&was.survey)).unwrap_or_default();
    // The API server's own policies are in force in the play, and Kyverno's where its webhook is: pods that
    // these refuse are told of by the story.
    let is_played = |it: &PolicyRefusal| match it.policy.group.as_str() {
        "admissionregistration.k8s.io" => true,
        "kyverno.io" => it.is_of_pods && has_kyverno(end),
        _ => false,
    };
    let is_untold = |it: &PolicyRefusal| !is_played(it) && !known.contains(it);
    let new = all.into_iter().filter(|it| is_untold(it) && end.with_key(&it.object).is_some());
    new.map(|PolicyRefusal { object, is_of_pods, policy, rule, message }| {
        let rule = if rule.is_empty() { String::new() } else { format!(", rule {rule}") };
        let whose = if is_of_pods { " its pods" } else { "" };
        let said = if message.is_empty() { String::new() } else { format!(": {message}") };
        let text = format!("{}{rule}, refuses{whose}{said}", object_name(&policy));
        let mechanism = Mechanism { id: Id::AdmitPolicy, objects: vec![policy] };
        let what = if is_of_pods { "gets no pods" } else { "is refused by a policy" };
        hidden_cause(object, mechanism, text, what)
    })
    .collect()
}

/// Whether the API server asks Kyverno.
fn has_kyverno(end: &Snapshot) -> bool {
    let id = ResourceId::new("admissionregistration.k8s.io", "validatingwebhookconfigurations");
    end.list(&id, None).any(|it| it.label("webhook.kyverno.io/managed-by") == Some("kyverno"))
}
