//! The rules of custom resources (`x-kubernetes-validations`).

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use tiphys_schema::{ErrorKind, ErrorList, FieldError, FieldRule, Path};

use super::{CompileError, Environment, EvaluationError, Expression, by_schema, definition};

/// What all rules of an object together may cost.
const BUDGET: u64 = 10_000_000;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
/// How deep schemas and objects are followed.
const MAX_DEPTH: usize = 200;

/// The compiled rules of a schema.
#[derive(Debug, Default)]
pub struct Rules {
    here: Vec<Rule>,
    schema: Arc<Value>,
    is_root: bool,
    /// The fields that identify the items of this list.
    keys: Vec<String>,
    properties: BTreeMap<String, Rules>,
    items: Option<Box<Rules>>,
    others: Option<Box<Rules>>,
    all_of: Vec<Rules>,
}

#[derive(Debug)]
struct Rule {
    expression: Result<Expression, CompileError>,
    message_expression: Option<Expression>,
    source: Value,
}

/// What has been found, and what may still be spent.
struct Run {
    errors: ErrorList,
    /// `None` once too much was spent: nothing is evaluated any more.
    budget: Option<u64>,
}

impl Run {
    /// Takes what the last evaluation cost from the budget.
    fn pay(&mut self, place: &ValidatedValue<'_>, schema: &Value) {
        let left = self.budget.and_then(|budget| budget.checked_sub(Expression::last_cost()));
        if left.is_none() && self.budget.is_some() {
            let kind = schema["type"].as_str().unwrap_or_default();
            let error = FieldError::invalid(place.path, kind, OUT_OF_BUDGET);
            self.errors.push(error.by_rule(FieldRule::Unevaluated));
        }
        self.budget = left;
    }
}

/// What is validated at one place, and what was there before.
struct ValidatedValue<'a> {
    value: &'a Value,
    old: Option<&'a Value>,
    /// Whether nothing at or above this place has changed.
    unchanged: bool,
    path: &'a Path,
}

impl Rules {
    /// Compiles the rules of a schema; `None` if it has none.
    pub fn new(schema: &Value) -> Option<Self> {
        Self::from_schema(schema, true, 0)
    }

    fn from_schema(schema: &Value, is_root: bool, depth: usize) -> Option<Self> {
        if depth > MAX_DEPTH || !schema.is_object() {
            return None;
        }
        let inner = |part: &Value| Self::from_schema(part, false, depth + 1);
        let list = |part: &str| schema[part].as_array().into_iter().flatten();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let rules = Self {
            here: list("x-kubernetes-validations").map(Rule::new).collect(),
            properties: properties.filter_map(|(name, part)| Some((name.clone(), inner(part)?))).collect(),
            items: inner(&schema["items"]).map(Box::new),
            others: inner(&schema["additionalProperties"]).map(Box::new),
            all_of: list("allOf").filter_map(inner).collect(),
            schema: Arc::new(Value::Null),
            keys: list("x-kubernetes-list-map-keys").filter_map(Value::as_str).map(str::to_owned).collect(),
            is_root,
        };
        let is_empty = rules.here.is_empty()
            && rules.properties.is_empty()
            && rules.items.is_none()
            && rules.others.is_none()
            && rules.all_of.is_empty();
        // Only rules need the schema of their own place.
        let schema = if rules.here.is_empty() { Value::Null } else { schema.clone() };
        (!is_empty).then(|| Self { schema: Arc::new(schema), ..rules })
    }

    /// Faults of an object; `old` is what is stored.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        let mut run = Run { errors: ErrorList::new(), budget: Some(BUDGET) };
        let path = Path::root();
        self.validate_at(
            &ValidatedValue { value: object, old, unchanged: old == Some(object), path: &path },
            &mut run,
            0,
        );
        run.errors
    }

    fn validate_at(&self, place: &ValidatedValue<'_>, run: &mut Run, depth: usize) {
        if place.value.is_null() || depth > MAX_DEPTH || run.budget.is_none() {
            return;
        }
        self.evaluate(place, run);
        for part in &self.all_of {
            part.validate_at(place, run, depth + 1);
        }
        let inner = |value, old, path: &Path, rules: &Rules, run: &mut Run| {
            let unchanged = place.unchanged || old == Some(value);
            rules.validate_at(&ValidatedValue { value, old, unchanged, path }, run, depth + 1);
        };
        match place.value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let Some(rules) = self.properties.get(name).or(self.others.as_deref()) else { continue };
                    let is_field = self.properties.contains_key(name);
                    let path = if is_field { place.path.child(name) } else { place.path.key(name) };
                    inner(value, place.old.and_then(|old| old.get(name)), &path, rules, run);
                }
            }
            Value::Array(items) => {
                let Some(rules) = self.items.as_deref() else { return };
                for (at, value) in items.iter().enumerate() {
                    let old = place.old.and_then(|old| self.counterpart(old, value));
                    inner(value, old, &place.path.index(at), rules, run);
                }
            }
            _ => {}
        }
    }

    /// The item of the old list that an item is compared with; only lists with keys have one.
    fn counterpart<'a>(&self, old: &'a Value, item: &Value) -> Option<&'a Value> {
        if self.keys.is_empty() {
            return None;
        }
        old.as_array()?.iter().find(|other| self.keys.iter().all(|key| other[key] == item[key]))
    }

    fn evaluate(&self, place: &ValidatedValue<'_>, run: &mut Run) {
        if self.here.is_empty() {
            return;
        }
        let shown = |value: &Value| by_schema(value, &self.schema, self.is_root);
        let mut variables = vec![("self".to_owned(), shown(place.value))];
        variables
            .extend(place.old.filter(|old| !old.is_null()).map(|old| ("oldSelf".to_owned(), shown(old))));
        let environment = Environment::new(variables.clone());
        for rule in &self.here {
            if run.budget.is_none() {
                return;
            }
            let optional = rule.source["optionalOldSelf"] == true;
            let transition = rule.expression.as_ref().is_ok_and(|e| e.mentions("oldSelf"));
            if transition && place.old.is_none_or(Value::is_null) && !optional {
                continue;
            }
            let own;
            let environment = if optional {
                own = Environment::new(variables.iter().filter(|(n, _)| n == "self").cloned().chain([(
                    "oldSelf".to_owned(),
                    optional_value(variables.iter().find(|(n, _)| n == "oldSelf").map(|(_, v)| v.clone())),
                )]));
                &own
            } else {
                &environment
            };
            let outcome = rule.expression.as_ref().map(|expression| expression.holds(environment));
            if let Ok(Err(EvaluationError::Cost)) = &outcome {
                run.errors.extend(rule.fault(place, environment, &self.schema, outcome));
                run.budget = None;
                return;
            }
            run.pay(place, &self.schema);
            if let Some(fault) = rule.fault(place, environment, &self.schema, outcome)
                && (transition || !place.unchanged)
            {
                run.errors.push(fault);
            }
        }
    }

    /// Faults of the rules of a schema themselves, found when its definition is written. Of a schema that was
    /// accepted before (`is_known`), single rules may cost whatever they cost.
    pub fn check(schema: &Value, path: &Path, is_known: bool) -> ErrorList {
        definition::check(schema, path, is_known)
    }
}

/// An `optional` with a value, or without one.
fn optional_value(value: Option<super::Value>) -> super::Value {
    use kube_cel::cel::objects::OptionalValue;
    super::Value::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

impl Rule {
    fn new(rule: &Value) -> Self {
        let text = |key: &str| rule[key].as_str().filter(|text| !text.trim().is_empty());
        let compile = |source: &str| Expression::compile(source, &["self", "oldSelf"]);
        Self {
            expression: compile(text("rule").unwrap_or_default()),
            message_expression: text("messageExpression").and_then(|source| compile(source).ok()),
            source: rule.clone(),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.source[key].as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// How messages name the rule.
    fn display_name(&self) -> &str {
        self.text("message").or_else(|| self.text("rule")).unwrap_or_default()
    }

    /// What came of the rule as a fault, unless it holds.
    fn fault(
        &self,
        place: &ValidatedValue<'_>,
        environment: &Environment<'_>,
        schema: &Value,
        outcome: Result<Result<bool, EvaluationError>, &CompileError>,
    ) -> Option<FieldError> {
        let kind = schema["type"].as_str().unwrap_or_default();
        let refuse = |detail: String| {
            Some(FieldError::invalid(place.path, kind, detail).by_rule(FieldRule::Unevaluated))
        };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return refuse(format!("rule compile error: {error}")),
        };
        match outcome {
            Ok(true) => None,
            Ok(false) => Some(self.failed(place, environment, kind)),
            Err(error @ EvaluationError::NoSuchOverload) => refuse(format!(
                "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                self.display_name()
            )),
            Err(error @ EvaluationError::Cost) => refuse(format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                self.display_name()
            )),
            Err(error) => refuse(format!("{error} evaluating rule: {}", self.display_name())),
        }
    }

    fn failed(&self, place: &ValidatedValue<'_>, environment: &Environment<'_>, kind: &str) -> FieldError {
        let told = self.message_expression.as_ref().and_then(|e| match e.evaluate(environment) {
            Ok(super::Value::String(text)) => {
                Some(text.trim().to_owned()).filter(|t| !t.is_empty() && !t.contains('\n'))
            }
            _ => None,
        });
        let detail = told
            .or_else(|| self.text("message").map(str::to_owned))
            .unwrap_or_else(|| format!("failed rule: {}", self.display_name()));
        let path = match self.text("fieldPath") {
            Some(below) => below_path(place.path, below),
            None => place.path.clone(),
        };
        let value = (!matches!(kind, "object" | "array")).then(|| place.value.clone());
        match self.text("reason") {
            Some("FieldValueForbidden") => FieldError::forbidden(&path, detail),
            Some("FieldValueRequired") => FieldError::required(&path, detail),
            Some("FieldValueDuplicate") => FieldError::new(ErrorKind::Duplicate, &path, value, detail),
            _ => FieldError::new(ErrorKind::Invalid, &path, value, detail),
        }
    }
}

/// `.spec.x` or `['a']` below a path.
fn below_path(path: &Path, below: &str) -> Path {
    let below = below.trim_start_matches('.');
    if below.starts_with('[') {
        let joined = path.to_string();
        return Path::new(format!("{}{below}", joined.trim_start_matches("<nil>")));
    }
    path.child(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(rules: Value) -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "name": {"type": "string", "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "name is immutable"}]},
        }, "x-kubernetes-validations": rules}}})
    }

    fn messages(rules: Value, object: Value, old: Option<Value>) -> Vec<String> {
        let schema = schema(rules);
        let rules = Rules::new(&schema).unwrap();
        rules.validate(&object, old.as_ref()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_failed_rule_says_why() {
        let object = json!({"spec": {"replicas": 5}});
        let bare = messages(json!([{"rule": "self.replicas < 3"}]), object.clone(), None);
        assert_eq!(bare, ["spec: Invalid value: failed rule: self.replicas < 3"]);
        let told = json!([{"rule": "self.replicas < 3", "messageExpression": "'too many: ' + string(self.replicas)", "fieldPath": ".replicas"}]);
        assert_eq!(messages(told, object.clone(), None), ["spec.replicas: Invalid value: too many: 5"]);
        let missing = messages(json!([{"rule": "self.name == 'a'"}]), object, None);
        assert_eq!(
            missing,
            ["spec: Invalid value: \"object\": no such key: name evaluating rule: self.name == 'a'"]
        );
    }

    #[test]
    fn transition_rules_need_an_old_value() {
        let of = |name: &str| json!({"spec": {"name": name}});
        assert!(messages(json!([]), of("a"), None).is_empty());
        assert!(messages(json!([]), of("a"), Some(of("a"))).is_empty());
        assert_eq!(
            messages(json!([]), of("b"), Some(of("a"))),
            ["spec.name: Invalid value: \"b\": name is immutable"]
        );
    }

    #[test]
    fn what_did_not_change_is_forgiven() {
        let rules = json!([{"rule": "self.replicas < 3"}]);
        let object = json!({"spec": {"replicas": 5}});
        let other = json!({"spec": {"replicas": 5}, "other": 1});
        assert!(messages(rules.clone(), other, Some(object.clone())).is_empty());
        assert_eq!(messages(rules, json!({"spec": {"replicas": 6}}), Some(object)).len(), 1);
    }

    #[test]
    fn what_costs_too_much_ends_the_validation() {
        let schema = |rule: &str| {
            json!({"type": "object", "properties": {
            "l": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]},
            "z": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"},
                "x-kubernetes-validations": [{"rule": rule}, {"rule": "false"}]}}}})
        };
        let told = |rule: &str, object: Value| -> Vec<String> {
            Rules::new(&schema(rule))
                .unwrap()
                .validate(&object, None)
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        let many = |count: u32| (0..count).collect::<Vec<_>>();
        let nested = "self.all(x, self.all(y, self.exists(z, z == x)))";
        assert_eq!(
            told(nested, json!({"l": many(400)})),
            [format!(
                "l: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {nested}"
            )]
        );
        let lists: BTreeMap<String, Vec<u32>> = (10..90).map(|at| (format!("k{at}"), many(200))).collect();
        let quadratic = told("self.all(x, self.all(y, x != y || x == y))", json!({"z": lists}));
        let last = quadratic.last().unwrap();
        assert!(
            last.ends_with(
                "validation failed due to running out of cost budget, no further validation rules will be run"
            ),
            "{last}"
        );
        assert!(quadratic.len() < 80, "not all were looked at");
    }

    #[test]
    fn a_rule_about_an_unknown_field_is_refused_with_its_definition() {
        let faults = |rule: &str| {
            let errors = Rules::check(&schema(json!([{"rule": rule}])), &Path::new("schema"), false);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(";")
        };
        assert_eq!(faults("self.replicas > 1 && has(self.name)"), "");
        assert!(faults("self.replcas > 1").contains("undefined field 'replcas'"));
        assert!(faults("self.replicas >").contains("Syntax error"));
        assert!(faults("self.replicas").ends_with("cel expression must evaluate to a bool"));
        let told = faults("self.replicas == 'a'");
        assert!(
            told.contains("1:15: found no matching overload for '_==_' applied to '(int, string)'"),
            "{told}"
        );
        assert!(faults("self.replicas && true").contains("1:5: expected type 'bool' but found 'int'"));
        assert_eq!(faults("self.replicas > 1.5 && self.name + 'a' != 'b' && !(1 == 2)"), "");
    }
}
