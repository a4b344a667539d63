//! The rules of a definition's schema, checked before the definition is accepted: their form, whether they
//! compile, what they would cost, and whether old values can be found for them (apiextensions-apiserver,
//! `pkg/apis/apiextensions/validation`).

use serde_json::Value;
use tiphys_schema::{ErrorKind, ErrorList, FieldError, Path};

use super::{
    CompileError, Expression,
    convert::escape,
    cost::{self, Declared, MAX_REQUEST, Shape},
    field_check,
};

/// What one rule may cost, for all the values that it is evaluated for.
const RULE_BUDGET: u64 = 10_000_000;
/// What all rules of a schema may cost together.
const SCHEMA_BUDGET: u64 = 100_000_000;
/// How deep schemas are followed.
const MAX_DEPTH: usize = 200;
/// How many rules are named if they cost too much together.
const MOST_NAMED: usize = 4;
const RULES: &str = "x-kubernetes-validations";
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Faults of the rules of a schema. Of a schema that was accepted before (`is_known`), single rules may cost
/// whatever they cost.
pub(super) fn check(schema: &Value, path: &Path, is_known: bool) -> ErrorList {
    let mut walk = Walk { is_known, ..Walk::default() };
    let root = Context { declared: None, times: Some(1), uncorrelated: None, is_root: true };
    walk.node(schema, path, &root, 0);
    walk.total(path);
    walk.form.extend(walk.meaning);
    walk.form
}

/// Where in the schema a node is.
struct Context<'a> {
    /// The type that a rule further up has been given for it.
    declared: Option<&'a Declared>,
    /// How many values there can be of it, if the schema limits that.
    times: Option<u64>,
    /// The first part further up whose old values cannot be distinguished.
    uncorrelated: Option<Path>,
    is_root: bool,
}

/// What has been found.
#[derive(Default)]
struct Walk {
    is_known: bool,
    /// Faults in how rules are written down.
    form: ErrorList,
    /// Faults in what they say.
    meaning: ErrorList,
    spent: u64,
    /// The rules that cost most, the dearest first.
    dearest: Vec<(u64, Path)>,
}

impl Walk {
    fn node(&mut self, schema: &Value, path: &Path, context: &Context<'_>, depth: usize) {
        if depth > MAX_DEPTH || !schema.is_object() {
            return;
        }
        let before = self.form.0.len();
        let rules: Vec<&Value> = schema[RULES].as_array().into_iter().flatten().collect();
        let own;
        let declared = match context.declared {
            None if !rules.is_empty() => {
                let is_resource = context.is_root || schema["x-kubernetes-embedded-resource"] == true;
                own = Declared::from_schema(schema, is_resource);
                own.as_ref()
            }
            inherited => inherited,
        };
        self.parts(
            schema,
            path,
            &Context { declared, uncorrelated: context.uncorrelated.clone(), ..*context },
            depth,
        );
        for (at, rule) in rules.iter().enumerate() {
            self.written(rule, schema, &path.child(RULES).index(at));
        }
        // What is not written down properly, here or further in, need not be understood.
        if rules.is_empty() || self.form.0.len() > before {
            return;
        }
        let Some(declared) = declared else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            self.meaning.push(FieldError::new(ErrorKind::Internal, &path.child(RULES), None, detail));
            return;
        };
        for (at, rule) in rules.iter().enumerate() {
            let place = RulePlace { schema, declared, context, path: path.child(RULES).index(at) };
            self.rule(rule, &place);
        }
    }

    fn parts(&mut self, schema: &Value, path: &Path, context: &Context<'_>, depth: usize) {
        let times = context.times.zip(multiplied(schema)).map(|(a, b)| a.saturating_mul(b));
        let uncorrelated =
            |is_lost: bool| context.uncorrelated.clone().or_else(|| is_lost.then(|| path.clone()));
        let shape = context.declared.map(|declared| &declared.shape);
        let inner = match shape {
            Some(Shape::List(inner) | Shape::Map(inner)) => Some(&**inner),
            _ => None,
        };
        let others = Context { declared: inner, times, uncorrelated: uncorrelated(false), is_root: false };
        self.node(&schema["additionalProperties"], &path.child("additionalProperties"), &others, depth + 1);
        let is_atomic = schema["x-kubernetes-map-type"] == "atomic";
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let declared = match shape {
                Some(Shape::Object(fields)) => fields.get(&escape(name)),
                _ => None,
            };
            let context = Context { declared, times, uncorrelated: uncorrelated(is_atomic), is_root: false };
            self.node(property, &path.child("properties").key(name), &context, depth + 1);
        }
        let is_keyed = schema["x-kubernetes-list-type"] == "map";
        let items = Context { declared: inner, times, uncorrelated: uncorrelated(!is_keyed), is_root: false };
        self.node(&schema["items"], &path.child("items"), &items, depth + 1);
    }

    /// Faults in the form of a rule.
    fn written(&mut self, rule: &Value, schema: &Value, path: &Path) {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        let is_blank = |key: &str| !text(key).is_empty() && text(key).trim().is_empty();
        let errors = &mut self.form;
        let (source, message) = (text("rule").trim(), text("message"));
        if source.is_empty() {
            errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
        } else if is_blank("message") {
            errors.push(FieldError::invalid(
                &path.child("message"),
                message,
                "must be non-empty if specified",
            ));
        } else if message.trim().contains('\n') {
            errors.push(FieldError::invalid(&path.child("message"), message, "must not contain line breaks"));
        } else if source.contains('\n') && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(&path.child("message"), detail));
        }
        if is_blank("messageExpression") {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(&path.child("messageExpression"), detail));
        }
        if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
            errors.push(FieldError::not_supported(&path.child("reason"), reason, &REASONS));
        }
        let below = text("fieldPath");
        let place = path.child("fieldPath");
        if is_blank("fieldPath") {
            errors.push(FieldError::invalid(&place, below, "must be non-empty if specified"));
        }
        if below.contains('\n') {
            errors.push(FieldError::invalid(&place, below, "must not contain line breaks"));
        }
        if !below.is_empty() && !leads_somewhere(schema, below) {
            errors.push(FieldError::invalid(&place, below, "must be a valid path"));
        }
    }

    /// Faults in what a rule says, and what it costs.
    fn rule(&mut self, rule: &Value, place: &RulePlace<'_>) {
        let source = rule["rule"].as_str().unwrap_or_default();
        let compiled = place.compile(source);
        let cost = compiled.as_ref().map_or(0, |_| place.cost(source));
        self.pay("estimated rule cost", cost, &place.path.child("rule"));
        let refuse =
            |key: &str, why: String| FieldError::invalid_as(&place.path.child(key), internal(rule), why);
        if let Err(why) = &compiled {
            self.meaning.push(refuse("rule", why.clone()));
        }
        let message = rule["messageExpression"].as_str().filter(|text| !text.is_empty());
        if let (Some(message), Ok(_)) = (message, &compiled) {
            match place.checked(message) {
                Err(why) => {
                    self.meaning.push(refuse("messageExpression", format!("messageExpression {why}")))
                }
                Ok(_) => {
                    let cost = cost::estimate(message, place.declared).unwrap_or(0);
                    self.pay(
                        "estimated messageExpression cost",
                        cost,
                        &place.path.child("messageExpression"),
                    );
                }
            }
        }
        let uses_old = compiled.is_ok_and(|expression| expression.mentions("oldSelf"));
        if let (true, Some(part)) = (uses_old, &place.context.uncorrelated) {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {part}");
            self.meaning.push(FieldError::invalid(&place.path.child("rule"), source, detail));
        }
        let optional = &rule["optionalOldSelf"];
        if !uses_old && optional.is_boolean() {
            let detail = "may not be set if oldSelf is not used in rule";
            self.meaning.push(FieldError::invalid(
                &place.path.child("optionalOldSelf"),
                optional.clone(),
                detail,
            ));
        }
    }

    /// Counts a cost, and refuses it if it alone is too much.
    fn pay(&mut self, name: &str, cost: u64, path: &Path) {
        if !self.is_known && cost > RULE_BUDGET {
            self.meaning.push(FieldError::forbidden(path, exceeded(name, cost, RULE_BUDGET)));
        }
        self.spent = self.spent.saturating_add(cost);
        if cost >= SCHEMA_BUDGET / 100 {
            self.dearest.push((cost, path.clone()));
            self.dearest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.dearest.truncate(MOST_NAMED);
        }
    }

    /// Refuses what is too much together.
    fn total(&mut self, path: &Path) {
        if self.spent <= SCHEMA_BUDGET {
            return;
        }
        let part =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        self.meaning.extend(ErrorList(
            self.dearest.iter().map(|(_, path)| FieldError::forbidden(path, part)).collect(),
        ));
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.meaning.push(FieldError::forbidden(path, exceeded(name, self.spent, SCHEMA_BUDGET)));
    }
}

/// Where a rule stands.
struct RulePlace<'a> {
    schema: &'a Value,
    declared: &'a Declared,
    context: &'a Context<'a>,
    path: Path,
}

impl RulePlace<'_> {
    fn checked(&self, source: &str) -> Result<Expression, CompileError> {
        let expression = Expression::compile(source, &["self", "oldSelf"])?;
        field_check::fields(&expression, self.schema, self.context.is_root)?;
        Ok(expression)
    }

    /// A rule that compiles and says yes or no, or what is wrong with it.
    fn compile(&self, source: &str) -> Result<Expression, String> {
        let expression = self.checked(source).map_err(|error| error.to_string())?;
        match field_check::kind(&expression, self.schema, self.context.is_root) {
            None | Some("bool") => Ok(expression),
            Some(_) => Err("cel expression must evaluate to a bool".into()),
        }
    }

    /// What a rule costs for all values that there can be of its part of the schema.
    fn cost(&self, source: &str) -> u64 {
        let times = self.context.times.unwrap_or_else(|| MAX_REQUEST / (self.declared.smallest + 1));
        cost::estimate(source, self.declared).unwrap_or(0).saturating_mul(times)
    }
}

/// How many values of its parts there can be for one of a schema; `None` without a limit.
fn multiplied(schema: &Value) -> Option<u64> {
    let limit = |key: &str| schema[key].as_i64().map(|most| u64::try_from(most).unwrap_or(0));
    match schema["type"].as_str() {
        Some("object") if !schema["additionalProperties"].is_null() => limit("maxProperties"),
        Some("array") => limit("maxItems"),
        _ => Some(1),
    }
}

fn exceeded(name: &str, cost: u64, budget: u64) -> String {
    let times = cost as f64 / budget as f64;
    let factor = match times {
        times if times > 100.0 => "more than 100x".to_owned(),
        // Not `1.0x`.
        times if times < 1.5 => format!("{times:.6}x"),
        times => format!("{times:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Whether a path such as `.spec.x` or `['a']` names something in a schema.
fn leads_somewhere(schema: &Value, path: &str) -> bool {
    let (mut at, mut rest) = (schema, path);
    while !rest.is_empty() {
        let name;
        if let Some(quoted) = rest.strip_prefix("['") {
            let Some((inner, after)) = quoted.split_once("']") else { return false };
            (name, rest) = (inner, after);
        } else if let Some(dotted) = rest.strip_prefix('.') {
            let end = dotted.find(['.', '[']).unwrap_or(dotted.len());
            (name, rest) = dotted.split_at(end);
        } else {
            return false;
        }
        at = match at["properties"].as_object() {
            Some(properties) => match properties.get(name) {
                Some(property) => property,
                None => return false,
            },
            None if at["additionalProperties"].is_object() => &at["additionalProperties"],
            None => return false,
        };
    }
    true
}

/// A rule as the API server's own type shows it in messages.
fn internal(rule: &Value) -> String {
    let text = |key: &str| Value::from(rule[key].as_str().unwrap_or_default());
    let given = |key: &str| rule.get(key).cloned().unwrap_or_default();
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        given("reason"),
        text("fieldPath"),
        given("optionalOldSelf")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(schema: &Value) -> Vec<String> {
        check(schema, &Path::new("s"), false).iter().map(ToString::to_string).collect()
    }

    fn listed(limits: Value, rule: &str) -> Value {
        let mut items = json!({"type": "string"});
        items["maxLength"] = limits["maxLength"].clone();
        let mut list = json!({"type": "array", "items": items, "x-kubernetes-validations": [{"rule": rule}]});
        list["maxItems"] = limits["maxItems"].clone();
        json!({"type": "object", "properties": {"l": list}})
    }

    #[test]
    fn rules_without_limits_cost_too_much() {
        let rule = "self.all(x, self.exists(y, x.contains(y)))";
        let told = faults(&listed(json!({}), rule));
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("s.properties[l].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x"), "{told:?}");
        assert!(told[1].contains("contributed to estimated rule cost total"));
        assert!(told[2].starts_with("s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds"));
        assert!(faults(&listed(json!({"maxItems": 10, "maxLength": 10}), rule)).is_empty());
    }

    #[test]
    fn old_values_must_be_found() {
        let rules = json!([{"rule": "self == oldSelf"}]);
        let items = json!({"type": "integer", "x-kubernetes-validations": rules});
        let list =
            json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 3, "items": items}}});
        let told = faults(&list);
        assert_eq!(
            told,
            [
                "s.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[l]"
            ]
        );
        let optional = json!({"type": "object", "x-kubernetes-validations": [{"rule": "true", "optionalOldSelf": true}]});
        assert_eq!(
            faults(&optional),
            [
                "s.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
            ]
        );
    }

    #[test]
    fn paths_of_faults_must_lead_somewhere() {
        let of = |path: &str| {
            json!({"type": "object", "properties": {"a": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string"}}},
                "x-kubernetes-validations": [{"rule": "true", "fieldPath": path}]})
        };
        assert!(faults(&of(".a['x y']")).is_empty() && faults(&of(".a")).is_empty());
        for path in [".b", "a", ".a.b.c", ".a['x"] {
            assert_eq!(faults(&of(path)).len(), 1, "{path}");
        }
    }
}
