//! Policies in CEL: the API server's own, which a binding puts in force, and Kyverno's `ValidatingPolicy`.

use tiphys_schema::Catalog;
use tiphys_value::{FieldPath, ObjectExt, ResourceKey, Segment, Value};

use crate::{
    Refusal, Refused,
    cel::Expressions,
    kyverno::{self, is_selected, list, texts},
    request::{Namespace, Request},
    verdict::Verdict,
};

/// An enforced policy.
#[derive(Debug)]
pub(crate) struct Policy<'a> {
    policy: &'a Value,
    /// What it is about; one without rules of its own is about what the policy is about.
    matched: Vec<&'a Value>,
    by: Engine,
}

/// Who enforces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    ApiServer,
    Kyverno,
}

impl<'a> Policy<'a> {
    /// A policy of the API server that one of these bindings enforces. One with parameters is not judged.
    pub(crate) fn bound(policy: &'a Value, bindings: &[&'a Value]) -> Option<Self> {
        let of_it = |it: &&&Value| it.str_at(&["spec", "policyName"]) == Some(policy.name());
        let denies = |it: &&&Value| texts(&it["spec"], "validationActions").any(|it| it == "Deny");
        let binding = bindings.iter().filter(of_it).find(denies)?;
        let matched = [policy.at(&["spec", "matchConstraints"]), binding.at(&["spec", "matchResources"])];
        policy.at(&["spec", "paramKind"]).is_none().then(|| Self {
            policy,
            matched: matched.into_iter().flatten().collect(),
            by: Engine::ApiServer,
        })
    }

    /// A policy of Kyverno, if it refuses anything.
    pub(crate) fn of_kyverno(policy: &'a Value) -> Option<Self> {
        let spec = &policy["spec"];
        let is_admission = spec.at(&["evaluation", "admission", "enabled"]) != Some(&Value::Bool(false));
        let is_of_objects = matches!(spec.str_at(&["evaluation", "mode"]), None | Some("Kubernetes"));
        let denies = texts(spec, "validationActions").any(|it| it == "Deny");
        (is_admission && is_of_objects && denies).then(|| Self {
            policy,
            matched: spec.get("matchConstraints").into_iter().collect(),
            by: Engine::Kyverno,
        })
    }

    /// Why an object is refused, or the pods that its controller makes.
    pub(crate) fn refusal(&self, request: &Request<'_>, pod: Option<&Request<'_>>) -> Option<Refusal> {
        if self.by == Engine::Kyverno && kyverno::is_left_alone(&request.object) {
            return None;
        }
        match self.is_about(request)? {
            true => {
                let Verdict::Refuses(field, message) = self.judge(request) else { return None };
                Some(self.refused(Refused::Object, field, message))
            }
            false => {
                let pod = pod.filter(|pod| self.is_about(pod) == Some(true))?;
                let Verdict::Refuses(_, message) = self.judge(pod) else { return None };
                // Kyverno extends a policy about pods to what makes them.
                let refused = if self.by == Engine::Kyverno { Refused::Object } else { Refused::Pods };
                Some(self.refused(refused, None, message))
            }
        }
    }

    fn refused(&self, refused: Refused, field: Option<FieldPath>, message: String) -> Refusal {
        let gvk = self.policy.gvk();
        Refusal {
            // It belongs to no namespace, whatever its metadata says.
            policy: ResourceKey::new(gvk.group, self.policy.kind(), "", self.policy.name()),
            rule: String::new(),
            asked: FieldPath(["spec", "validations"].map(|key| Segment::Key(key.to_owned())).to_vec()),
            refused,
            field,
            message,
        }
    }

    /// What its expressions say of an object that it is about.
    fn judge(&self, request: &Request<'_>) -> Verdict {
        let spec = &self.policy["spec"];
        let expressions = Expressions {
            conditions: list(spec, "matchConditions"),
            variables: list(spec, "variables"),
            validations: list(spec, "validations"),
        };
        expressions.judge(request)
    }

    /// Whether it is about an object; `None` if labels decide that are not known.
    fn is_about(&self, request: &Request<'_>) -> Option<bool> {
        let (group, version, plural) =
            (request.gvk.group.as_str(), request.gvk.version.as_str(), plural(request));
        let names = |rule: &Value| {
            let has = |field: &str, wanted: &str| texts(rule, field).any(|it| it == "*" || it == wanted);
            let named = texts(rule, "resourceNames").next().is_none()
                || texts(rule, "resourceNames").any(|it| it == request.name());
            has("apiGroups", group)
                && has("apiVersions", version)
                && (has("operations", "CREATE"))
                && has("resources", &plural)
                && named
        };
        for (at, matched) in self.matched.iter().enumerate() {
            let rules = list(matched, "resourceRules");
            let is_named = (at > 0 && rules.is_empty()) || rules.iter().any(names);
            if !is_named || list(matched, "excludeResourceRules").iter().any(names) {
                return Some(false);
            }
            let of_object = matched.get("objectSelector").unwrap_or(&Value::Null);
            if !is_selected(of_object, request.metadata("labels")) {
                return Some(false);
            }
            let of_namespace = matched.get("namespaceSelector").filter(|it| is_selective(it));
            match (of_namespace, request.namespace) {
                (None, _) => {}
                (Some(_), _) if request.object.namespace().is_empty() => {}
                (Some(selector), Namespace::Labels(labels)) => {
                    if !is_selected(selector, labels.unwrap_or(&Value::Null)) {
                        return Some(false);
                    }
                }
                (Some(_), Namespace::Unknown) => return None,
            }
        }
        Some(!self.matched.is_empty())
    }
}

fn is_selective(selector: &Value) -> bool {
    selector.as_object().is_some_and(|it| !it.is_empty())
}

/// The plural of a kind: a built-in one has its own, others mostly that of the word.
fn plural(request: &Request<'_>) -> String {
    if let Some(kind) = Catalog::latest().kind(&request.gvk) {
        return kind.plural.clone();
    }
    let kind = request.gvk.kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with(['s', 'x']) || kind.ends_with("ch") => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}
