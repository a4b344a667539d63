//! ResourceQuota: what a namespace has used (core/v1 ResourceQuota). The API server keeps the account from
//! write to write; here a quota is taken into it. Both count in the same way, or they would correct each
//! other for ever.

use serde_json::Value;
use tiphys_apiserver::quota_status;
use tiphys_schema::Quantity;
use tiphys_value::ObjectExt;

use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{resources, status_of, with_status},
};

/// Keeps the status of quotas.
pub(super) struct QuotaController;

impl Controller for QuotaController {
    fn name(&self) -> &'static str {
        "resourcequota"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        let is_quota = change.resource == resources::resource_quotas();
        if is_quota { vec![Key::from_object(&change.object)] } else { Vec::new() }
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(quota) = context.view.get(&resources::resource_quotas(), key) else {
            return Outcome::done();
        };
        if is_in_account(&quota) {
            return Outcome::done();
        }
        let mut status = status_of(&quota);
        let counted = quota_status(&context.view.snapshot, &quota);
        status.extend(counted.as_object().cloned().unwrap_or_default());
        let updated = with_status(&quota, status.into());
        updated
            .map(|object| Write::UpdateStatus { resource: resources::resource_quotas(), object }.into())
            .unwrap_or_default()
    }
}

/// Whether the API server keeps the account of everything that the quota bounds: to count it all once more at
/// each of its writes would be of no use, and of hundreds of quotas beside hundreds of pods it would take
/// minutes.
fn is_in_account(quota: &Value) -> bool {
    let field = |path: &[&str]| quota.at(path).and_then(Value::as_object);
    let Some(hard) = field(&["spec", "hard"]) else { return true };
    let amount = |value: &Value| value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    let known = |name: &str, bound: &Value| {
        field(&["status", "used"]).is_some_and(|used| used.contains_key(name))
            && field(&["status", "hard"])
                .and_then(|hard| hard.get(name))
                .is_some_and(|it| amount(it) == amount(bound))
    };
    let is_stale = field(&["status", "hard"]).is_some_and(|there| there.len() > hard.len());
    !is_stale && hard.iter().all(|(name, bound)| amount(bound).is_none() || known(name, bound))
}
