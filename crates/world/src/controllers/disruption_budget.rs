//! PodDisruptionBudget: how many pods may be taken away (policy/v1).

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::workload::{count, count_or_percent, is_active, is_ready};
use crate::{
    Change, Controller, Event, Key, Outcome, Reporter, View, Write,
    controller::Context,
    labels::selects,
    object::{resources, set_condition, status_of, with_status},
};

/// Keeps the status of PodDisruptionBudgets.
pub struct DisruptionBudgetController;

impl Controller for DisruptionBudgetController {
    fn name(&self) -> &'static str {
        "poddisruptionbudget"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::disruption_budgets() {
            return vec![Key::of(&change.object)];
        }
        if change.resource != resources::pods() {
            return Vec::new();
        }
        let budgets = view.list(&resources::disruption_budgets(), Some(change.object.namespace()));
        let concerns = |budget: &Value| selects(budget.at(&["spec", "selector"]), &change.object);
        budgets.iter().filter(|budget| concerns(budget)).map(|budget| Key::of(budget)).collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(budget) = context.view.get(&resources::disruption_budgets(), key) else {
            return Outcome::done();
        };
        let mut pods = context.view.list(&resources::pods(), Some(budget.namespace()));
        pods.retain(|pod| is_active(pod) && selects(budget.at(&["spec", "selector"]), pod));
        let expected = pods.len() as i64;
        let healthy = count(&pods, is_ready);
        let desired = match budget.at(&["spec", "maxUnavailable"]) {
            Some(most) => expected - count_or_percent(Some(most), expected, 0, true),
            None => count_or_percent(budget.at(&["spec", "minAvailable"]), expected, 1, true),
        };
        let allowed = (healthy - desired).max(0);
        let mut status = status_of(&budget);
        for (field, value) in [
            ("currentHealthy", healthy),
            ("desiredHealthy", desired.max(0)),
            ("disruptionsAllowed", allowed),
            ("expectedPods", expected),
            ("observedGeneration", budget.generation()),
        ] {
            status.insert(field.into(), value.into());
        }
        let (state, reason) =
            if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
        let condition = json!({
            "type": "DisruptionAllowed", "status": state, "reason": reason, "message": "",
            "observedGeneration": budget.generation(),
        });
        set_condition(&mut status, condition, context.now);
        let Some(object) = with_status(&budget, status.into()) else { return Outcome::done() };
        let mut writes = vec![Write::UpdateStatus { resource: resources::disruption_budgets(), object }];
        if expected == 0 {
            let message = "No matching pods found";
            writes.push(
                Event::normal(&budget, Reporter::Controller("controllermanager"), "NoPods", message).into(),
            );
        }
        writes.into()
    }
}
