//! Why an image cannot be pulled, in the words of containerd, CRI-O, Docker and registries.

use crate::{
    Cause,
    pattern::{has_any, pattern},
};

/// A pull that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullFault {
    /// The mechanism; `None` if the words do not tell.
    pub cause: Option<Cause>,
    /// Whether the registry hides whether the image exists.
    pub is_ambiguous: bool,
    /// The status of HTTP that the registry answered.
    pub status: Option<u16>,
}

pattern!(
    STATUS,
    r"(?i)(?:status(?: code)?(?: from \w+ request)?:?|unexpected status)[^0-9]{0,60}\b(401|403|404|429|5\d\d)\b|\b(401|403|404|429|5\d\d) (?:Unauthorized|Forbidden|Not Found|Too Many Requests|Internal|Bad Gateway|Service Unavailable|Gateway)"
);

/// Mechanisms, the statuses of HTTP and the words in lower case that tell of them. The first row that fits
/// counts.
const WORDS: &[(Cause, &[u16], &[&str])] = &[
    (Cause::ImageRateLimited, &[429], &["toomanyrequests", "too many requests", "rate limit"]),
    (
        Cause::ImagePlatform,
        &[],
        &[
            "no match for platform",
            "no matching manifest",
            "exec format error",
            "does not match the specified platform",
            "no image found in image index for architecture",
            "no image found in manifest list for architecture",
        ],
    ),
    // Some runtimes start only what somebody they trust has signed.
    (
        Cause::AdmitPolicy,
        &[],
        &["signaturevalidationfailed", "signature was required", "signature validation failed"],
    ),
    // The layers are there, and the node has no room for them.
    (Cause::NodePressure, &[], &["no space left on device"]),
    // The registry gave the layers, and what the node keeps of images is broken.
    (
        Cause::NodeRuntime,
        &[],
        &[
            "failed to prepare extraction snapshot",
            "failed to extract layer",
            "failed to stat parent",
            "failed to create prepare snapshot dir",
            "failed to create temp dir",
        ],
    ),
    (
        Cause::ImageInvalid,
        &[],
        &[
            "invalid reference",
            "couldn't parse image",
            "failed to apply default image tag",
            "invalidimagename",
            "not present with pull policy of never",
            "errimageneverpull",
            "repository name must be lowercase",
            "short name mode is enforcing",
            "short-name resolution enforced",
            "unqualified-search registries",
            // Runtimes no longer read the oldest form of a manifest.
            "is no longer supported since containerd",
            "schema1 manifests is no longer supported",
            "docker image format v1",
            "unsupported manifest media type",
        ],
    ),
    (
        Cause::ImageNotFound,
        &[],
        &[
            "manifest unknown",
            "manifest_unknown",
            "name unknown",
            "name_unknown",
            "no such manifest",
            "requested image not known",
        ],
    ),
    (
        Cause::ImageRegistryUnreachable,
        &[500, 502, 503, 504],
        &[
            "no such host",
            "i/o timeout",
            "connection refused",
            "connection reset",
            "deadline exceeded",
            "timed out",
            "client.timeout",
            "request canceled",
            "tls handshake timeout",
            "x509",
            "no route to host",
            "network is unreachable",
            "proxyconnect",
            "server misbehaving",
            "temporary failure in name",
            ": try again",
            ": eof",
            "server gave http response to https client",
            "tls: ",
        ],
    ),
    // Credentials that were valid once are none.
    (
        Cause::ImageUnauthorized,
        &[],
        &[
            "token has expired",
            "token is expired",
            "token expired",
            "reauthenticate",
            "credentials have expired",
        ],
    ),
    // A registry that hides what is private answers the same for what does not exist.
    (Cause::ImageUnauthorized, &[], HIDDEN),
    (
        Cause::ImageForbidden,
        &[403],
        &[
            "403 forbidden",
            "insufficient_scope",
            "not authorized to perform: ecr",
            "permission \"artifactregistry",
            "permission 'artifactregistry",
            "denied: permission",
        ],
    ),
    (
        Cause::ImageUnauthorized,
        &[401],
        &[
            "unauthorized",
            "no basic auth",
            "authentication required",
            "failed to fetch anonymous token",
            "failed to authorize",
            "authorization failed",
            "no valid credentials",
            "incorrect username or password",
            "invalid username/password",
            "unable to retrieve auth token",
            "denied:",
            "requested access to the resource is denied",
        ],
    ),
    (Cause::ImageNotFound, &[404], &["not found", "does not exist"]),
];
/// Words of registries that do not tell whether the image exists.
const HIDDEN: &[&str] = &["pull access denied", "repository does not exist or may require"];

/// Reads the message of a waiting container or of the Event `Failed`.
#[must_use]
pub fn pull_fault(message: &str) -> PullFault {
    let low = message.to_ascii_lowercase();
    let captured = STATUS.captures(message);
    let status = captured.and_then(|it| it.iter().skip(1).flatten().next()?.as_str().parse().ok());
    let fits = |(_, statuses, words): &&(Cause, &[u16], &[&str])| {
        status.is_some_and(|status| statuses.contains(&status)) || has_any(&low, words)
    };
    let cause = WORDS.iter().find(fits).map(|(cause, ..)| *cause);
    PullFault { cause, is_ambiguous: has_any(&low, HIDDEN), status }
}

/// The registry, the repository and the tag or digest of an image reference.
#[must_use]
pub fn image_parts(image: &str) -> (String, String, String) {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    let (registry, repository) = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest.to_owned()),
        Some(_) => ("docker.io", name.to_owned()),
        None => ("docker.io", format!("library/{name}")),
    };
    (registry.to_owned(), repository, digest.or(tag).unwrap_or("latest").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_runtimes_and_registries() {
        for (words, cause) in [
            (
                "failed to resolve reference \"ghcr.io/a/b:1\": failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://ghcr.io/token: 401 Unauthorized",
                Cause::ImageUnauthorized,
            ),
            (
                "failed to pull and unpack image: failed to resolve reference: ghcr.io/a/b:1: not found",
                Cause::ImageNotFound,
            ),
            ("rpc error: code = NotFound desc = manifest unknown: manifest unknown", Cause::ImageNotFound),
            (
                "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
                Cause::ImageUnauthorized,
            ),
            (
                "unexpected status from HEAD request to https://r.example.org/v2/a/manifests/1: 403 Forbidden",
                Cause::ImageForbidden,
            ),
            (
                "unexpected status from HEAD request to https://r.example.org/v2/a/manifests/1: 403 Forbidden: denied: Your authorization token has expired",
                Cause::ImageUnauthorized,
            ),
            ("dial tcp: lookup r.example.org on 10.0.0.2:53: no such host", Cause::ImageRegistryUnreachable),
            (
                "choosing image instance: no image found in manifest list for architecture \"arm64\"",
                Cause::ImagePlatform,
            ),
            (
                "Get \"https://r.example.org/v2/\": net/http: request canceled while waiting for connection",
                Cause::ImageRegistryUnreachable,
            ),
            ("toomanyrequests: You have reached your pull rate limit", Cause::ImageRateLimited),
            ("no match for platform in manifest: not found", Cause::ImagePlatform),
            ("couldn't parse image name \"Web:1\": invalid reference format", Cause::ImageInvalid),
            ("Source image rejected: A signature was required, but none exists", Cause::AdmitPolicy),
            ("short name mode is enforcing, but image name a/b:1 is ambiguous", Cause::ImageInvalid),
        ] {
            assert_eq!(pull_fault(words).cause, Some(cause), "{words}");
        }
        assert_eq!(pull_fault("Back-off pulling image \"x\"").cause, None);
    }

    #[test]
    fn parts_of_references() {
        assert_eq!(image_parts("nginx"), ("docker.io".into(), "library/nginx".into(), "latest".into()));
        assert_eq!(image_parts("r.io:5000/a/b:2"), ("r.io:5000".into(), "a/b".into(), "2".into()));
    }
}
