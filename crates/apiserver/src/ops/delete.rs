//! Deleting: at once, or by marking what finalizers or a grace period hold.

use std::sync::Arc;

use jiff::SignedDuration;
use tiphys_schema::{FieldError, Path};
use tiphys_value::{ObjectExt, Value};

use super::{
    At, Call, ListOptions,
    commit::{Failed, commit},
    definitions,
};
use crate::{ApiError, ApiResult, ApiServer, Object, admission, meta, rfc3339_seconds, store::Expect};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// How often a deletion is tried again after losing a race.
const RETRIES: usize = 5;

/// What happens to the objects that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// How to delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// What happens to dependents; the kind's default (background) if not given.
    pub propagation: Option<Propagation>,
    /// Seconds that a pod gets to end; its own setting if not given.
    pub grace_period_seconds: Option<i64>,
    /// Delete only the object with this uid.
    pub uid: Option<String>,
    /// Delete only this version.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Reads a `DeleteOptions` body.
    pub(crate) fn from_value(body: &Value) -> ApiResult<Self> {
        let orphans = body.get("orphanDependents").is_some_and(Value::is_boolean);
        if let Some(policy) = body.str_at(&["propagationPolicy"]).filter(|_| orphans) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            let fault = FieldError::invalid(&Path::new("propagationPolicy"), policy, detail);
            return Err(ApiError::invalid_options("DeleteOptions", fault));
        }
        let propagation = match body.str_at(&["propagationPolicy"]) {
            None => match body.get("orphanDependents") {
                Some(Value::Bool(true)) => Some(Propagation::Orphan),
                Some(Value::Bool(false)) => Some(Propagation::Background),
                _ => None,
            },
            Some(text) => Some(Propagation::parse(text)?),
        };
        Ok(Self {
            propagation,
            grace_period_seconds: body.int_at(&["gracePeriodSeconds"]),
            uid: body.str_at(&["preconditions", "uid"]).map(str::to_owned),
            resource_version: body.str_at(&["preconditions", "resourceVersion"]).map(str::to_owned),
        })
    }
}

/// Brings the body of a deletion into its form.
///
/// # Errors
/// It is none, or has values of wrong types.
pub(crate) fn check_delete_options(body: &mut Value) -> ApiResult<()> {
    let what = match body {
        Value::Object(_) => None,
        Value::Array(_) => Some("array"),
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("bool"),
        Value::Number(_) => Some("number"),
        Value::Null => return Ok(()),
    };
    if let Some(what) = what {
        let detail = format!(
            "json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        );
        return Err(ApiError::bad_request(format!("couldn't get version/kind; json parse error: {detail}")));
    }
    let (kind, version) = (body.kind().to_owned(), body.api_version().to_owned());
    if !kind.is_empty() && kind != "DeleteOptions" {
        let (kind, version) = (tiphys_schema::quote(&kind), tiphys_schema::quote(&version));
        return Err(ApiError::bad_request(format!(
            "no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    let catalog = tiphys_schema::Catalog::latest();
    if let Some(ty) = catalog.reference("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions") {
        let ty = tiphys_schema::TypeRef::new(catalog, &ty);
        tiphys_schema::decode(ty, body).map_err(|error| ApiError::bad_request(error.to_string()))?;
    }
    if body["dryRun"].as_array().is_some_and(|values| values.iter().any(|value| value != "All")) {
        let fault = FieldError::not_supported(&Path::new("dryRun"), body["dryRun"].clone(), &["All"]);
        return Err(ApiError::invalid_options("DeleteOptions", fault));
    }
    Ok(())
}

impl Propagation {
    /// Reads `Background`, `Foreground` or `Orphan`.
    pub(crate) fn parse(text: &str) -> ApiResult<Self> {
        match text {
            "Background" => Ok(Self::Background),
            "Foreground" => Ok(Self::Foreground),
            "Orphan" => Ok(Self::Orphan),
            other => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                let fault = FieldError::not_supported(&Path::new("propagationPolicy"), other, &supported);
                Err(ApiError::invalid_options("DeleteOptions", fault))
            }
        }
    }
}

/// What a deletion came to.
pub(crate) struct Outcome {
    /// Last state of the object.
    pub object: Arc<Object>,
    /// Whether it is gone already.
    pub gone: bool,
}

pub(crate) fn delete(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    options: &DeleteOptions,
) -> ApiResult<Outcome> {
    if !at.resource.has_verb("delete") {
        return Err(ApiError::method_not_supported(at.resource.object_named(""), "delete"));
    }
    for _ in 0..RETRIES {
        let current = server
            .snapshot()
            .get(&at.resource.id, &at.namespace, &at.name)
            .cloned()
            .ok_or_else(|| at.not_found())?;
        let current = super::converted(server, &at.resource, current)?;
        check_preconditions(at, &current, options)?;
        protect(at)?;
        admission::admit_delete(server, call, at, &current)?;
        match delete_once(server, call, at, options, &current) {
            Err(Failed::Changed) if options.resource_version.is_none() => {}
            Err(error) => return Err(error.into_error()),
            Ok(outcome) => {
                if outcome.gone && !call.dry_run {
                    definitions::after_removal(server, at);
                }
                return Ok(outcome);
            }
        }
    }
    Err(ApiError::modified(at.resource.object_named(&at.name)))
}

fn protect(at: &At) -> ApiResult<()> {
    match (at.resource.kind.undeletable)(&at.name) {
        Some(why) => Err(ApiError::forbidden(at.resource.object_named(&at.name), why)),
        None => Ok(()),
    }
}

fn check_preconditions(at: &At, current: &Object, options: &DeleteOptions) -> ApiResult<()> {
    let kind = at.error_kind();
    let named = crate::Named { group: &kind.group, resource: &kind.kind, name: &at.name };
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != current.uid()) {
        // These look before the store does.
        if at.resource.kind.holds_objects {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                current.uid()
            );
            return Err(ApiError::conflict(at.resource.object_named(&at.name), &why));
        }
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            current.uid()
        );
        return Err(ApiError::conflict(named, &why));
    }
    let current_version = current.resource_version();
    if let Some(version) = options.resource_version.as_deref().filter(|v| *v != current_version) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({current_version}). The object might have been modified"
        );
        return Err(ApiError::conflict(named, &why));
    }
    Ok(())
}

fn delete_once(
    server: &ApiServer,
    call: &Call,
    at: &At,
    options: &DeleteOptions,
    current: &Arc<Object>,
) -> Result<Outcome, Failed> {
    let mut next = current.value().clone();
    let propagation = options.propagation.or_else(|| default_propagation(at));
    let wanted = wanted_finalizers(current, propagation);
    let finalizers: Vec<&str> = wanted.iter().map(String::as_str).collect();
    meta::set_finalizers(&mut next, &finalizers);
    if !current.is_terminating() {
        definitions::mark_definition(server, at, &mut next);
    }
    let grace = grace_period(at, current, options);
    mark(server, &mut next, grace);
    let kind = at.resource.kind;
    (kind.on_delete)(&mut next);
    if kind.holds_objects {
        meta::set(&mut next, "deletionGracePeriodSeconds", "");
    }
    let gone = at.may_go(&next);
    if !gone && meta::is_same_essence(&next, current) {
        return Ok(Outcome { object: Arc::clone(current), gone: false });
    }
    // What goes at once was never terminating: its last state is the one it had. Pods are told first.
    let is_marked = current.is_terminating() || kind.is_marked_before_gone || !gone;
    if call.dry_run {
        let last = if is_marked { next } else { current.value().clone() };
        return Ok(Outcome { object: Arc::new(Object::unstored(last)), gone });
    }
    if gone {
        let last = if is_marked { next } else { current.value().clone() };
        let object = commit(server, at, Expect::Revision(current.revision()), last, true)?;
        return Ok(Outcome { object, gone });
    }
    let object = commit(server, at, Expect::Revision(current.revision()), next, false)?;
    Ok(Outcome { object, gone })
}

fn mark(server: &ApiServer, object: &mut Value, grace: i64) {
    let metadata_grace = object.int_at(&["metadata", "deletionGracePeriodSeconds"]);
    let metadata_time = object.at(&["metadata", "deletionTimestamp"]).is_some();
    let shorter = metadata_grace.is_none_or(|old| grace < old);
    let metadata = meta::metadata_mut(object);
    if metadata_time && !shorter {
        return;
    }
    if !metadata_time {
        let generation = metadata.get("generation").and_then(Value::as_i64);
        if let Some(generation) = generation.filter(|g| *g > 0) {
            metadata.insert("generation".into(), (generation + 1).into());
        }
    }
    let at = server.now().checked_add(SignedDuration::from_secs(grace)).unwrap_or(server.now());
    metadata.insert("deletionTimestamp".into(), rfc3339_seconds(at).into());
    metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
}

/// How long an object gets to end, in seconds. A request may ask for less or more, where it gets any.
fn grace_period(at: &At, object: &Value, options: &DeleteOptions) -> i64 {
    match (at.resource.kind.grace)(object) {
        None => 0,
        Some(own) => options.grace_period_seconds.unwrap_or(own).max(0),
    }
}

/// What becomes of dependents if nobody says it.
fn default_propagation(at: &At) -> Option<Propagation> {
    at.resource.kind.orphans_dependents.then_some(Propagation::Orphan)
}

fn wanted_finalizers(object: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let mut list: Vec<String> = meta::finalizers(object).into_iter().map(str::to_owned).collect();
    let (foreground, orphan) = match propagation {
        Some(Propagation::Foreground) => (true, false),
        Some(Propagation::Orphan) => (false, true),
        Some(Propagation::Background) => (false, false),
        None => return list,
    };
    for (name, wanted) in [(FOREGROUND, foreground), (ORPHAN, orphan)] {
        list.retain(|f| f != name);
        if wanted {
            list.push(name.to_owned());
        }
    }
    list
}

/// Deletes everything that a list selects; returns what it selected.
pub(crate) fn delete_collection(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    selection: &ListOptions,
    options: &DeleteOptions,
) -> ApiResult<Vec<Arc<Object>>> {
    if !at.resource.has_verb("deletecollection") {
        return Err(ApiError::method_not_supported(at.resource.object_named(""), "deletecollection"));
    }
    let page = super::list(server, at, selection)?;
    for object in &page.items {
        let one =
            At { namespace: object.namespace().to_owned(), name: object.name().to_owned(), ..at.clone() };
        match delete(server, call, &one, options) {
            Err(error) if error.is_not_found() => {}
            other => drop(other?),
        }
    }
    Ok(page.items)
}
