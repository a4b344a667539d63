//! Label selectors.

use std::collections::BTreeMap;

use serde_json::Value;
use tiphys_value::label_selector::LabelOperator;

use crate::{
    expression::{Expression, Label},
    tri_state::Tri,
};

/// Labels of an object; `None` as a whole if they are not known.
pub(crate) type Labels = BTreeMap<String, String>;

/// One condition of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    key: String,
    operator: LabelOperator,
    values: Vec<String>,
}

impl Term {
    fn one_of(key: &str, values: Vec<String>) -> Self {
        Self { key: key.to_owned(), operator: LabelOperator::In, values }
    }

    /// Whether it holds where the label has this value, or is missing.
    fn is_met(&self, label: Option<&str>) -> bool {
        self.operator.is_met(label, self.values.iter().map(String::as_str))
    }
}

/// A label selector; without terms it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    terms: Vec<Term>,
    /// What Calico writes in place of terms.
    expression: Option<Expression>,
}

impl Selector {
    /// Reads `matchLabels` and `matchExpressions`; `strip` takes a prefix off each key.
    pub fn from_value(value: &Value, strip: impl Fn(&str) -> String) -> Self {
        let mut terms = Vec::new();
        for (key, label) in value.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            terms.push(Term::one_of(&strip(key), vec![label.as_str().unwrap_or_default().to_owned()]));
        }
        for term in value.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| term.get(name).and_then(Value::as_str).unwrap_or_default();
            let values = term.get("values").and_then(Value::as_array).into_iter().flatten();
            terms.push(Term {
                key: strip(text("key")),
                // What the server would refuse selects what lacks the label.
                operator: LabelOperator::parse(text("operator")).unwrap_or(LabelOperator::DoesNotExist),
                values: values.filter_map(|value| Some(value.as_str()?.to_owned())).collect(),
            });
        }
        Self { terms, expression: None }
    }

    /// A selector of Calico's; one that says `all()` selects everything.
    pub fn expressed(expression: Expression) -> Self {
        Self { terms: Vec::new(), expression: (expression != Expression::All).then_some(expression) }
    }

    /// A selector of one label.
    pub fn label(key: &str, value: &str) -> Self {
        Self { terms: vec![Term::one_of(key, vec![value.to_owned()])], expression: None }
    }

    /// A selector of one label that has one of these values.
    pub fn one_of(key: &str, values: Vec<String>) -> Self {
        Self { terms: vec![Term::one_of(key, values)], expression: None }
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.expression.is_none()
    }

    /// Whether it selects what has these labels. `known` says whether a label that is missing here is
    /// known to be missing.
    pub fn matches(&self, labels: &Labels, known: bool) -> Tri {
        self.matches_by(&|key| match labels.get(key) {
            Some(value) => Label::Value(value.clone()),
            None if known => Label::Missing,
            None => Label::Unknown,
        })
    }

    /// Whether it selects what has the labels that `label` tells.
    pub fn matches_by(&self, label: &impl Fn(&str) -> Label) -> Tri {
        let terms = Tri::all(self.terms.iter().map(|term| match label(&term.key) {
            Label::Value(value) => Tri::from(term.is_met(Some(&value))),
            Label::Unknown => Tri::Maybe,
            Label::Missing => Tri::from(term.is_met(None)),
        }));
        let expressed = self.expression.as_ref().map_or(Tri::Yes, |it| it.matches(label));
        terms.min(expressed)
    }

    /// The keys and values that it asks for.
    pub fn wanted_labels(&self) -> impl Iterator<Item = (&str, &[String])> {
        let terms = self.terms.iter().filter(|term| term.operator == LabelOperator::In);
        let terms = terms.map(|term| (term.key.as_str(), term.values.as_slice()));
        terms.chain(self.expression.iter().flat_map(Expression::wanted_labels))
    }
}
