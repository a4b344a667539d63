//! Custom resources that are not ready: their operator, what they name, issuers, secret stores, the cloud's
//! rights.

mod certificates;
mod condition_words;
mod conditions;
mod copies;
mod duplicate_operators;
mod failed_calls;
mod hidden_references;
mod links;
mod lookup;
mod operator_log;
mod unattended;

use std::collections::BTreeMap;

use conditions::fault;
use duplicate_operators::two_owners;
use lookup::scaled_to_zero;
use tiphys_value::ObjectExt as _;

use crate::{Object, causes::resting::operator_down, finding::Finding, search_context::Look};

pub(crate) use condition_words::{is_denied, names};
pub(crate) use conditions::rests_on_unseen;
pub(crate) use lookup::by_words;
pub(crate) use lookup::has_no_status;
pub(crate) use lookup::is_cared_for_by;
pub(crate) use lookup::is_custom;
pub(crate) use lookup::neglected_by;
pub(crate) use lookup::status_writers;
pub(crate) use lookup::words;
pub(crate) use operator_log::denial;

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut unattended: BTreeMap<Object, Vec<Object>> = BTreeMap::new();
    for live in &look.cluster.case.objects {
        if !is_custom(live) || live.is_terminating() {
            continue;
        }
        if let Some(operator) = scaled_to_zero(look, live) {
            unattended.entry(operator).or_default().push(Object::from_live(live));
            continue;
        }
        found.extend(fault(look, live));
    }
    let mut found = copies::fold(look, found);
    found.extend(unattended.into_iter().map(|(operator, resources)| operator_down(operator, &resources)));
    found.extend(two_owners(look));
    found
}
