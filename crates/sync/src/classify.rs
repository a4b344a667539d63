//! What a failed request means: will it pass by itself, must something else be repaired first, or will
//! it fail again until the manifests change?

use crate::Failure;

/// The meaning of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The way to the API server, its load, or a token that has run out: repeat soon.
    Transient,
    /// Another object stands in the way: repeat until it is repaired, however long that takes.
    Blocked(Blocker),
    /// The request itself is at fault.
    Permanent,
}

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// An admission or conversion webhook that does not answer.
    Webhook,
    /// The kind is not served: its CustomResourceDefinition is missing or not established.
    MissingKind,
    /// The namespace is missing.
    MissingNamespace,
    /// The namespace is being deleted.
    TerminatingNamespace,
    /// A quota is used up.
    Quota,
}

/// Classifies a failure by status code, reason and the texts of the API server.
pub fn classify(failure: &Failure) -> ErrorClass {
    use Blocker::{MissingKind, MissingNamespace, Quota, TerminatingNamespace, Webhook};
    let text = failure.message.as_str();
    let has = |part: &str| text.contains(part);
    if has("failed calling webhook") || has("conversion webhook") && has("failed") {
        return ErrorClass::Blocked(Webhook);
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
        return ErrorClass::Blocked(MissingNamespace);
    }
    match failure.code {
        None | Some(401 | 408 | 409 | 429 | 500 | 502 | 503 | 504) if !has("AlreadyExists") => {
            ErrorClass::Transient
        }
        _ => ErrorClass::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_api_server_are_told_apart() {
        let rows = [
            (
                Some(500),
                "Internal error occurred: failed calling webhook \"m.k8s.aws\": failed to call webhook: Post \"https://x\": dial tcp: connect: connection refused",
                ErrorClass::Blocked(Blocker::Webhook),
            ),
            (Some(403), "pods \"a\" is forbidden: exceeded quota: q", ErrorClass::Blocked(Blocker::Quota)),
            (Some(404), "namespaces \"shop\" not found", ErrorClass::Blocked(Blocker::MissingNamespace)),
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
            (Some(403), "User \"u\" cannot patch resource", ErrorClass::Permanent),
            (Some(401), "Unauthorized", ErrorClass::Transient),
            (Some(429), "too many requests", ErrorClass::Transient),
            (None, "connection reset by peer", ErrorClass::Transient),
        ];
        for (code, message, expected) in rows {
            let failure = Failure { code, reason: String::new(), message: message.into() };
            assert_eq!(classify(&failure), expected, "{message}");
        }
    }
}
