//! Validation of `metadata`, which is the same for every kind (apimachinery,
//! `validation.ValidateObjectMeta`).

use tiphys_schema::{ErrorList, FieldError, Path};
use tiphys_value::{ObjectExt, Value};

use super::At;
use crate::{kinds::NameRule, meta};

/// Most bytes of all annotations of an object, keys and values together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Faults of metadata that only the server sets.
pub(super) fn validate_fixed(object: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for key in ["uid", "deletionTimestamp"] {
        let given = object.str_at(&["metadata", key]).filter(|given| !given.is_empty());
        if let Some(given) = given.filter(|given| old.str_at(&["metadata", key]) != Some(given)) {
            let path = Path::new("metadata").child(key);
            errors.push(FieldError::invalid(&path, given, "field is immutable"));
        }
    }
    errors
}

/// Faults in the metadata of an object; `old` is the stored one on an update.
pub(super) fn validate(at: &At, object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.is_none() {
        validate_name(at, object, &mut errors);
    }
    validate_labels(object, &mut errors);
    validate_annotations(object, &mut errors);
    validate_owners(object, &mut errors);
    validate_finalizers(at, object, old, &mut errors);
    errors
}

fn validate_name(at: &At, object: &Value, errors: &mut ErrorList) {
    let path = Path::new("metadata.name");
    let name = object.name();
    if let Some(start) = object.str_at(&["metadata", "generateName"]).filter(|start| !start.is_empty()) {
        // A hyphen is what the made-up end is put after.
        let whole = match start.strip_suffix('-') {
            Some(rest) if !rest.is_empty() => format!("{rest}a"),
            _ => start.to_owned(),
        };
        for text in name_faults(at, &whole) {
            errors.push(FieldError::invalid(&Path::new("metadata.generateName"), start, text));
        }
    }
    if name.is_empty() {
        errors.push(FieldError::required(&path, "name or generateName is required"));
        return;
    }
    for text in name_faults(at, name) {
        errors.push(FieldError::invalid(&path, name, text));
    }
}

/// Groups that an aggregated API server of OpenShift serves, which takes any name that a path can hold: users
/// as they log in, tags as `image:tag`. Definitions of them stand in for it.
const FREELY_NAMED: [&str; 3] = ["user.openshift.io", "image.openshift.io", "oauth.openshift.io"];

fn name_faults(at: &At, name: &str) -> Vec<String> {
    if at.resource.custom.is_some() && FREELY_NAMED.contains(&at.resource.group()) {
        return path_segment_faults(name);
    }
    match at.resource.kind.name {
        NameRule::Subdomain => subdomain_faults(name),
        NameRule::Label => label_faults(name),
        NameRule::PathSegment => path_segment_faults(name),
        NameRule::Address => address_faults(name),
    }
}

/// Faults of an IP address in its canonical form (`IsValidIP` of apimachinery).
fn address_faults(name: &str) -> Vec<String> {
    match name.parse::<std::net::IpAddr>() {
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
        Ok(address) if address.to_string() != name => {
            vec![format!("must be in canonical form (\"{address}\")")]
        }
        Ok(_) => Vec::new(),
    }
}

fn path_segment_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if matches!(name, "." | "..") {
        faults.push(format!("may not be '{name}'"));
    }
    for bad in ["/", "%"] {
        if name.contains(bad) {
            faults.push(format!("may not contain '{bad}'"));
        }
    }
    faults
}

/// Faults of a lowercase RFC 1123 subdomain.
pub(crate) fn subdomain_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 253 {
        faults.push("must be no more than 253 characters".to_owned());
    }
    if !name.split('.').all(is_dns_label) {
        faults.push(SUBDOMAIN.to_owned());
    }
    faults
}

fn label_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 63 {
        faults.push("must be no more than 63 characters".to_owned());
    }
    if !is_dns_label(name) {
        faults.push(LABEL_1123.to_owned());
    }
    faults
}

fn is_dns_label(text: &str) -> bool {
    let alnum = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            alnum(first) && alnum(last) && bytes.iter().all(|&b| alnum(b) || b == b'-')
        }
        _ => false,
    }
}

fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        }
        _ => false,
    }
}

/// Faults of a label or annotation key.
fn key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, rest)) if rest.contains('/') => {
            let text = QUALIFIED.replacen("name part", "a valid label key", 1);
            faults.push(format!(
                "{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            return faults;
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                faults.extend(
                    subdomain_faults(prefix)
                        .into_iter()
                        .map(|f| format!("prefix part {}", f.replace("253 characters", "253 bytes"))),
                );
            }
            name
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        faults.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_qualified_part(name) {
        faults.push(QUALIFIED.to_owned());
    }
    faults
}

fn validate_labels(object: &Value, errors: &mut ErrorList) {
    let path = Path::new("metadata.labels");
    let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        for fault in key_faults(key) {
            errors.push(FieldError::invalid(&path, key.as_str(), fault));
        }
        let value = value.as_str().unwrap_or_default();
        if value.len() > 63 {
            errors.push(FieldError::invalid(&path, value, "must be no more than 63 bytes"));
        }
        if !value.is_empty() && !is_qualified_part(value) {
            errors.push(FieldError::invalid(&path, value, LABEL_VALUE));
        }
    }
}

fn validate_annotations(object: &Value, errors: &mut ErrorList) {
    let path = Path::new("metadata.annotations");
    let annotations = object.at(&["metadata", "annotations"]).and_then(Value::as_object);
    let mut total = 0;
    for (key, value) in annotations.into_iter().flatten() {
        for fault in key_faults(&key.to_lowercase()) {
            errors.push(FieldError::invalid(&path, key.as_str(), fault));
        }
        total += key.len() + value.as_str().map_or(0, str::len);
    }
    if total > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long(&path, MAX_ANNOTATIONS));
    }
}

fn validate_owners(object: &Value, errors: &mut ErrorList) {
    let mut controller: Option<String> = None;
    for owner in super::items(object, "/metadata/ownerReferences") {
        let path = Path::new("metadata.ownerReferences");
        for key in ["apiVersion", "kind", "name", "uid"] {
            if owner.str_at(&[key]).unwrap_or_default().is_empty() {
                let detail =
                    if key == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                errors.push(FieldError::invalid(&path.child(key), "", detail));
            }
        }
        if owner["controller"] == true {
            let name = format!("{}/{}", owner.kind(), owner.str_at(&["name"]).unwrap_or_default());
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                errors.push(FieldError::invalid_as(&path, shown_owners(object), detail));
            }
            controller.get_or_insert(name);
        }
    }
}

/// The owners as messages show them: in the order of their fields.
fn shown_owners(object: &Value) -> String {
    let catalog = tiphys_schema::Catalog::latest();
    let meta = catalog.reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    let meta = meta.as_ref().map(|ty| tiphys_schema::TypeRef::new(catalog, ty));
    let ty = meta.and_then(|ty| ty.field("ownerReferences"));
    super::patch_text::format_patched(&object["metadata"]["ownerReferences"], None, ty)
}

fn validate_finalizers(at: &At, object: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let path = Path::new("metadata.finalizers");
    let finalizers = meta::finalizers(object);
    for finalizer in &finalizers {
        for fault in key_faults(finalizer) {
            errors.push(FieldError::invalid(&path, *finalizer, fault));
        }
    }
    let is_standard = |name: &str| matches!(name, "kubernetes" | "foregroundDeletion" | "orphan");
    // So ask the rules of most built-in kinds.
    if !at.resource.kind.has_free_finalizers {
        for (index, finalizer) in finalizers.iter().enumerate() {
            if !finalizer.contains('/') && !is_standard(finalizer) {
                let detail = "name is neither a standard finalizer name nor is it fully qualified";
                errors.push(FieldError::invalid(&path.index(index), *finalizer, detail));
            }
        }
    }
    let Some(old) = old.filter(|old| old.is_terminating()) else { return };
    let before = meta::finalizers(old);
    let new: Vec<String> =
        finalizers.iter().filter(|f| !before.contains(f)).map(|f| tiphys_schema::quote(f)).collect();
    if !new.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            new.join(", ")
        );
        errors.push(FieldError::forbidden(&path, detail));
    }
}
