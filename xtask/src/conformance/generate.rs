//! Requests made of one sample object per kind: every verb and what can go wrong with it, and the sample
//! with something in it changed.

use serde_json::{Value, json};
use tiphys_value::ObjectExt;

use super::{
    corpus::{Exchange, Sequence},
    random::Random,
};

/// The samples.
const SAMPLES: &str = include_str!("../../data/samples.yaml");
/// The namespace of everything that lives in one.
const NAMESPACE: &str = "gen";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Where objects of a kind live: the plural, and whether in namespaces.
pub(super) type KindLookup<'a> = dyn Fn(&Value) -> Option<(String, bool)> + 'a;

/// All generated sequences: a first one that prepares, then per sample one of verbs and one of mutations.
///
/// # Errors
/// A sample cannot be read, or its kind is not served.
pub(super) fn sequences(place: &KindLookup<'_>, mutations: usize) -> anyhow::Result<Vec<Sequence>> {
    let samples =
        tiphys_yaml::from_yaml(SAMPLES).map_err(|error| anyhow::anyhow!("samples.yaml: {error}"))?;
    let mut all = vec![prepare()];
    for (number, sample) in samples.as_array().into_iter().flatten().enumerate() {
        let known = match sample.kind() {
            "Gadget" => Some(("gadgets".to_owned(), true)),
            _ => place(sample),
        };
        let (plural, namespaced) = known.ok_or_else(|| {
            anyhow::anyhow!("samples.yaml: nothing serves {} {}", sample.api_version(), sample.kind())
        })?;
        let subject = Subject::new(sample, &plural, namespaced);
        all.push(Sequence { name: format!("verbs of {plural}"), exchanges: subject.verbs() });
        let seed = number as u64 + 1;
        all.push(Sequence { name: format!("mutated {plural}"), exchanges: subject.mutated(mutations, seed) });
    }
    Ok(all)
}

fn prepare() -> Sequence {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    Sequence {
        name: "preparation".to_owned(),
        exchanges: vec![
            Exchange::new("POST", "/api/v1/namespaces", &namespace),
            Exchange::new("POST", accounts, &account),
        ],
    }
}

struct Subject {
    object: Value,
    collection: String,
    one: String,
}

impl Subject {
    fn new(sample: &Value, plural: &str, namespaced: bool) -> Self {
        let mut object = sample.clone();
        if object.name().is_empty() {
            object["metadata"]["name"] = "a".into();
        }
        object["metadata"]["labels"] = json!({"app": "sample"});
        let root = if sample.api_version().contains('/') { "/apis" } else { "/api" };
        let scope = if namespaced { format!("/namespaces/{NAMESPACE}") } else { String::new() };
        let collection = format!("{root}/{}{scope}/{plural}", sample.api_version());
        let one = format!("{collection}/{}", object.name());
        Self { object, collection, one }
    }

    fn get(&self, query: &str) -> Exchange {
        Exchange::new("GET", format!("{}{query}", self.one), &Value::Null)
    }

    fn list(&self, query: &str) -> Exchange {
        Exchange::new("GET", format!("{}{query}", self.collection), &Value::Null)
    }

    fn create(&self, query: &str, object: &Value) -> Exchange {
        Exchange::new("POST", format!("{}{query}", self.collection), object)
    }

    fn put_request(&self, object: &Value) -> Exchange {
        Exchange::new("PUT", self.one.clone(), object)
    }

    fn patch(&self, query: &str, kind: &str, body: &Value) -> Exchange {
        Exchange::new("PATCH", format!("{}{query}", self.one), body).of_type(kind)
    }

    fn delete(&self, query: &str, options: &Value) -> Exchange {
        Exchange::new("DELETE", format!("{}{query}", self.one), options)
    }

    /// The sample with another value at a place in its metadata.
    fn with(&self, field: &str, value: Value) -> Value {
        let mut object = self.object.clone();
        object["metadata"][field] = value;
        object
    }

    /// The identity that a server-side apply has to carry, with labels.
    fn applied(&self, labels: Value) -> Value {
        let mut object = self.object.clone();
        object["metadata"] = json!({"name": self.object.name(), "labels": labels});
        object
    }

    fn verbs(&self) -> Vec<Exchange> {
        let mut all = self.creations();
        all.extend(self.reads());
        all.extend(self.updates());
        all.extend(self.patches());
        all.extend(self.deletions());
        all
    }

    fn creations(&self) -> Vec<Exchange> {
        let mut unknown = self.object.clone();
        unknown["metadata"]["unknownHere"] = 1.into();
        unknown["notKnown"] = json!({"x": 1});
        let mut other = self.object.clone();
        other["apiVersion"] = "other/v1".into();
        let mut nameless = self.object.clone();
        if let Some(metadata) = nameless["metadata"].as_object_mut() {
            metadata.remove("name");
        }
        let mut kindless = self.object.clone();
        if let Some(fields) = kindless.as_object_mut() {
            fields.remove("kind");
        }
        vec![
            self.get(""),
            self.create("?dryRun=All", &self.object),
            self.create("?dryRun=All&fieldValidation=Strict", &unknown),
            self.create("?dryRun=All&fieldValidation=Warn", &unknown),
            self.create("?dryRun=All&fieldValidation=Perhaps", &self.object),
            self.create("?dryRun=Some", &self.object),
            self.create("?dryRun=All", &other),
            self.create("?dryRun=All", &nameless),
            self.create("?dryRun=All", &kindless),
            self.create("?dryRun=All", &self.with("name", "Not_A.Name!".into())),
            self.create("?dryRun=All", &self.with("namespace", "elsewhere".into())),
            // One fault each: the real server goes through a map in an order of its own.
            self.create("?dryRun=All", &self.with("labels", json!({"bad key!": "v"}))),
            self.create("?dryRun=All", &self.with("labels", json!({"k": "bad value!"}))),
            self.create("?dryRun=All", &self.with("resourceVersion", "7".into())),
            self.create("?dryRun=All", &self.with("ownerReferences", json!([{"kind": "X", "name": ""}]))),
            self.create("?dryRun=All", &self.with("finalizers", json!(["nodomain"]))),
            self.create("?dryRun=All", &json!([])),
            self.create(
                "?dryRun=All",
                &json!({"apiVersion": self.object.api_version(), "kind": self.object.kind()}),
            ),
            self.create("?fieldManager=maker", &self.object),
            self.create("", &self.object),
        ]
    }

    fn reads(&self) -> Vec<Exchange> {
        vec![
            self.get(""),
            self.get("").with("accept", TABLE),
            self.get("").with("accept", PARTIAL),
            self.get("").with("accept", "application/xml"),
            self.get("?resourceVersion=x"),
            self.get("/status"),
            self.get("/scale"),
            self.get("/nothing"),
            self.list(""),
            self.list("").with("accept", TABLE),
            self.list("?includeObject=None").with("accept", TABLE),
            self.list("").with("accept", PARTIAL_LIST),
            self.list("?labelSelector=app%3Dsample"),
            self.list("?labelSelector=app%21%3Dsample"),
            self.list("?labelSelector=app%20in%20%28"),
            self.list(&format!("?fieldSelector=metadata.name%3D{}", self.object.name())),
            self.list("?fieldSelector=spec.nothing%3Dx"),
            self.list("?limit=-1"),
            self.list("?limit=x"),
            self.list("?continue=abc"),
            self.list("?resourceVersion=1&resourceVersionMatch=Exactly"),
            self.list("?resourceVersionMatch=Exact"),
            self.list("?sendInitialEvents=true"),
        ]
    }

    fn updates(&self) -> Vec<Exchange> {
        let mut renamed = self.object.clone();
        renamed["metadata"]["name"] = "other".into();
        let path = |name: &str| format!("{}/{name}", self.collection);
        let mut missing = self.object.clone();
        missing["metadata"]["name"] = "missing-one".into();
        missing["metadata"]["resourceVersion"] = "5".into();
        vec![
            self.put_request(&renamed),
            self.put_request(&self.with("resourceVersion", "1".into())),
            self.put_request(&self.with("resourceVersion", "x".into())),
            self.put_request(&self.with("uid", "00000000-0000-4000-8000-000000000000".into())),
            self.put_request(&self.with("annotations", json!({"put": "yes"}))),
            Exchange::new("PUT", path("missing-one"), &missing),
            Exchange::new("POST", self.one.clone(), &self.object),
            Exchange::new("PUT", self.collection.clone(), &self.object),
        ]
    }

    fn patches(&self) -> Vec<Exchange> {
        let label = |value: &str| json!({"metadata": {"labels": {"patched": value}}});
        let mut unknown = self.applied(json!({"one": "1"}));
        unknown["notKnown"] = 1.into();
        vec![
            self.patch("?fieldManager=m", MERGE, &label("merge")),
            self.patch("?fieldManager=s", STRATEGIC, &label("strategic")),
            self.patch(
                "",
                JSON_PATCH,
                &json!([{"op": "add", "path": "/metadata/labels/json", "value": "yes"}]),
            ),
            self.patch(
                "",
                JSON_PATCH,
                &json!([{"op": "test", "path": "/metadata/labels/json", "value": "no"}]),
            ),
            self.patch("", JSON_PATCH, &json!([{"op": "remove", "path": "/metadata/nothing"}])),
            self.patch("", JSON_PATCH, &json!([{"op": "fly", "path": "/metadata"}])),
            self.patch("", JSON_PATCH, &label("wrong")),
            self.patch("", MERGE, &json!([1])),
            self.patch("", MERGE, &json!({"metadata": {"labels": {"n": 1}}})),
            self.patch("", MERGE, &json!({"metadata": {"name": "other"}})),
            self.patch("", MERGE, &json!({"metadata": {"resourceVersion": "1"}})),
            self.patch("?dryRun=All", MERGE, &json!({"metadata": {"annotations": {"dry": "run"}}})),
            self.patch("", "application/json", &label("plain")),
            self.patch("", "text/plain", &label("plain")),
            self.patch("?force=true", MERGE, &label("forced")),
            self.patch("", APPLY, &self.applied(json!({"one": "1"}))),
            self.patch("?fieldManager=one", APPLY, &self.applied(json!({"one": "1"}))),
            self.patch("?fieldManager=two", APPLY, &self.applied(json!({"one": "2"}))),
            self.patch("?fieldManager=two&force=true", APPLY, &self.applied(json!({"one": "2"}))),
            self.patch("?fieldManager=one", APPLY, &self.applied(json!({}))),
            self.patch("?fieldManager=one&fieldValidation=Strict", APPLY, &unknown),
            self.patch("?fieldManager=one", APPLY, &json!({"metadata": {"name": "x"}})),
            Exchange::new("PATCH", format!("{}/missing-one", self.collection), &label("x")).of_type(MERGE),
            Exchange::new("PATCH", format!("{}/status", self.one), &label("status")).of_type(MERGE),
            self.get(""),
        ]
    }

    fn deletions(&self) -> Vec<Exchange> {
        let wrong_uid = json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}});
        let both = json!({"propagationPolicy": "Background", "orphanDependents": true});
        let mut all = vec![
            self.delete("?dryRun=All", &Value::Null),
            self.delete("", &wrong_uid),
            self.delete("?propagationPolicy=Sideways", &Value::Null),
            self.delete("", &both),
        ];
        // The definition of the custom kind is needed by the next sample.
        if self.object.kind() != "CustomResourceDefinition" {
            all.push(self.delete("?gracePeriodSeconds=0", &Value::Null));
            all.push(self.delete("", &Value::Null));
        }
        let none = format!("{}?labelSelector=none%3Dsuch", self.collection);
        all.extend([Exchange::new("DELETE", none, &Value::Null), self.get("")]);
        all
    }

    /// The sample with one thing changed at a time, created with dry run.
    fn mutated(&self, count: usize, seed: u64) -> Vec<Exchange> {
        let mut random = Random::new(seed);
        let mut places = Vec::new();
        places_of(&self.object, String::new(), &mut places);
        places.retain(|place| {
            !matches!(place.as_str(), "" | "/apiVersion" | "/kind" | "/metadata" | "/metadata/name")
        });
        let mutation = |_| {
            let place = random.pick(&places);
            let mut object = self.object.clone();
            let values = [
                json!(1),
                json!(-1),
                json!("x!"),
                json!({}),
                json!([]),
                json!(true),
                json!({"zz": 1}),
                json!(1.5),
                json!(""),
                json!(null),
                json!("65536"),
                json!("1Gx"),
                json!(70000),
            ];
            if let Some(slot) = object.pointer_mut(place) {
                *slot = random.pick(&values).clone();
            }
            self.create("?dryRun=All&fieldValidation=Strict", &object)
        };
        (0..count).map(mutation).collect()
    }
}

/// Pointers to everything inside a value.
pub(super) fn places_of(value: &Value, at: String, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                places_of(inner, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), into);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                places_of(inner, format!("{at}/{index}"), into);
            }
        }
        _ => {}
    }
    into.push(at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_gives_requests_and_the_same_ones_each_time() {
        let place: &KindLookup<'_> = &|object| Some((object.kind().to_lowercase(), true));
        let first = sequences(place, 3).unwrap();
        let count: usize = first.iter().map(|sequence| sequence.exchanges.len()).sum();
        assert!(count > 1_500, "{count}");
        let second = sequences(place, 3).unwrap();
        assert!(first.iter().zip(&second).all(|(a, b)| a.exchanges == b.exchanges));
    }
}
