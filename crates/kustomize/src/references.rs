//! Name references: fields that name another object follow its new name.

use std::{cell::RefCell, collections::HashMap};

use smol_str::SmolStr;
use tiphys_value::OriginKind;

use tiphys_gocompat::strconv::quote;

use crate::{
    context::Context,
    error::{Error, Result},
    fields::{NameReference, Route},
    meter::Meter,
    node::{Content, Kind, Node},
    origins::Tracker,
    resid::{CLUSTER_SCOPE, Gvk},
    resource::Resource,
    resource_map::ResourceMap,
};

/// Fixes every reference of every object.
///
/// # Errors
/// A reference that fits several objects of different names.
pub(crate) fn fix(
    objects: &mut ResourceMap,
    references: &[NameReference],
    context: &mut Context<'_>,
) -> Result<()> {
    objects.list.iter().try_for_each(check_ids)?;
    objects.list.iter().try_for_each(check_subjects)?;
    // Where nothing was renamed nothing changes, and yet fields that a reference cannot stand in are refused.
    if references.is_empty() {
        return Ok(());
    }
    let candidates = Candidates::new(objects, &mut context.tracker);
    let tracker = RefCell::new(std::mem::take(&mut context.tracker));
    let fixed = fix_fields(objects, references, &candidates, &tracker, &context.meter);
    context.tracker = tracker.into_inner();
    fixed?;
    let writer = context.tracker.writer(OriginKind::Transformer, "", "name reference");
    let nowhere = tiphys_value::Location::new("", 0, 0);
    crate::transform::finish(objects, context, writer, &nowhere);
    Ok(())
}

fn fix_fields(
    objects: &mut ResourceMap,
    references: &[NameReference],
    candidates: &Candidates,
    tracker: &RefCell<Tracker>,
    meter: &Meter,
) -> Result<()> {
    let mut specs_of: HashMap<Gvk, Vec<(&Gvk, Route<'_>)>> = HashMap::new();
    for at in 0..objects.list.len() {
        meter.check(0)?;
        let gvk = original_gvk(&objects.list[at]);
        let specs = specs_of.entry(gvk.clone()).or_insert_with(|| specs_for(&gvk, references));
        if specs.is_empty() {
            continue;
        }
        // The referrer is looked up among the candidates as it was; only its fields change.
        let mut node = std::mem::replace(&mut objects.list[at].node, Node::null());
        let referrer = Referrer::new(candidates, at, &node, tracker);
        let mut changed = false;
        for (target, route) in specs.iter() {
            let path = &route.spec().path;
            // The kind was checked against the original one; the walk must not check again.
            route
                .follow(&mut node, None, &mut |field| {
                    referrer.set(field, target, path).map(|written| changed |= written)
                })
                .map_err(|error| referrer.error(&node, path, error, objects))?;
        }
        objects.list[at].node = node;
        objects.list[at].touched |= changed;
    }
    Ok(())
}

/// Kustomize ends with a panic at an object whose earlier identities it cannot read.
fn check_ids(resource: &Resource) -> Result<()> {
    if !resource.has_unreadable_ids() {
        return Ok(());
    }
    let text = "number of previous names, number of previous namespaces, number of previous kinds not equal";
    Err(Error::transform(text).located_at(Some(resource.location.clone())).advise(
        "a kind, name or namespace is empty or holds a comma, so that its earlier names cannot be told apart",
    ))
}

/// A service account that a role binding names must not have an empty namespace.
fn check_subjects(resource: &Resource) -> Result<()> {
    let node = &resource.node;
    let subjects = node.get("subjects").filter(|_| node.object_kind() == "RoleBinding").map(Node::items);
    let blank = |subject: &Node| {
        let is_text =
            |namespace: &Node| matches!(crate::node::to_json(namespace), Ok(serde_json::Value::String(_)));
        subject.text_of("kind") == "ServiceAccount"
            && subject.get("namespace").is_some_and(|value| !is_text(value))
    };
    if subjects.unwrap_or_default().iter().any(blank) {
        let id = resource.id().to_string();
        return Err(Error::transform(format!(
            "Invalid Input: namespace is blank for resource {}\n",
            quote(&id)
        ))
        .located_at(Some(resource.location.clone()))
        .advise("set the subject's `namespace`, or leave the field out"));
    }
    Ok(())
}

fn original_gvk(resource: &Resource) -> Gvk {
    let kind = resource.earlier.first().map_or(resource.node.object_kind(), |earlier| earlier.kind.as_str());
    Gvk::new(resource.node.api_version(), kind)
}

/// The fields of a kind that refer to others, with what they refer to.
fn specs_for<'r>(gvk: &Gvk, references: &'r [NameReference]) -> Vec<(&'r Gvk, Route<'r>)> {
    let mut specs = Vec::new();
    for reference in references {
        for spec in reference.field_specs.iter().filter(|spec| gvk.is_selected_by(&spec.gvk)) {
            specs.push((&reference.gvk, Route::new(spec)));
        }
    }
    specs
}

/// What matters of an object that may be referred to.
struct Candidate {
    name: SmolStr,
    namespace: SmolStr,
    gvk: Gvk,
    earlier: Vec<(Gvk, SmolStr)>,
    original_namespace: SmolStr,
    effective_namespace: SmolStr,
    cluster_scoped: bool,
    prefixes: Vec<SmolStr>,
    suffixes: Vec<SmolStr>,
    /// The entry of those who refer to it: who gave it its name.
    origin: u32,
}

/// All objects, also by the names that they had.
struct Candidates {
    list: Vec<Candidate>,
    by_earlier_name: HashMap<SmolStr, Vec<usize>>,
    /// Service account namespaces that role bindings name.
    binding_namespaces: Vec<Option<Vec<SmolStr>>>,
}

impl Candidates {
    fn new(objects: &ResourceMap, tracker: &mut Tracker) -> Self {
        let list: Vec<Candidate> =
            objects.list.iter().map(|resource| Candidate::new(resource, tracker)).collect();
        let mut by_earlier_name: HashMap<SmolStr, Vec<usize>> = HashMap::new();
        for (at, candidate) in list.iter().enumerate() {
            for (_, name) in &candidate.earlier {
                let positions = by_earlier_name.entry(name.clone()).or_default();
                if positions.last() != Some(&at) {
                    positions.push(at);
                }
            }
        }
        let binding_namespaces =
            objects.list.iter().map(|resource| binding_namespaces(&resource.node)).collect();
        Self { list, by_earlier_name, binding_namespaces }
    }
}

/// Namespaces of the service accounts that a role binding names.
fn binding_namespaces(node: &Node) -> Option<Vec<SmolStr>> {
    if node.object_kind() != "RoleBinding" {
        return None;
    }
    let subjects = node.get("subjects").map(Node::items).unwrap_or_default();
    let accounts = subjects.iter().filter(|subject| subject.text_of("kind") == "ServiceAccount");
    Some(accounts.filter_map(|subject| subject.get("namespace")).map(Node::value_smol).collect())
}

/// The entry of a field that takes over an object's new name: the place that renamed the object.
fn renaming(resource: &Resource, tracker: &mut Tracker) -> u32 {
    if !tracker.is_enabled() || resource.earlier.is_empty() {
        return 0;
    }
    let name = resource.node.get("metadata").and_then(|metadata| metadata.get("name"));
    let Some(place) = name.and_then(|name| tracker.location(name.origin)) else { return 0 };
    let detail = format!("name reference to {}/{}", resource.node.object_kind(), resource.node.name());
    let writer = tracker.writer(OriginKind::Transformer, &place.file, &detail);
    tracker.entry(writer, place.line, place.column)
}

impl Candidate {
    fn new(resource: &Resource, tracker: &mut Tracker) -> Self {
        let api_version = resource.node.api_version();
        let earlier = resource.earlier.iter();
        Self {
            name: resource.node.name().into(),
            namespace: resource.node.namespace().into(),
            gvk: resource.gvk(),
            earlier: earlier.map(|e| (Gvk::new(api_version, &e.kind), e.name.clone())).collect(),
            original_namespace: resource.original_id().effective_namespace().into(),
            effective_namespace: resource.effective_namespace().into(),
            cluster_scoped: resource.is_cluster_scoped(),
            prefixes: resource.prefixes.clone(),
            suffixes: resource.suffixes.clone(),
            origin: renaming(resource, tracker),
        }
    }

    fn had_kind(&self, selector: &Gvk) -> bool {
        self.earlier.iter().any(|(gvk, _)| gvk.is_selected_by(selector))
    }
}

fn affixes_fit(a: &Candidate, b: &Candidate, allow_empty: bool) -> bool {
    let fit = |a: &[SmolStr], b: &[SmolStr]| {
        (allow_empty && (a.is_empty() || b.is_empty())) || crate::resource::same_ending(a, b)
    };
    fit(&a.prefixes, &b.prefixes) && fit(&a.suffixes, &b.suffixes)
}

/// An object whose fields are fixed.
struct Referrer<'a> {
    all: &'a Candidates,
    at: usize,
    own: &'a Candidate,
    /// `apiGroup` and `kind` of its `roleRef`.
    role: Option<Gvk>,
    /// The objects that a name may mean equally well, of which there is none to choose.
    tied: RefCell<Vec<usize>>,
    tracker: &'a RefCell<Tracker>,
}

/// A set of objects for a reference in a mapping: its `namespace` field narrows them.
#[derive(Clone, Copy)]
enum ReferenceScope<'n> {
    All,
    Original(&'n str),
    Current(&'n str),
}

impl<'a> Referrer<'a> {
    fn new(all: &'a Candidates, at: usize, node: &Node, tracker: &'a RefCell<Tracker>) -> Self {
        let role = node.get("roleRef").and_then(|role| {
            let (group, kind) = (role.get("apiGroup")?, role.get("kind")?);
            Some(Gvk { group: group.value_smol(), version: SmolStr::default(), kind: kind.value_smol() })
        });
        Self { all, at, own: &all.list[at], role, tied: RefCell::default(), tracker }
    }

    /// Fixes a field; returns whether it was written.
    fn set(&self, field: &mut Node, target: &Gvk, path: &str) -> Result<bool, String> {
        if field.is_null() {
            return Ok(false);
        }
        match field.kind() {
            Kind::Scalar => self.set_scalar(field, target, path),
            Kind::Map => self.set_mapping(field, target, path),
            Kind::Seq => {
                let mut written = false;
                for item in field.items_mut().into_iter().flatten().filter(|item| !item.is_null()) {
                    written |= match item.content {
                        Content::Scalar(_) => self.set_scalar(item, target, path)?,
                        Content::Map(_) => self.set_mapping(item, target, path)?,
                        Content::Seq(_) => {
                            return Err("is expected to be either a string or a map of string".to_owned());
                        }
                    };
                }
                Ok(written)
            }
        }
    }

    fn set_scalar(&self, field: &mut Node, target: &Gvk, path: &str) -> Result<bool, String> {
        let same_name = |a: &Candidate, b: &Candidate| a.name == b.name;
        let Some(referral) = self.select(field.value(), target, path, ReferenceScope::All, &same_name)?
        else {
            return Ok(false);
        };
        if referral.name == field.value() {
            return Ok(false);
        }
        let older = field.origin;
        field.set_scalar(Node::scalar(referral.name.clone()))?;
        self.record_origin(field, older, referral);
        Ok(true)
    }

    /// Records where the name comes from that a field has now.
    fn record_origin(&self, field: &mut Node, older: u32, referral: &Candidate) {
        if referral.origin != 0 {
            field.origin = self.tracker.borrow_mut().merge_entry(referral.origin, older);
        }
    }

    /// A mapping with `name` and perhaps `namespace`, such as a subject of a role binding.
    fn set_mapping(&self, field: &mut Node, target: &Gvk, path: &str) -> Result<bool, String> {
        let Some(name) = field.get("name") else {
            return Err("path config error; no 'name' field in node".to_owned());
        };
        let name = name.value_smol();
        let namespace = field.get("namespace").map(Node::value_smol);
        let scope = match &namespace {
            None => ReferenceScope::All,
            Some(namespace) if self.any_with_original(namespace) => ReferenceScope::Original(namespace),
            Some(namespace) => ReferenceScope::Current(namespace),
        };
        let same = |a: &Candidate, b: &Candidate| a.name == b.name && a.namespace == b.namespace;
        let Some(referral) = self.select(&name, target, path, scope, &same)? else { return Ok(false) };
        if referral.name == name && referral.namespace.is_empty() {
            return Ok(false);
        }
        let mut written = false;
        let mut put = |key: &str, value: &SmolStr| {
            let differs = field.get(key).is_none_or(|old| old.value() != value);
            written |= differs;
            if !differs {
                return Ok(());
            }
            let older = field.get(key).map_or(0, |old| old.origin);
            field.set(key, Node::scalar(value.clone()))?;
            if let Some(set) = field.get_mut(key) {
                self.record_origin(set, older, referral);
            }
            Ok::<_, String>(())
        };
        put("name", &referral.name)?;
        if !referral.namespace.is_empty() {
            put("namespace", &referral.namespace)?;
        }
        Ok(written)
    }

    /// Whether an object may be referred to from here at all.
    fn reaches(&self, at: usize) -> bool {
        let candidate = &self.all.list[at];
        if self.own.cluster_scoped || candidate.cluster_scoped {
            return true;
        }
        if candidate.effective_namespace == self.own.effective_namespace {
            return true;
        }
        let named = self.all.binding_namespaces[self.at].as_ref();
        named.is_some_and(|namespaces| namespaces.contains(&candidate.namespace))
    }

    fn any_with_original(&self, namespace: &str) -> bool {
        let fits = |at: usize| {
            let candidate = &self.all.list[at];
            candidate.original_namespace == namespace && candidate.original_namespace != CLUSTER_SCOPE
        };
        (0..self.all.list.len()).any(|at| fits(at) && self.reaches(at))
    }

    fn in_scope(&self, candidate: &Candidate, scope: ReferenceScope<'_>) -> bool {
        match scope {
            ReferenceScope::All => true,
            ReferenceScope::Original(namespace) => candidate.original_namespace == namespace,
            ReferenceScope::Current(namespace) => {
                namespace != CLUSTER_SCOPE && candidate.effective_namespace == namespace
            }
        }
    }

    /// The object that a name refers to.
    fn select(
        &self,
        old_name: &str,
        target: &Gvk,
        path: &str,
        scope: ReferenceScope<'_>,
        same: &dyn Fn(&Candidate, &Candidate) -> bool,
    ) -> Result<Option<&'a Candidate>, String> {
        let Some(named) = self.all.by_earlier_name.get(old_name) else { return Ok(None) };
        let role = self.role.as_ref().filter(|_| path.ends_with("roleRef/name"));
        let mut found: Vec<&'a Candidate> = named
            .iter()
            .filter(|at| self.reaches(**at))
            .map(|at| &self.all.list[*at])
            .filter(|c| {
                self.in_scope(c, scope) && c.had_kind(target) && role.is_none_or(|role| c.had_kind(role))
            })
            .filter(|c| self.shares_namespace(c))
            .collect();
        if found.len() == 1 {
            return Ok(found.pop());
        }
        found.retain(|candidate| affixes_fit(candidate, self.own, true));
        if found.len() > 1 {
            found.retain(|candidate| affixes_fit(candidate, self.own, false));
        }
        match found.as_slice() {
            [] => Ok(None),
            [first, rest @ ..] if rest.iter().all(|other| same(first, other)) => Ok(Some(first)),
            several => {
                let ids: Vec<String> = several.iter().map(|candidate| candidate.id()).collect();
                let position =
                    |one: &&Candidate| self.all.list.iter().position(|other| std::ptr::eq(*one, other));
                self.tied.replace(several.iter().filter_map(position).collect());
                Err(format!("found multiple possible referrals: {}", ids.join(", ")))
            }
        }
    }

    /// Namespaced objects refer to their own namespace, service accounts excepted.
    fn shares_namespace(&self, candidate: &Candidate) -> bool {
        self.own.cluster_scoped
            || candidate.cluster_scoped
            || candidate.gvk.kind == "ServiceAccount"
            || candidate.effective_namespace == self.own.effective_namespace
    }

    fn error(&self, node: &Node, path: &str, error: String, objects: &ResourceMap) -> Error {
        // `apply` names the field again; kustomize prints it twice as well.
        let id = format!(
            "{}/{}.{}",
            self.own.gvk,
            node.name(),
            match node.namespace() {
                "" => "[noNs]",
                namespace => namespace,
            }
        );
        let details = self.details(node, objects);
        Error::transform(format!("updating name reference in '{path}' field of '{id}': {error}{details}"))
            .located_at(Some(objects.list[self.at].location.clone()))
    }
}

impl Referrer<'_> {
    /// The objects between which there is nothing to choose, as kustomize shows them: with the annotations in
    /// which it keeps what became of them (but for the one that tells who refers to them).
    fn details(&self, node: &Node, objects: &ResourceMap) -> String {
        let tied = self.tied.borrow();
        if tied.is_empty() {
            return String::new();
        }
        let mut referrer = objects.list[self.at].clone();
        referrer.node = node.clone();
        let shown = |resource: &Resource| tiphys_yaml::to_yaml(&resource.json_with_state());
        let mut text =
            format!("\n\n**** Too many possible referral targets to referrer:\n{}\n", shown(&referrer));
        for (number, at) in tied.iter().enumerate() {
            text.push_str(&format!("--- possible referral {number}:\n{}\n", shown(&objects.list[*at])));
        }
        text
    }
}

impl Candidate {
    fn id(&self) -> String {
        let namespace = if self.namespace.is_empty() { "[noNs]" } else { &self.namespace };
        format!("{}/{}.{namespace}", self.gvk, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_choose_their_fields() {
        let config = crate::fields::TransformerConfig::defaults();
        let specs = specs_for(&Gvk::new("apps/v1", "Deployment"), &config.name_reference);
        let paths: Vec<&str> = specs.iter().map(|(_, spec)| spec.spec().path.as_str()).collect();
        assert!(paths.contains(&"spec/template/spec/volumes/configMap/name"));
        assert!(!paths.contains(&"spec/volumes/configMap/name"));
    }
}
