//! One rule of a policy, and what it says of an object (Kyverno, `pkg/engine/handlers/validation`).

use std::borrow::Cow;

use tiphys_schema::pod_security::Level;
use tiphys_value::{FieldPath, ObjectExt, Value};

use super::{
    autogen, conditions, list,
    matching::{is_excepted, is_meant, is_selected},
    pattern::{self, Mismatch},
    variables::Scope,
};
use crate::{
    Refusal, Refused,
    cel::Expressions,
    request::{Namespace, Request},
    verdict::Verdict,
    wildcard, workload,
};

/// A rule that may refuse objects.
#[derive(Debug)]
pub(crate) struct Rule<'a> {
    policy: &'a Value,
    /// As it stands in the policy.
    own: &'a Value,
    position: usize,
    /// The kinds that make pods to which it is extended, each with the rule for it.
    extended: Vec<(&'a str, Value)>,
}

/// The rules of a policy that judge objects when they are created.
pub(crate) fn rules(policy: &Value) -> Vec<Rule<'_>> {
    let spec = &policy["spec"];
    if spec.get("admission") == Some(&Value::Bool(false)) {
        return Vec::new();
    }
    let controllers = autogen::controllers(policy);
    let judging = list(spec, "rules").iter().enumerate().filter(|(_, rule)| rule.get("validate").is_some());
    judging
        .map(|(position, own)| {
            let extended = controllers.iter().filter_map(|kind| Some((*kind, autogen::extended(own, kind)?)));
            Rule { policy, own, position, extended: extended.collect() }
        })
        .collect()
}

impl Rule<'_> {
    /// Whether a rule about Pods judges a kind that makes them, too.
    pub(crate) fn is_extended_to(&self, kind: &str) -> bool {
        self.extended.iter().any(|(it, _)| *it == kind)
    }

    /// Why an object is refused, unless an exception lets it pass.
    pub(crate) fn refusal(&self, request: &Request<'_>, exceptions: &[&Value]) -> Option<Refusal> {
        let extended = self.extended.iter().filter(|(kind, _)| *kind == request.kind()).map(|(_, it)| it);
        let mut judged = [self.own].into_iter().chain(extended).map(|rule| self.judge(rule, request));
        let (field, message) = judged.find_map(|verdict| match verdict {
            Verdict::Refuses(field, message) => Some((field, message)),
            _ => None,
        })?;
        let name = self.own.get("name").and_then(Value::as_str).unwrap_or_default();
        if is_excepted(exceptions, self.policy, name, request) != Some(false) {
            return None;
        }
        Some(Refusal {
            policy: self.policy.resource_key(),
            rule: name.to_owned(),
            asked: self.place(),
            refused: Refused::Object,
            field,
            message,
        })
    }

    /// Where the rule says what it asks for.
    fn place(&self) -> FieldPath {
        const WAYS: [&str; 6] = ["pattern", "anyPattern", "deny", "foreach", "cel", "podSecurity"];
        let rules = FieldPath::default().key("spec").key("rules");
        let validate = rules.index(self.position).key("validate");
        let way = WAYS.iter().find(|way| self.own["validate"].get(**way).is_some());
        way.map_or(validate.clone(), |way| validate.key(*way))
    }

    fn judge(&self, rule: &Value, request: &Request<'_>) -> Verdict {
        let of_namespace = self.policy.namespace();
        let is_elsewhere = !of_namespace.is_empty() && of_namespace != request.object.namespace();
        if is_elsewhere || !self.is_enforced(rule, request) {
            return Verdict::Passes;
        }
        match is_meant(rule, request) {
            Some(true) => {}
            Some(false) => return Verdict::Passes,
            None => return Verdict::Unknown,
        }
        let Some(scope) = with_context(Scope::new(request.variables()), rule) else {
            return Verdict::Unknown;
        };
        match conditions::hold(rule.get("preconditions").unwrap_or(&Value::Null), &scope) {
            Some(true) => {}
            Some(false) => return Verdict::Passes,
            None => return Verdict::Unknown,
        }
        let said = &rule["validate"];
        if let Some(cel) = said.get("cel") {
            return by_cel(rule, said, cel, request);
        }
        if rule.get("celPreconditions").is_some() {
            return Verdict::Unknown;
        }
        let verdict = validate(said, &request.object, &scope, 0).unwrap_or_else(|| pods_of(said, request));
        match verdict {
            Verdict::Refuses(field, _) => Verdict::Refuses(field, message(said, &scope)),
            other => other,
        }
    }

    /// Whether a rule refuses, in the namespace of the object; not where that is not known.
    fn is_enforced(&self, rule: &Value, request: &Request<'_>) -> bool {
        let (spec, validate) = (&self.policy["spec"], &rule["validate"]);
        let general = spec.get("validationFailureAction").and_then(Value::as_str);
        let own = validate.get("failureAction").and_then(Value::as_str);
        let is_enforcing = |action: &str| action.eq_ignore_ascii_case("enforce");
        let overrides = list(validate, "failureActionOverrides").iter();
        let overrides = overrides.chain(list(spec, "validationFailureActionOverrides"));
        for entry in overrides {
            let names: Vec<&str> = super::texts(entry, "namespaces").collect();
            let named = names.iter().any(|it| wildcard::matches(it, request.object.namespace()));
            let is_selected = match (entry.get("namespaceSelector"), request.namespace) {
                (None, _) => true,
                (Some(selector), Namespace::Labels(labels)) => {
                    is_selected(selector, labels.unwrap_or(&Value::Null))
                }
                (Some(_), Namespace::Unknown) => return false,
            };
            if (named || names.is_empty()) && is_selected {
                return entry.get("action").and_then(Value::as_str).is_some_and(is_enforcing);
            }
        }
        own.or(general).is_some_and(is_enforcing)
    }
}

/// The scope with what a rule computes for itself; `None` if it looks somewhere else for it.
fn with_context(scope: Scope, rule: &Value) -> Option<Scope> {
    list(rule, "context").iter().try_fold(scope, |scope, entry| {
        let name = entry.get("name").and_then(Value::as_str)?;
        let variable = entry.get("variable")?;
        let value = match (variable.get("value"), variable.get("jmesPath").and_then(Value::as_str)) {
            (Some(value), None) => scope.fill_in(value),
            (None, Some(path)) => scope.query(scope.fill_in(&path.into())?.as_str()?),
            _ => None,
        };
        let default = || variable.get("default").and_then(|it| scope.fill_in(it));
        let value = value.or_else(default)?;
        Some(scope.with(name, value))
    })
}

/// What the expressions of a rule in CEL say.
fn by_cel(rule: &Value, said: &Value, cel: &Value, request: &Request<'_>) -> Verdict {
    if cel.get("paramKind").is_some() {
        return Verdict::Unknown;
    }
    let expressions = Expressions {
        conditions: list(rule, "celPreconditions"),
        variables: list(cel, "variables"),
        validations: list(cel, "expressions"),
    };
    match expressions.judge(request) {
        Verdict::Refuses(field, message) if message.is_empty() => {
            let general = said.get("message").and_then(Value::as_str).unwrap_or_default();
            Verdict::Refuses(field, general.trim().to_owned())
        }
        other => other,
    }
}

/// How deep `foreach` may stand in `foreach`.
const MAX_NESTING: usize = 4;

/// What a validation says of a value; `None` if it is made in another way than by patterns and conditions.
fn validate(said: &Value, object: &Value, scope: &Scope, nesting: usize) -> Option<Verdict> {
    if let Some(deny) = said.get("deny") {
        return Some(match conditions::hold(deny.get("conditions").unwrap_or(&Value::Null), scope) {
            Some(true) => Verdict::Refuses(None, String::new()),
            Some(false) => Verdict::Passes,
            None => Verdict::Unknown,
        });
    }
    if let Some(pattern) = said.get("pattern") {
        let Some(pattern) = scope.fill_in(pattern) else { return Some(Verdict::Unknown) };
        return Some(match pattern::compare(object, &pattern) {
            Err(Mismatch::Breaks(path)) => Verdict::Refuses(Some(path), String::new()),
            Ok(()) | Err(Mismatch::IsAboutOthers { .. }) => Verdict::Passes,
        });
    }
    if let Some(patterns) = said.get("anyPattern").and_then(Value::as_array) {
        return Some(any_pattern(patterns, object, scope));
    }
    let each = said.get("foreach").and_then(Value::as_array)?;
    Some(each.iter().map(|it| for_each(it, object, scope, nesting)).fold(Verdict::Passes, worse))
}

fn any_pattern(patterns: &[Value], object: &Value, scope: &Scope) -> Verdict {
    let Some(patterns) = patterns.iter().map(|it| scope.fill_in(it)).collect::<Option<Vec<Value>>>() else {
        return Verdict::Unknown;
    };
    let mut broken = None;
    for pattern in &patterns {
        match pattern::compare(object, pattern) {
            Ok(()) => return Verdict::Passes,
            Err(Mismatch::Breaks(path)) => broken = broken.or(Some(path)),
            Err(Mismatch::IsAboutOthers { .. }) => {}
        }
    }
    broken.map_or(Verdict::Passes, |path| Verdict::Refuses(Some(path), String::new()))
}

/// What one `foreach` says: of each element that its expression finds.
fn for_each(each: &Value, object: &Value, scope: &Scope, nesting: usize) -> Verdict {
    if nesting >= MAX_NESTING || !list(each, "context").is_empty() {
        return Verdict::Unknown;
    }
    let Some(expression) = each.get("list").and_then(Value::as_str) else { return Verdict::Unknown };
    let elements = match scope.query(expression) {
        Some(Value::Array(items)) => items,
        Some(only) => vec![only],
        // What is not there has no elements.
        None => Vec::new(),
    };
    let mut verdict = Verdict::Passes;
    for (index, element) in elements.iter().enumerate().filter(|(_, it)| !it.is_null()) {
        let scope = scope.with("element", element.clone()).with("elementIndex", index.into());
        match conditions::hold(each.get("preconditions").unwrap_or(&Value::Null), &scope) {
            Some(true) => {}
            Some(false) => continue,
            None => {
                verdict = worse(verdict, Verdict::Unknown);
                continue;
            }
        }
        let is_scoped = each.get("elementScope").and_then(Value::as_bool).unwrap_or(element.is_object());
        let judged = if is_scoped { element } else { object };
        let found = validate(each, judged, &scope, nesting + 1).unwrap_or(Verdict::Unknown);
        // The path of an element in the object is not known.
        let found = match found {
            Verdict::Refuses(_, message) if is_scoped => Verdict::Refuses(None, message),
            other => other,
        };
        verdict = worse(verdict, found);
    }
    verdict
}

/// A refusal decides; without one, what is not known.
fn worse(one: Verdict, other: Verdict) -> Verdict {
    match (&one, &other) {
        (Verdict::Refuses(..), _) | (Verdict::Unknown, Verdict::Passes | Verdict::Unknown) => one,
        (_, Verdict::Refuses(..)) | (Verdict::Passes, _) => other,
    }
}

/// What a rule by levels of Pod Security says of a pod, or of what makes pods.
fn pods_of(said: &Value, request: &Request<'_>) -> Verdict {
    let Some(by_level) = said.get("podSecurity") else { return Verdict::Unknown };
    let level = by_level.get("level").and_then(Value::as_str).and_then(Level::from_label);
    let Some(level) = level.filter(|_| list(by_level, "exclude").is_empty()) else { return Verdict::Unknown };
    let pod = match workload::pod_of(&request.object) {
        Some((pod, _)) => Cow::Owned(pod),
        None => Cow::Borrowed(&request.object),
    };
    let annotations = pod.at(&["metadata", "annotations"]).unwrap_or(&Value::Null);
    match level.violations(&pod["spec"], annotations).is_empty() {
        true => Verdict::Passes,
        false => Verdict::Refuses(None, String::new()),
    }
}

/// What the policy says to people, with its expressions filled in where they are known.
fn message(said: &Value, scope: &Scope) -> String {
    let Some(message) = said.get("message") else { return String::new() };
    let filled = scope.fill_in(message);
    let text = filled.as_ref().and_then(Value::as_str).or(message.as_str());
    text.unwrap_or_default().trim().to_owned()
}
