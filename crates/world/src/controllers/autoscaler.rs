//! HorizontalPodAutoscaler: nothing is measured here, so it finds its target and leaves it as it is
//! (autoscaling/v2).

use serde_json::json;
use tiphys_value::ObjectExt;

use crate::{
    Change, Controller, Key, Outcome, View, Write,
    controller::Context,
    object::{resources, set_condition, status_of, with_status},
};

/// Keeps the status of autoscalers.
pub struct AutoscalerController;

impl Controller for AutoscalerController {
    fn name(&self) -> &'static str {
        "horizontalpodautoscaler"
    }

    fn keys(&self, change: &Change, view: &View<'_>) -> Vec<Key> {
        if change.resource == resources::autoscalers() {
            return vec![Key::of(&change.object)];
        }
        let scalers = view.list(&resources::autoscalers(), Some(change.object.namespace()));
        let is_target = |scaler: &serde_json::Value| {
            scaler.str_at(&["spec", "scaleTargetRef", "name"]) == Some(change.object.name())
                && scaler.str_at(&["spec", "scaleTargetRef", "kind"]) == Some(change.object.kind())
        };
        scalers.iter().filter(|scaler| is_target(scaler)).map(|scaler| Key::of(scaler)).collect()
    }

    fn reconcile(&self, key: &Key, context: &Context<'_>) -> Outcome {
        let Some(scaler) = context.view.get(&resources::autoscalers(), key) else { return Outcome::done() };
        let target = &scaler["spec"]["scaleTargetRef"];
        let (api_version, kind) = (target.str_at(&["apiVersion"]), target.str_at(&["kind"]));
        let resource = context.view.resource_of(api_version.unwrap_or_default(), kind.unwrap_or_default());
        let name = target.str_at(&["name"]).unwrap_or_default().to_owned();
        let target_key = Key { namespace: scaler.namespace().to_owned(), name };
        let found = resource.and_then(|resource| context.view.get(&resource, &target_key));
        let mut status = status_of(&scaler);
        let replicas = found.as_ref().and_then(|target| target.int_at(&["spec", "replicas"])).unwrap_or(0);
        status.insert("currentReplicas".into(), replicas.into());
        status.insert("desiredReplicas".into(), replicas.into());
        let condition = match found {
            Some(_) => json!({
                "type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale",
                "message": "recommended size matches current size",
            }),
            None => json!({
                "type": "AbleToScale", "status": "False", "reason": "FailedGetScale",
                "message": "the HPA controller was unable to get the target's current scale",
            }),
        };
        set_condition(&mut status, condition, context.now);
        let updated = with_status(&scaler, status.into());
        updated
            .map(|object| Write::UpdateStatus { resource: resources::autoscalers(), object }.into())
            .unwrap_or_default()
    }
}
