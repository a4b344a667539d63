//! # A change of a field that cannot change
//!
//! Some fields are fixed when an object is made: the selector of a workload, the template of a Job, the
//! address of a Service, most of a StatefulSet and of a volume claim, the role of a binding, the provisioner
//! of a StorageClass, everything in an immutable ConfigMap or Secret. An update that changes one is refused
//! as a whole, and goes on being refused at every sync.
//!
//! People see: `Deployment.apps "web" is invalid: spec.selector: Invalid value: …: field is immutable`,
//! `updates to statefulset spec for fields other than … are forbidden`, `cannot change roleRef`.
//!
//! It is found where two revisions are compared (`--diff`).
//!
//! ## Bad
//! ```yaml
//! selector: {matchLabels: {app: web, tier: front}}     # tier is new
//! ```
//! ## Good
//! The label goes into the template only; or the workload gets a new name, and the old one is pruned.
//!
//! ## When to suppress
//! Where the object is deleted by hand before the change is synced.

use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner, Survey};
use tiphys_schema::{Catalog, ErrorList, FieldError};
use tiphys_value::{GroupVersionKind, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths, sync_options},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C4-immutable",
    incident: "C4",
    severity: Severity::Error,
    title: "a change of a field that cannot change",
    page: page!("c4_immutable.rs"),
    check,
};

/// Stands for the address that the API server gave a Service that asked for none.
const GIVEN_ADDRESS: &str = "10.96.0.10";

fn check(context: &Context<'_>, report: &mut Report) {
    let Some(base) = context.base else { return };
    let mut once = Once::default();
    for object in context.survey.objects.iter().filter(|object| matches!(object.owner, Owner::App(_))) {
        // Hooks are deleted before they are made again, and Force does the same for what cannot be changed.
        if !object.hooks.is_empty() || sync_options::is_on(context.survey, object, "Force") {
            continue;
        }
        let Some(before) = before(context.survey, base, object) else { continue };
        for error in change_errors(object.value(), before.value()) {
            once.add(&error.to_string(), finding(context, object, before, &error));
        }
    }
    once.report(report);
}

/// The same object in the revision before.
fn before<'a>(survey: &Survey, base: &'a Survey, object: &Object) -> Option<&'a Object> {
    let name = |survey: &Survey, object: &Object| {
        object.environment.map(|environment| survey.environments[environment.0].name.clone())
    };
    let environment = name(survey, object);
    base.with_key(&object.key).find(|other| {
        other.hooks.is_empty() && other.cluster == object.cluster && name(base, other) == environment
    })
}

/// Why the API server refuses the change; nothing if the object was refused already.
fn change_errors(new: &Value, old: &Value) -> Vec<FieldError> {
    let gvk = new.gvk();
    if new == old || old.gvk() != gvk {
        return Vec::new();
    }
    let (Some(mut new), Some(old)) = (stored(&gvk, new), stored(&gvk, old)) else { return Vec::new() };
    let (before, after): (ErrorList, ErrorList) = if gvk.kind == "CustomResourceDefinition" {
        (tiphys_schema::validate_crd(&new, None), tiphys_schema::validate_crd(&new, Some(&old)))
    } else {
        let mut old = old;
        keep_given(&gvk, &mut new, &mut old);
        (tiphys_schema::validate_create(&gvk, &new), tiphys_schema::validate_update(&gvk, &new, &old))
    };
    after.into_iter().filter(|error| !before.0.contains(error)).collect()
}

/// An object as the API server would hold it.
fn stored(gvk: &GroupVersionKind, object: &Value) -> Option<Value> {
    let mut object = object.clone();
    tiphys_schema::decode(Catalog::latest().type_of(gvk)?, &mut object).ok()?;
    tiphys_schema::apply_defaults(gvk, &mut object);
    Some(object)
}

/// What an object leaves to the API server stays as it was given.
fn keep_given(gvk: &GroupVersionKind, new: &mut Value, old: &mut Value) {
    if !gvk.group.is_empty() || gvk.kind != "Service" {
        return;
    }
    let address = |service: &Value| service.str_at(&["spec", "clusterIP"]).unwrap_or_default().to_owned();
    let (wanted, had) = (address(new), address(old));
    let had = if had.is_empty() { GIVEN_ADDRESS.to_owned() } else { had };
    let wanted = if wanted.is_empty() { had.clone() } else { wanted };
    for (service, address) in [(new, wanted), (old, had)] {
        let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
        spec.insert("clusterIPs".into(), Value::from(vec![address.clone()]));
        spec.insert("clusterIP".into(), address.into());
    }
}

fn finding(context: &Context<'_>, object: &Object, before: &Object, error: &FieldError) -> crate::Finding {
    let field = field_paths::nearest(field_paths::of_api(&error.field), object.value());
    let name = tiphys_schema::quote(object.value().name());
    let was = field_paths::of_api(&error.field).get(before.value()).map(Value::to_string).unwrap_or_default();
    let label =
        if was.is_empty() || was.len() > 120 { "changed here".to_owned() } else { format!("it was {was}") };
    let mut diagnostic = RULE
        .diagnostic(format!("{} {name} is invalid: {error}", object.value().gvk().group_kind()))
        .at(context.survey.span(object, &field), label)
        .because("the API server refuses the whole update, at this sync and at every one after it")
        .help("leave the field as it was, or give the object another name and let the old one be pruned")
        .help("or annotate it with argocd.argoproj.io/sync-options: Force=true,Replace=true: it is deleted and made again");
    if sync_options::is_on(context.survey, object, "Replace") {
        diagnostic.severity = Severity::Warning;
    }
    RULE.finding(context, object, diagnostic)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(new: Value, old: Value) -> Vec<String> {
        change_errors(&new, &old).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_service_keeps_the_address_that_it_was_given() {
        let service = |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec});
        let ports = json!([{"port": 80}]);
        let plain = service(json!({"ports": ports}));
        let headless = service(json!({"ports": ports, "clusterIP": "None"}));
        assert!(texts(plain.clone(), headless.clone()).is_empty());
        assert!(texts(headless, plain)[0].contains("may not change once set"));
    }
}
