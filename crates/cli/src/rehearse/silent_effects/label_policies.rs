//! Objects that an enforced policy of the repository refuses for the labels that they lack. Programs are not
//! run, the engines of policies among them, so the API server takes the objects all the same.

use std::collections::BTreeSet;

use tiphys_apiserver::Snapshot;
use tiphys_cause::Cause as Id;
use tiphys_check::rules::{LabelRefusal, label_refusals};
use tiphys_stage::{causes::Cause, mechanism::Mechanism};

use super::hidden_cause::hidden_cause;
use crate::{rehearse::text::object_name, up::plan::Plan};

/// What is refused at the end. `was` is the repository before a change: what it refused then is not told.
pub(super) fn refused(end: &Snapshot, was: Option<&Plan>, plan: &Plan) -> Vec<Cause> {
    let all: BTreeSet<LabelRefusal> = label_refusals(&plan.survey).into_iter().collect();
    if all.is_empty() {
        return Vec::new();
    }
    let known = was.map(|was| label_refusals(&was.survey)).unwrap_or_default();
    let new = all.into_iter().filter(|it| !known.contains(it) && end.with_key(&it.object).is_some());
    new.map(|LabelRefusal { object, policy, missing }| {
        let text = format!("{} asks for labels that it lacks: {}", object_name(&policy), missing.join(", "));
        let mechanism = Mechanism { id: Id::AdmitPolicy, objects: vec![policy] };
        hidden_cause(object, mechanism, text, "is refused by a policy")
    })
    .collect()
}
