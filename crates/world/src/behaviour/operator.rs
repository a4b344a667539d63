//! Controllers of custom resources, as data.

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value};
use tiphys_value::{ObjectExt, ResourceKey};

use super::{Need, Pattern, Span, fill};

/// What an operator makes of the objects of one kind. It works exactly while one of its pods is Ready.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Operator {
    /// What it is called, in Events.
    pub name: String,
    /// The images of its pods; without it the operator always works.
    #[serde(default)]
    pub image: Option<Pattern>,
    /// API group of what it watches.
    pub group: String,
    /// Kind of what it watches.
    pub kind: String,
    /// How long it takes over an object.
    #[serde(default)]
    pub takes: Span,
    /// Put on each object, and taken off again when the object is deleted and its products are gone.
    #[serde(default)]
    pub finalizer: Option<String>,
    /// What it cannot do without; names are templates.
    #[serde(default)]
    pub needs: Vec<NeedTemplate>,
    /// Objects that it makes.
    #[serde(default)]
    pub produces: Vec<Product>,
    /// Fields of the status of an object that it is done with: a template. Conditions that only `waiting` has
    /// go away.
    #[serde(default)]
    pub status: Map<String, Value>,
    /// Fields of the status while something is missing; `{cause}` says what.
    #[serde(default)]
    pub waiting: Map<String, Value>,
}

/// A [`Need`] whose names are templates.
#[derive(Clone, Debug, PartialEq)]
pub struct NeedTemplate(Value);

impl Operator {
    /// The objects that it makes for one of its objects, if it does.
    pub fn product_keys(&self, object: &Value) -> Vec<ResourceKey> {
        let products = self.produces.iter().map(|product| fill(&product.object, object));
        let key = |product: Value| {
            let mut key = product.resource_key();
            if key.namespace.is_empty() {
                key.namespace = object.namespace().to_owned();
            }
            key
        };
        products.map(key).collect()
    }

    /// The objects that it cannot do without, where these are named, with the namespace of the object, and
    /// whether somebody else may have made them.
    pub fn needed_keys(&self, object: &Value) -> Vec<(ResourceKey, bool)> {
        let needs = self.needs.iter().filter_map(|need| need.need_for(object));
        let key = |need: Need| {
            let (group, kind, name) = need.object()?;
            let key = ResourceKey::new(group, kind, object.namespace(), name);
            (!name.is_empty()).then_some((key, matches!(need, Need::NoSlip { .. })))
        };
        needs.filter_map(key).collect()
    }
}

impl NeedTemplate {
    /// What is needed for an object.
    pub fn need_for(&self, object: &Value) -> Option<Need> {
        serde_json::from_value(fill(&self.0, object)).ok()
    }
}

impl<'de> Deserialize<'de> for NeedTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        serde_json::from_value::<Need>(value.clone()).map_err(D::Error::custom)?;
        Ok(Self(value))
    }
}

/// Something that an operator makes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Product {
    /// The object: a template.
    pub object: Value,
    /// Who owns it: a template that yields a [`Policy`].
    #[serde(default = "owner")]
    pub policy: String,
    /// Whether it gets the labels of the object it is made for.
    #[serde(default)]
    pub copy_labels: bool,
    /// A field of the object by whose keys `data` is filled: a map, or a list of objects with `secretKey`.
    #[serde(default)]
    pub keys_from: Option<String>,
    /// Fields of the object; if one is set, what else `data` holds is not known here, and taken to be
    /// whatever is looked for.
    #[serde(default)]
    pub more_keys_if: Vec<String>,
    /// Whether the object counts as done only when this one is Ready (a workload).
    #[serde(default)]
    pub must_be_ready: bool,
}

fn owner() -> String {
    "Owner".to_owned()
}

/// Who owns what an operator makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The object it is made for: it goes with it.
    Owner,
    /// Nobody.
    Orphan,
    /// Whoever made it: the operator only fills in what is there already.
    Merge,
    /// It is not made.
    None,
}

impl Policy {
    /// Reads a policy; what is unknown counts as `Owner`.
    pub fn parse(text: &str) -> Self {
        match text {
            "Orphan" => Self::Orphan,
            "Merge" => Self::Merge,
            "None" => Self::None,
            _ => Self::Owner,
        }
    }
}
