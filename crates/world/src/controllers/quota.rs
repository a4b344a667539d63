//! ResourceQuota: what a namespace has used (core/v1 ResourceQuota). The API server keeps the account from write to write;
//! here a quota is taken into it. Both count in the same way, or they would correct each other for ever.

use tiphys_apiserver::quota_status;

use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{resources, status_of, with_status},
};

/// Keeps the status of quotas.
pub struct QuotaController;

impl Controller for QuotaController {
    fn name(&self) -> &'static str {
        "resourcequota"
    }

    fn keys(&self, change: &Change, _: &View<'_>) -> Vec<Key> {
        let is_quota = change.resource == resources::resource_quotas();
        if is_quota { vec![Key::of(&change.object)] } else { Vec::new() }
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(quota) = context.view.get(&resources::resource_quotas(), key) else {
            return Outcome::done();
        };
        let mut status = status_of(&quota);
        let counted = quota_status(&context.view.snapshot, &quota);
        status.extend(counted.as_object().cloned().unwrap_or_default());
        let updated = with_status(&quota, status.into());
        updated
            .map(|object| Write::UpdateStatus { resource: resources::resource_quotas(), object }.into())
            .unwrap_or_default()
    }
}
