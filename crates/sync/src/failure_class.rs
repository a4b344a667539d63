//! What a failed request means: will it pass by itself, must something else be repaired first, or will
//! it fail again until the manifests change?

use serde::{Deserialize, Serialize};

use crate::Failure;

/// The meaning of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The API server could not be asked: the way to it, its load, a token that has run out. Says nothing of
    /// the request: repeat until it answers.
    Unanswered,
    /// An answer that may be another one next time: repeat soon.
    Transient,
    /// Whoever asks may not do that. Rules come with other objects, of this Application or of others, and
    /// authorizers see them a moment later: repeat a few times, then the attempt has failed, not the
    /// operation.
    Forbidden,
    /// Another object stands in the way: repeat until it is repaired, however long that takes.
    Blocked(Blocker),
    /// The request itself is at fault.
    Permanent,
}

/// What stands in the way. Names are empty where the API server does not tell them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Blocker {
    /// An admission or conversion webhook that does not answer.
    Webhook {
        /// Its name in its configuration; for a conversion, empty.
        name: String,
    },
    /// The kind is not served: its CustomResourceDefinition is missing.
    MissingKind,
    /// The kind is not served yet: its CustomResourceDefinition is not established.
    UnestablishedKind,
    /// The namespace is missing.
    MissingNamespace {
        /// The namespace.
        name: String,
    },
    /// The namespace is being deleted.
    TerminatingNamespace,
    /// The service account that a pod runs as is missing; that of a new namespace comes a moment after it.
    MissingServiceAccount,
    /// A quota is used up.
    Quota,
    /// No sync window is open.
    SyncWindow,
}

/// Classifies a failure by status code, reason and the texts of the API server.
pub fn classify(failure: &Failure) -> ErrorClass {
    use Blocker::{
        MissingKind, MissingNamespace, MissingServiceAccount, Quota, TerminatingNamespace, Webhook,
    };
    let text = failure.message.as_str();
    let has = |part: &str| text.contains(part);
    if has("failed calling webhook") || has("conversion webhook") && has("failed") {
        let name = quoted_after(text, "failed calling webhook ").unwrap_or_default().to_owned();
        return ErrorClass::Blocked(Webhook { name });
    }
    if has("exceeded quota") {
        return ErrorClass::Blocked(Quota);
    }
    if has("because it is being terminated") {
        return ErrorClass::Blocked(TerminatingNamespace);
    }
    if has("no matches for kind") || has("the server could not find the requested resource") {
        return ErrorClass::Blocked(MissingKind);
    }
    if failure.code == Some(404) && has("namespaces ") && has("not found") {
        let name = quoted_after(text, "namespaces ").unwrap_or_default().to_owned();
        return ErrorClass::Blocked(MissingNamespace { name });
    }
    if has("error looking up service account") {
        return ErrorClass::Blocked(MissingServiceAccount);
    }
    if failure.outdated {
        return ErrorClass::Transient;
    }
    // The server's fault by its code, the manifest's by what it says: a field that the schema lacks or has of
    // another type, an element twice, a text that is no base64.
    if has("failed to create typed patch object") || has("unable to convert unstructured object") {
        return ErrorClass::Permanent;
    }
    match failure.code {
        None | Some(401 | 408 | 429 | 502 | 503 | 504) => ErrorClass::Unanswered,
        Some(409 | 500) if !has("AlreadyExists") => ErrorClass::Transient,
        Some(403) if is_about_rules(text) => ErrorClass::Forbidden,
        _ => ErrorClass::Permanent,
    }
}

/// The name in quotation marks that follows some words.
fn quoted_after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(words)?;
    Some(rest.strip_prefix('"')?.split_once('"')?.0)
}

/// What a failure says, and where the API server refuses an update that it never takes, what does it instead.
pub(crate) fn explained(failure: &Failure) -> String {
    let text = &failure.message;
    let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let is_no_text = says(&["cannot unmarshal bool into", "cannot unmarshal number into"])
        && text.contains("of type string")
        || text.split_once("expected string, got &value.valueUnstructured{Value:").is_some_and(
            |(_, value)| {
                // A list or a map is no text in quotes either.
                value.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                    || ["true", "false"].iter().any(|word| value.starts_with(word))
            },
        );
    let hint = if failure.code == Some(422) && says(&IMMUTABLE) {
        REPLACE_HINT
    } else if is_no_text {
        QUOTE_HINT
    } else {
        ""
    };
    format!("{text}{hint}")
}

/// What the API server says of a change to what stays as it was made.
const IMMUTABLE: [&str; 3] = ["field is immutable", "is immutable after creation", "fields other than"];

const REPLACE_HINT: &str = ". What cannot be updated can be replaced: the annotation argocd.argoproj.io/sync-options: Replace=true,Force=true on the object, or `tiphys app sync --replace --force`, deletes it and creates it again";

const QUOTE_HINT: &str = ". YAML reads words such as yes, no, on, off, y and n as booleans, and digits as numbers: put the value in quotes";

/// Whether a refusal is the authorizer's, not an admission's: its texts name the verb and the resource, or
/// the permissions that are not held.
fn is_about_rules(text: &str) -> bool {
    text.contains(" cannot ") && text.contains(" resource ")
        || text.contains("attempting to grant RBAC permissions not currently held")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_updated_is_said_to_be_replaceable() {
        let failure = |code: u16, message: &str| Failure {
            code: Some(code),
            message: message.to_owned(),
            ..Failure::default()
        };
        let fixed =
            explained(&failure(422, "Deployment.apps \"a\" is invalid: spec.selector: field is immutable"));
        assert!(
            fixed.contains("field is immutable. What cannot be updated")
                && fixed.contains("Replace=true,Force=true"),
            "{fixed}"
        );
        assert_eq!(
            explained(&failure(422, "spec.replicas: Invalid value: -1")),
            "spec.replicas: Invalid value: -1"
        );
        let read = explained(&failure(
            400,
            "json: cannot unmarshal bool into Go struct field ConfigMap.data of type string",
        ));
        assert!(read.ends_with("put the value in quotes"), "{read}");
        let read =
            explained(&failure(500, ".data.a: expected string, got &value.valueUnstructured{Value:true}"));
        assert!(read.ends_with("put the value in quotes"), "{read}");
        let map =
            ".images[0]: expected string, got &value.valueUnstructured{Value:map[string]interface {}{}}";
        assert_eq!(explained(&failure(500, map)), map, "no quotes make a text of a map");
    }

    #[test]
    fn texts_of_the_api_server_are_told_apart() {
        let rows = [
            (
                Some(500),
                "Internal error occurred: failed calling webhook \"m.k8s.aws\": failed to call webhook: Post \"https://x\": dial tcp: connect: connection refused",
                ErrorClass::Blocked(Blocker::Webhook { name: "m.k8s.aws".into() }),
            ),
            (Some(403), "pods \"a\" is forbidden: exceeded quota: q", ErrorClass::Blocked(Blocker::Quota)),
            (
                Some(404),
                "namespaces \"shop\" not found",
                ErrorClass::Blocked(Blocker::MissingNamespace { name: "shop".into() }),
            ),
            (
                Some(403),
                "pods \"p\" is forbidden: error looking up service account shop/default: serviceaccount \"default\" not found",
                ErrorClass::Blocked(Blocker::MissingServiceAccount),
            ),
            (
                Some(403),
                "configmaps \"c\" is forbidden: unable to create new content in namespace n because it is being terminated",
                ErrorClass::Blocked(Blocker::TerminatingNamespace),
            ),
            (
                Some(404),
                "no matches for kind \"X\" in version \"e/v1\"",
                ErrorClass::Blocked(Blocker::MissingKind),
            ),
            (
                Some(422),
                "Deployment.apps \"a\" is invalid: spec.selector: field is immutable",
                ErrorClass::Permanent,
            ),
            (
                Some(403),
                "configmaps \"c\" is forbidden: User \"u\" cannot patch resource \"configmaps\" in API group \"\" in the namespace \"n\"",
                ErrorClass::Forbidden,
            ),
            (
                Some(403),
                "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"u\" (groups=[]) is attempting to grant RBAC permissions not currently held",
                ErrorClass::Forbidden,
            ),
            (
                Some(403),
                "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": privileged",
                ErrorClass::Permanent,
            ),
            (Some(500), "etcdserver: leader changed", ErrorClass::Transient),
            (
                Some(500),
                "failed to create typed patch object (app/w; example.com/v1, Kind=Widget): .spec.size: expected numeric (int or float), got string",
                ErrorClass::Permanent,
            ),
            (
                Some(500),
                "failed to create typed patch object (app/w; example.com/v1, Kind=Widget): .spec.colour: field not declared in schema",
                ErrorClass::Permanent,
            ),
            (
                Some(500),
                "failed to convert new object (app/s; /v1, Kind=Secret) to proper version: unable to convert unstructured object to /v1, Kind=Secret: error decoding from json: illegal base64 data at input byte 3",
                ErrorClass::Permanent,
            ),
            (Some(401), "Unauthorized", ErrorClass::Unanswered),
            (Some(429), "too many requests", ErrorClass::Unanswered),
            (None, "connection reset by peer", ErrorClass::Unanswered),
        ];
        for (code, message, expected) in rows {
            let failure = Failure { code, message: message.into(), ..Failure::default() };
            assert_eq!(classify(&failure), expected, "{message}");
        }
        let outdated = Failure {
            code: Some(500),
            message: "failed to create typed patch object (app/w; example.com/v1, Kind=Widget): .spec.colour: field not declared in schema".into(),
            outdated: true,
            ..Failure::default()
        };
        assert_eq!(classify(&outdated), ErrorClass::Transient);
    }
}
