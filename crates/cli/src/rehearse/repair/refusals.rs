//! Repairs of what the API server does not take.

use tiphys_cause::{forbidden, refusal};
use tiphys_schema::STATEFUL_SET_CHANGEABLE;
use tiphys_stage::{
    causes::{Cause, Repair},
    mechanism::Mechanism,
};
use tiphys_value::{ObjectExt, ResourceKey, Value, json};

use super::{Ground, object_name, with_option, yaml};
use crate::rehearse::strict_world::webhook_authority::{INJECT_FROM, missing_authority};

impl Ground<'_> {
    /// A ServiceAccount that no role lets do something: the first role that is bound to it is to.
    pub(super) fn missing_right(&self, cause: &Cause) -> Option<Repair> {
        let missing = forbidden(&cause.text).into_iter().next()?;
        let mut parts = missing.user.strip_prefix("system:serviceaccount:")?.splitn(2, ':');
        let (namespace, name) = (parts.next()?, parts.next()?);
        let binds = |binding: &Value| {
            let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
            subjects.into_iter().any(|subject| {
                let own = subject.str_at(&["namespace"]).unwrap_or_else(|| binding.namespace());
                subject.kind() == "ServiceAccount"
                    && subject.str_at(&["name"]) == Some(name)
                    && own == namespace
            })
        };
        let rendered = self.rendered.values().map(|(object, _)| *object);
        let mut bindings = rendered.filter(|it| matches!(it.kind(), "ClusterRoleBinding" | "RoleBinding"));
        let (role, place) = bindings.find_map(|binding| {
            let own = binding.at(&["roleRef"]).filter(|_| binds(binding))?;
            let within = if own.kind() == "Role" { binding.namespace() } else { "" };
            let name = own.str_at(&["name"])?;
            let role = ResourceKey::new("rbac.authorization.k8s.io", own.kind(), within, name);
            self.place(&role).map(|place| (role, place))
        })?;
        let rule = json!({"rules": [{"apiGroups": [missing.group], "resources": [missing.resource], "verbs": [missing.verb]}]});
        Some(Repair {
            text: format!("let {} {} {}", object_name(&role), missing.verb, missing.resource),
            patch: yaml(&rule),
            place: Some(place),
            ..Repair::default()
        })
    }

    /// An operator that nobody runs, since its workload has no replicas.
    pub(super) fn idle_operator(&self, mechanism: &Mechanism) -> Option<Repair> {
        let idle = mechanism.objects.first()?;
        Some(Repair {
            text: format!("give {} a replica", object_name(idle)),
            patch: yaml(&json!({"spec": {"replicas": 1}})),
            place: self.place(idle),
            ..Repair::default()
        })
    }

    /// A webhook that does not answer: its program comes too late, or it keeps its own program out.
    pub(super) fn webhook(&self, cause: &Cause, mechanism: &Mechanism) -> Option<Repair> {
        let service = mechanism.objects.first()?;
        let name = refusal(&cause.text).by;
        // It asks for its own Service: nobody can bring that.
        if cause.objects.iter().any(|key| key.namespace == service.namespace) {
            let (configuration, webhook) = self.webhook_named(&name)?;
            let mut expressions = webhook
                .at(&["namespaceSelector", "matchExpressions"])
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            expressions.push(json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [service.namespace]}));
            let patch =
                json!({"webhooks": [{"name": name, "namespaceSelector": {"matchExpressions": expressions}}]});
            return Some(Repair {
                text: format!(
                    "let the webhook leave out its own namespace {}: it keeps its own program from coming up",
                    service.namespace
                ),
                patch: yaml(&patch),
                place: self.place(&configuration.resource_key()),
                ..Repair::default()
            });
        }
        self.earlier(cause, service).map(|mut repair| {
            repair.text = format!("{}, which answers for the webhook {name}", repair.text);
            repair
        })
    }

    /// A webhook whose authority is to be put in from a Certificate that is not there.
    pub(super) fn authority(&self, cause: &Cause) -> Option<Repair> {
        let (configuration, _) = self.webhook_named(&refusal(&cause.text).by)?;
        let (named, near) = missing_authority(configuration, self.rendered.keys())?;
        Some(Repair {
            text: format!(
                "write {near:?} in place of {named:?} in the annotation {INJECT_FROM}: that Certificate is there"
            ),
            patch: yaml(&json!({"metadata": {"annotations": {INJECT_FROM: near}}})),
            place: self.place(&configuration.resource_key()),
            ..Repair::default()
        })
    }

    fn webhook_named(&self, name: &str) -> Option<(&Value, &Value)> {
        let plurals = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
        plurals.into_iter().flat_map(|plural| self.live("admissionregistration.k8s.io", plural)).find_map(
            |configuration| {
                let webhooks = configuration.get("webhooks")?.as_array()?;
                let own = webhooks.iter().find(|it| it.str_at(&["name"]) == Some(name))?;
                Some((configuration, own))
            },
        )
    }

    /// Annotations that hold the whole object: the other way to apply needs none.
    pub(super) fn too_large(&self, cause: &Cause) -> Option<Repair> {
        let key = cause.objects.first()?;
        let (object, _) = self.rendered.get(key)?;
        Some(Repair {
            text: format!("let {} be applied by the server", object_name(key)),
            patch: yaml(&with_option(object, "ServerSideApply=true")),
            place: self.place_of(cause),
            ..Repair::default()
        })
    }

    /// A field that cannot change.
    pub(super) fn immutable(&self, cause: &Cause) -> Option<Repair> {
        let key = cause.objects.first()?;
        let (object, _) = self.rendered.get(key)?;
        let field = match refusal(&cause.text).subject {
            // Of StatefulSets the API server says only what may change.
            field if field.is_empty() => self.fixed_fields(object).unwrap_or_else(|| "the field".to_owned()),
            field => format!(".{field}"),
        };
        Some(Repair {
            text: format!(
                "write {field} of {} as it was; or have it deleted and created again, which is an outage",
                object_name(key)
            ),
            patch: yaml(&with_option(object, "Force=true,Replace=true")),
            place: self.place_of(cause),
            ..Repair::default()
        })
    }

    /// The fields of a StatefulSet that cannot change and differ from those of the cluster.
    fn fixed_fields(&self, object: &Value) -> Option<String> {
        if object.kind() != "StatefulSet" {
            return None;
        }
        let live = self
            .live("apps", "statefulsets")
            .find(|it| it.namespace() == object.namespace() && it.name() == object.name())?;
        let asked = object.get("spec").and_then(Value::as_object)?.iter();
        let differ = asked.filter(|(name, value)| {
            !STATEFUL_SET_CHANGEABLE.contains(&name.as_str())
                && !live.at(&["spec", name]).is_some_and(|it| contains(it, value))
        });
        let names: Vec<String> = differ.map(|(name, _)| format!(".spec.{name}")).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    }

    /// A quota that is used up.
    pub(super) fn quota(&self, cause: &Cause, mechanism: &Mechanism) -> Option<Repair> {
        let quota = mechanism.objects.first()?;
        let live = self
            .live("", "resourcequotas")
            .find(|it| it.namespace() == quota.namespace && it.name() == quota.name)?;
        let of = |field: &str| live.at(&["status", field]).or_else(|| live.at(&["spec", field]));
        let (hard, used) = (of("hard")?.as_object()?, of("used").and_then(Value::as_object));
        let mut full = hard.iter().filter(|(name, _)| cause.text.contains(name.as_str()));
        let (name, most) = full.next()?;
        let used = used.and_then(|it| it.get(name)).and_then(Value::as_str).unwrap_or("?");
        Some(Repair {
            text: format!(
                "raise {name} of {}: {used} of {} are used",
                object_name(quota),
                most.as_str().unwrap_or_default()
            ),
            place: self.place(quota),
            ..Repair::default()
        })
    }

    /// An account that pods name and nobody makes.
    pub(super) fn service_account(&self, mechanism: &Mechanism) -> Option<Repair> {
        let account = mechanism.objects.first()?;
        let patch = json!({"apiVersion": "v1", "kind": account.kind,
            "metadata": {"name": account.name, "namespace": account.namespace}});
        Some(Repair {
            text: format!("bring {}", object_name(account)),
            patch: yaml(&patch),
            ..Repair::default()
        })
    }
}

/// Whether a value has all that is asked for: an API server adds defaults to what it stores.
fn contains(stored: &Value, asked: &Value) -> bool {
    match (stored, asked) {
        (Value::Object(stored), Value::Object(asked)) => asked
            .iter()
            .all(|(name, value)| value.is_null() || stored.get(name).is_some_and(|it| contains(it, value))),
        (Value::Array(stored), Value::Array(asked)) => {
            stored.len() == asked.len()
                && stored.iter().zip(asked).all(|(stored, asked)| contains(stored, asked))
        }
        _ => stored == asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_no_difference() {
        let stored =
            json!([{"spec": {"resources": {"requests": {"storage": "10Gi"}}, "volumeMode": "Filesystem"}}]);
        let asked = |size: &str| json!([{"spec": {"resources": {"requests": {"storage": size}}}}]);
        assert!(contains(&stored, &asked("10Gi")));
        assert!(!contains(&stored, &asked("20Gi")));
    }
}
