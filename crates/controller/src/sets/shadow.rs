//! A look of an engine beside another one: what would be done for an ApplicationSet, recorded and not done.

use std::sync::Arc;

use tiphys_appset::{Brake, Policy, plan};
use tiphys_value::{ObjectExt, Value};

use super::SetReconciler;
use crate::{
    AppKey, Refresh,
    reconcile::report::Next,
    shadow::{Decision, decision},
};

impl SetReconciler {
    /// What would be done for an ApplicationSet, and when it is looked at again.
    pub(super) async fn decision_about(
        &self,
        key: &AppKey,
        set: &Arc<Value>,
        level: Refresh,
    ) -> (Decision, Next) {
        let made = self.yielded(key, set, level).await;
        let next = self.follow(key, set, &made);
        let recorded = match (&made.generated, Policy::from_set(set)) {
            (Err(error), _) => decision("ApplicationSet", key, "refuse", error.to_string()),
            (Ok(_), None) => decision("ApplicationSet", key, "refuse", "its applicationsSync is none"),
            (Ok(generated), Some(policy)) => {
                let existing = self.applications_for(set, generated);
                let changes = plan(set, generated, &existing, policy, Brake::On);
                let mut made = decision("ApplicationSet", key, "generate", changes.held.unwrap_or_default());
                let created = changes.create.iter().map(|app| format!("create {}", app.name()));
                let updated = changes.update.iter().map(|update| format!("update {}", update.after.name()));
                made.apply = created.chain(updated).collect();
                made.delete = changes.delete;
                made
            }
        };
        (recorded, next)
    }
}
