//! Which webhooks and policies want to see a write.

use std::sync::Arc;

use tiphys_expr::cel::{self, Environment};
use tiphys_schema::{Catalog, LabelSelector};
use tiphys_value::{ObjectExt, Value, json};

use super::Request;
use crate::{
    auth::{self, User},
    expressions::compile,
    ops::{Call, items},
    registry::Resource,
    store::ResourceId,
};

impl Request<'_> {
    /// The resource in the version that a webhook or policy asks for, if one of its rules fits.
    /// `Equivalent` also takes rules about other versions of the same resource.
    pub(super) fn fits(&self, rules: &[&Value], exact: bool) -> Option<Arc<Resource>> {
        let own = &self.at.resource;
        if rules.iter().any(|rule| self.rule_fits(rule, own)) {
            return Some(Arc::clone(own));
        }
        if exact {
            return None;
        }
        let registry = self.server.registry();
        let mut others = registry.all().filter(|other| other.id == own.id && other.gvk != own.gvk);
        others.find(|other| rules.iter().any(|rule| self.rule_fits(rule, other))).cloned()
    }

    fn rule_fits(&self, rule: &Value, resource: &Resource) -> bool {
        let has = |pointer: &str, wanted: &str| items(rule, pointer).any(|v| v == "*" || v == wanted);
        let plural = resource.plural.as_str();
        let named = |entry: &str| match (entry.split_once('/'), self.at.subresource.as_deref()) {
            (None, None) => entry == "*" || entry == plural,
            (Some((main, "*")), None) => main == "*" || main == plural,
            (Some((main, wanted)), Some(sub)) => {
                (main == "*" || main == plural) && (wanted == "*" || wanted == sub)
            }
            _ => false,
        };
        let scope = match rule.str_at(&["scope"]) {
            Some("Namespaced") => resource.namespaced,
            Some("Cluster") => !resource.namespaced,
            _ => true,
        };
        let names = items(rule, "/resourceNames").count();
        scope
            && items(rule, "/resources").filter_map(Value::as_str).any(named)
            && has("/operations", self.operation.name())
            && has("/apiGroups", resource.group())
            && has("/apiVersions", &resource.gvk.version)
            && (names == 0 || items(rule, "/resourceNames").any(|name| name == self.at.name.as_str()))
    }

    /// Whether the selectors of a webhook or policy choose the objects and their namespace.
    pub(super) fn selected(&self, selectors: &Value, object: Option<&Value>) -> bool {
        let labels = |object: &Value| object.at(&["metadata", "labels"]).cloned().unwrap_or_default();
        let mut subjects = object.into_iter().chain(self.old.map(|old| old.value()));
        let of_object = &selectors["objectSelector"];
        if !is_everything(of_object) && !subjects.any(|subject| selects(of_object, &labels(subject))) {
            return false;
        }
        let of_namespace = &selectors["namespaceSelector"];
        if is_everything(of_namespace) {
            return true;
        }
        if self.at.is("", "namespaces") {
            let subject = object.or(self.old.map(|old| old.value())).unwrap_or(&Value::Null);
            return selects(of_namespace, &labels(subject));
        }
        if !self.at.resource.namespaced {
            return true;
        }
        selects(of_namespace, &self.namespace().map(|n| labels(&n)).unwrap_or_default())
    }

    /// The namespace of the object.
    pub(super) fn namespace(&self) -> Option<Value> {
        let snapshot = self.server.snapshot();
        let found = snapshot.get(&ResourceId::new("", "namespaces"), "", &self.at.namespace);
        found.map(|namespace| namespace.value().clone())
    }

    /// The request part of an `AdmissionReview`, for a webhook or policy that wants this resource.
    pub(super) fn review(&self, call: &Call, wanted: &Resource, object: Option<&Value>) -> Value {
        let own = &self.at.resource;
        let kind = |resource: &Resource| match self
            .at
            .subresource
            .as_deref()
            .and_then(|s| resource.subresource(s))
        {
            Some(sub) => json!({"group": sub.gvk.group, "version": sub.gvk.version, "kind": sub.gvk.kind}),
            None => {
                json!({"group": resource.gvk.group, "version": resource.gvk.version, "kind": resource.gvk.kind})
            }
        };
        let plural = |resource: &Resource| json!({"group": resource.gvk.group, "version": resource.gvk.version, "resource": resource.plural});
        let mut user = json!({"username": call.user.name, "groups": call.user.groups});
        if !call.user.uid.is_empty() {
            user["uid"] = call.user.uid.as_str().into();
        }
        let options = match self.operation {
            super::Operation::Create => "CreateOptions",
            super::Operation::Update => "UpdateOptions",
            super::Operation::Delete => "DeleteOptions",
        };
        let shown = |object: &Value| {
            crate::ops::in_version(self.server, wanted, object).unwrap_or_else(|_| object.clone())
        };
        let mut request = json!({
            "uid": self.server.entropy().uuid(), "kind": kind(wanted), "resource": plural(wanted),
            "requestKind": kind(own), "requestResource": plural(own), "name": self.at.name,
            "operation": self.operation.name(), "userInfo": user, "object": object.map(shown),
            "oldObject": self.old.map(|old| shown(old)), "dryRun": call.dry_run,
            "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"},
        });
        if own.namespaced {
            request["namespace"] = self.at.namespace.as_str().into();
        } else if self.at.is("", "namespaces") {
            request["namespace"] = self.at.name.as_str().into();
        }
        if let Some(sub) = &self.at.subresource {
            request["subResource"] = sub.as_str().into();
            request["requestSubResource"] = sub.as_str().into();
        }
        request
    }

    /// The variables that expressions see beside those of policies alone.
    pub(super) fn variables(
        &self,
        call: &Call,
        wanted: &Resource,
        object: Option<&Value>,
    ) -> Vec<(String, cel::Value)> {
        let mut review = self.review(call, wanted, object);
        let take = |review: &mut Value, key: &str| match review[key].take() {
            Value::Null => cel::plain(&Value::Null),
            object => typed(wanted, &object),
        };
        let (new, old) = (take(&mut review, "object"), take(&mut review, "oldObject"));
        let decide = decide(self, call);
        let about = cel::Query {
            group: wanted.group().to_owned(),
            resource: wanted.plural.clone(),
            subresource: self.at.subresource.clone().unwrap_or_default(),
            namespace: self.at.namespace.clone(),
            name: self.at.name.clone(),
            ..cel::Query::default()
        };
        vec![
            ("object".into(), new),
            ("oldObject".into(), old),
            ("request".into(), cel::plain(&review)),
            ("authorizer".into(), cel::authorizer(cel::Query::default(), Arc::clone(&decide))),
            ("authorizer.requestResource".into(), cel::authorizer(about, decide)),
        ]
    }

    /// Whether the match conditions hold; an error if one cannot be evaluated and none is false.
    pub(super) fn conditions_hold(
        &self,
        holder: &Value,
        environment: &Environment<'_>,
    ) -> Result<bool, String> {
        let mut failed = None;
        for condition in items(holder, "/matchConditions") {
            let source = condition.str_at(&["expression"]).unwrap_or_default();
            let name = condition.str_at(&["name"]).unwrap_or_default();
            let result = compile(source).and_then(|e| e.holds(environment).map_err(|e| e.to_string()));
            match result {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => {
                    failed.get_or_insert_with(|| {
                        format!(
                            "match condition {} failed: expression '{source}' resulted in error: {why}",
                            tiphys_schema::quote(name)
                        )
                    });
                }
            }
        }
        failed.map_or(Ok(true), Err)
    }
}

/// An object as expressions see it.
pub(super) fn typed(resource: &Resource, object: &Value) -> cel::Value {
    let catalog = Catalog::latest();
    match &resource.custom {
        Some(custom) => match &custom.schema {
            Some(schema) => cel::by_type(object, schema.type_ref(catalog)),
            None => cel::plain(object),
        },
        None => match catalog.type_of(&object.gvk()) {
            Some(ty) => cel::by_type(object, ty),
            None => cel::plain(object),
        },
    }
}

fn decide(request: &Request<'_>, call: &Call) -> cel::Decide {
    let (server, user) = (request.server.clone(), call.user.clone());
    Arc::new(move |query| {
        let asked = match query.service_account.as_ref().and_then(|text| text.split_once('/')) {
            Some((namespace, name)) => User::service_account(namespace, name, ""),
            None => user.clone(),
        };
        let resource = match query.subresource.as_str() {
            "" => query.resource.clone(),
            sub => format!("{}/{sub}", query.resource),
        };
        let wish = auth::Attributes {
            verb: query.verb.clone(),
            group: query.group.clone(),
            resource,
            namespace: query.namespace.clone(),
            name: query.name.clone(),
            path: query.path.clone(),
        };
        auth::is_allowed(&server.snapshot(), &asked, &wish)
    })
}

fn is_everything(selector: &Value) -> bool {
    selector.as_object().is_none_or(serde_json::Map::is_empty)
}

fn selects(selector: &Value, labels: &Value) -> bool {
    LabelSelector::from_object(selector).ok().flatten().is_none_or(|s| s.matches(labels))
}
