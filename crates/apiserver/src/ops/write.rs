//! Creating and changing objects: the same chain for every kind and verb.

use std::sync::Arc;

use tiphys_schema::{ErrorList, FieldError, FieldRule, Path};
use tiphys_value::{ObjectExt, Value};

use super::{
    At, Call, Patch,
    commit::{Failed, commit, refused_allocation},
    conversion_webhook,
    decode::{bind_to_url, decode_input},
    managed_fields, metadata,
    patch::read_patched,
    strategy, version_conversion, warnings,
};
use crate::{
    ApiError, ApiResult, ApiServer, Cause, Object,
    admission::{self, Operation},
    meta,
    store::{Expect, ResourceId},
};

/// How often a patch is tried again after losing a race.
pub(super) const PATCH_RETRIES: usize = 5;

/// Creates an object.
pub(crate) fn create(server: &ApiServer, call: &mut Call, at: &At, body: Value) -> ApiResult<Arc<Object>> {
    let object = decode_input(call, at, body, &[])?;
    create_decoded(server, call, at, object)
}

/// Creates an object that [`decode_input`] has read.
pub(crate) fn create_decoded(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    mut object: Value,
) -> ApiResult<Arc<Object>> {
    if !at.resource.has_verb("create") {
        return Err(ApiError::method_not_allowed());
    }
    bind_to_url(at, &mut object)?;
    // What is never stored needs no version of the store's own.
    if !object.resource_version().is_empty() && !call.dry_run {
        return Err(ApiError::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    let generated = generate_name(server, &mut object);
    let named = At { name: object.name().to_owned(), ..at.clone() };
    check_namespace(server, &named)?;
    version_conversion::to_storage(&at.resource, &mut object);
    let kind = at.resource.kind;
    (kind.count)(&mut object, None);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        meta::metadata_mut(&mut object).remove(field);
    }
    let is_shared = (kind.before_record)(&mut object);
    managed_fields::record(server, call, &named, None, &mut object);
    forget_empty(call, &named, &mut object);
    version_conversion::default_stored(&at.resource, &mut object);
    if is_shared {
        // They are those of the template, with what is yet added there.
        meta::metadata_mut(&mut object).remove("labels");
    }
    strategy::prepare_create(server, &at.resource, &mut object);
    (kind.on_request)(&mut object, &call.user);
    crate::auth::check_escalation(server, &call.user, &named, &object, None)?;
    let request = admission::Request { server, at: &named, operation: Operation::Create, old: None };
    admission::mutate(&request, call, &mut object)?;
    (kind.after_admission)(&mut object);
    check(&named, &object, None)?;
    admission::validate(&request, call, &object)?;
    call.warnings.extend(warnings::warnings_for(&named, &object, None));
    if call.dry_run {
        if let Some(present) = present(server, &named) {
            return Err(already_there(&named, &present));
        }
        server
            .snapshot()
            .try_allocate(&named.resource.id, &mut object)
            .map_err(|conflict| refused_allocation(&named, conflict))?;
        return Ok(Arc::new(Object::unstored(object)));
    }
    match commit(server, &named, Expect::Absent, object, false) {
        Err(Failed::Changed) => {
            let error = match present(server, &named) {
                Some(present) => already_there(&named, &present),
                None => ApiError::already_exists(at.resource.object_named(&named.name)),
            };
            Err(if generated { error.with_retry_after(1) } else { error })
        }
        other => other.map_err(Failed::into_error),
    }
}

/// Objects are created only in namespaces that are there and will stay.
pub(super) fn check_namespace(server: &ApiServer, at: &At) -> ApiResult<()> {
    if !at.resource.namespaced {
        return Ok(());
    }
    let snapshot = server.snapshot();
    let Some(namespace) = snapshot.get(&ResourceId::new("", "namespaces"), "", &at.namespace) else {
        return Err(ApiError::not_found(crate::Named {
            group: "",
            resource: "namespaces",
            name: &at.namespace,
        }));
    };
    if !namespace.is_terminating() {
        return Ok(());
    }
    let why =
        format!("unable to create new content in namespace {} because it is being terminated", at.namespace);
    let cause = Cause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {} is being terminated", at.namespace),
        field: "metadata.namespace".into(),
    };
    Err(ApiError::forbidden(at.resource.object_named(&at.name), &why).with_cause(cause))
}

/// What is stored does not say which lists were empty and which were not given; a dry run still shows that.
fn forget_empty(call: &Call, at: &At, object: &mut Value) {
    let ty = tiphys_schema::Catalog::latest().type_of(&object.gvk()).filter(|_| at.resource.custom.is_none());
    if let Some(ty) = ty.filter(|_| !call.dry_run) {
        tiphys_schema::forget_empty(ty, object);
    }
}

fn present(server: &ApiServer, at: &At) -> Option<Arc<Object>> {
    server.snapshot().get(&at.resource.id, &at.namespace, &at.name).cloned()
}

/// Why an object cannot be created beside one of its name.
fn already_there(at: &At, present: &Object) -> ApiError {
    let error = ApiError::already_exists(at.resource.object_named(&at.name));
    match present.is_terminating() {
        true => error.with_prefix("object is being deleted: "),
        false => error,
    }
}

fn generate_name(server: &ApiServer, object: &mut Value) -> bool {
    if object.kind() == "LimitRange" && object.api_version() == "v1" && object.name().is_empty() {
        meta::set(object, "name", &server.entropy().uuid());
        return true;
    }
    let prefix = object.str_at(&["metadata", "generateName"]).unwrap_or_default();
    if !object.name().is_empty() || prefix.is_empty() {
        return false;
    }
    let cut = prefix.char_indices().nth(58).map_or(prefix.len(), |(at, _)| at);
    let name = format!("{}{}", &prefix[..cut], server.entropy().suffix(5));
    meta::set(object, "name", &name);
    true
}

/// Replaces an object, or creates it where the kind allows that. Says whether it was created.
pub(crate) fn update(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    body: Value,
) -> ApiResult<(Arc<Object>, bool)> {
    let object = decode_input(call, at, body, &[])?;
    update_decoded(server, call, at, object)
}

/// Replaces an object by one that [`decode_input`] has read.
pub(crate) fn update_decoded(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    mut object: Value,
) -> ApiResult<(Arc<Object>, bool)> {
    bind_to_url(at, &mut object)?;
    let Some(current) = server.snapshot().get(&at.resource.id, &at.namespace, &at.name).cloned() else {
        if at.subresource.is_none() && at.resource.kind.is_created_by_update {
            check_uid(at, "", &object)?;
            meta::set(&mut object, "resourceVersion", "");
            return create_decoded(server, call, &At { name: String::new(), ..at.clone() }, object)
                .map(|o| (o, true));
        }
        return Err(at.not_found());
    };
    let current = conversion_webhook::seen_one(server, &at.resource, current)?;
    version_conversion::to_storage(&at.resource, &mut object);
    check_uid(at, current.uid(), &object)?;
    match replace(server, call, at, &current, object) {
        Err(Failed::Changed) => Err(ApiError::modified(at.resource.object_named(&at.name))),
        other => other.map(|o| (o, false)).map_err(Failed::into_error),
    }
}

/// Patches an object; server-side apply creates it if it is not there. Says whether it was created.
pub(crate) fn patch(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    patch: &Patch,
) -> ApiResult<(Arc<Object>, bool)> {
    super::patch::check_kind_of_patch(at, patch)?;
    for _ in 0..PATCH_RETRIES {
        let Some(current) = server.snapshot().get(&at.resource.id, &at.namespace, &at.name).cloned() else {
            if !patch.kind.is_apply() || at.subresource.is_some() {
                return Err(at.not_found());
            }
            let object = read_patched(server, call, (at, at), None, patch, None)?;
            if !object.uid().is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    object.uid()
                );
                return Err(ApiError::conflict(at.resource.object_named(&at.name), &why));
            }
            let at = At { name: String::new(), ..at.clone() };
            return create_decoded(server, call, &at, object).map(|o| (o, true));
        };
        let current = conversion_webhook::seen_one(server, &at.resource, current)?;
        let mut base = version_conversion::present(&at.resource, &current);
        version_conversion::forget_unknown(&at.resource, &mut base);
        let (whole, ty) = (whole(at), managed_fields::type_of(at, &at.resource.gvk));
        let mut inner = call.clone();
        let mut object = read_patched(server, &mut inner, (at, &whole), Some(&base), patch, ty)?;
        bind_to_url(&whole, &mut object)?;
        let own_version = patch.names_version();
        version_conversion::to_storage(&at.resource, &mut object);
        match replace(server, &mut inner, at, &current, object) {
            Err(Failed::Changed) if !own_version => {}
            Err(Failed::Changed) => break,
            other => {
                call.warnings = inner.warnings;
                return other.map(|o| (o, false)).map_err(Failed::into_error);
            }
        }
    }
    Err(ApiError::modified(at.resource.object_named(&at.name)))
}

/// The object that a patch of `status` is applied to is the whole object.
fn whole(at: &At) -> At {
    match at.subresource.as_deref().and_then(|name| at.resource.subresource(name)) {
        Some(sub) if sub.gvk == at.resource.gvk => At { subresource: None, ..at.clone() },
        _ => at.clone(),
    }
}

/// Puts `object` (in its storage version) in the place of `current`.
pub(super) fn replace(
    server: &ApiServer,
    call: &mut Call,
    at: &At,
    current: &Arc<Object>,
    mut object: Value,
) -> Result<Arc<Object>, Failed> {
    check_version(at, current, &object)?;
    let fixed = metadata::validate_fixed(&object, current);
    if !fixed.is_empty() {
        return Err(ApiError::invalid(&at.error_kind(), object.name(), &fixed).into());
    }
    (at.resource.kind.before_record)(&mut object);
    // What is put back of a pod has been taken from its owner all the same.
    let is_put_back = at.subresource.as_deref() == Some("ephemeralcontainers");
    if is_put_back {
        managed_fields::record(server, call, at, Some(current.value()), &mut object);
    }
    strategy::prepare_update(at, &mut object, current);
    if !is_put_back {
        managed_fields::record(server, call, at, Some(current.value()), &mut object);
    }
    forget_empty(call, at, &mut object);
    version_conversion::default_stored(&at.resource, &mut object);
    (at.resource.kind.count)(&mut object, Some(current));
    crate::auth::check_escalation(server, &call.user, at, &object, Some(current))?;
    let request = admission::Request { server, at, operation: Operation::Update, old: Some(current) };
    admission::mutate(&request, call, &mut object)?;
    check(at, &object, Some(current))?;
    admission::validate(&request, call, &object)?;
    call.warnings.extend(warnings::warnings_for(at, &object, Some(current.value())));
    let removed = current.is_terminating() && at.may_go(&object);
    if !removed
        && meta::is_same_essence(&object, current)
        && managed_fields::same_owners(&object, current)
        && !conversion_webhook::is_outdated(server, at)
    {
        return Ok(Arc::clone(current));
    }
    if call.dry_run {
        meta::copy(&mut object, current, "resourceVersion");
        return Ok(Arc::new(Object::unstored(object)));
    }
    commit(server, at, Expect::Revision(current.revision()), object, removed)
}

/// Under what a real server keeps objects of a kind, as its messages show.
fn storage_prefix(at: &At) -> String {
    match (&at.resource.custom, at.resource.kind.stored_as) {
        (Some(_), _) => format!("{}/{}", at.resource.group(), at.resource.plural),
        (None, Some(known)) => known.to_owned(),
        (None, None) => at.resource.plural.clone(),
    }
}

/// Refuses an object that is meant for another one of its name.
pub(super) fn check_uid(at: &At, current: &str, object: &Value) -> ApiResult<()> {
    let uid = object.uid();
    if !uid.is_empty() && uid != current {
        let key = format!("/registry/{}/{}", storage_prefix(at), at.key());
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {uid}, UID in object meta: {current}"
        );
        return Err(ApiError::conflict(at.resource.object_named(&at.name), &why));
    }
    Ok(())
}

fn check_version(at: &At, current: &Object, object: &Value) -> Result<(), Failed> {
    match object.resource_version() {
        "" | "0" if !at.resource.kind.is_updated_by_version => Ok(()),
        "" | "0" => {
            let path = Path::new("metadata.resourceVersion");
            let fault = FieldError::invalid(&path, 0, "must be specified for an update");
            // The message names the resource where others name the kind.
            let kind = tiphys_value::GroupKind::new(at.resource.group(), &at.resource.plural);
            Err(ApiError::invalid(&kind, &at.name, &ErrorList(vec![fault])).into())
        }
        version if version == current.resource_version() => Ok(()),
        version if version.parse::<u64>().is_err() => {
            let quoted = tiphys_schema::quote(version);
            let why = format!("strconv.ParseUint: parsing {quoted}: invalid syntax");
            Err(ApiError::new(500, "", why).into())
        }
        _ => Err(ApiError::modified(at.resource.object_named(&at.name)).into()),
    }
}

/// Validates what is about to be stored.
fn check(at: &At, object: &Value, old: Option<&Object>) -> ApiResult<()> {
    let old = old.map(Object::value);
    let errors = if at.is_event() {
        strategy::validate_event(at, object, old)
    } else {
        let mut errors = metadata::validate(at, object, old);
        let has_rules = at.resource.custom.as_ref().is_some_and(|custom| custom.rules.is_some());
        let prevented = has_rules && tiphys_schema::prevents_rules(&errors);
        errors.extend(strategy::validate(at, object, old));
        if prevented && !errors.iter().any(|error| error.rule == Some(FieldRule::UncheckedRules)) {
            errors.push(FieldError::unchecked_rules(&Path::new("<nil>")));
        }
        errors
    };
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&at.error_kind(), object.name(), &errors))
}
