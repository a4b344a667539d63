//! What registries answer.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tiphys_apiserver::Object;
use tiphys_value::ObjectExt;

use super::{Cause, Pattern, Span};
use crate::{Key, View, object::resources};

/// What becomes of pulling some images.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageRule {
    /// Images, as pods write them or with host and tag in full.
    pub image: Pattern,
    /// What the registry answers.
    #[serde(default)]
    pub pull: Pull,
    /// How long it takes; the usual time if not given.
    #[serde(default)]
    pub takes: Option<Span>,
}

/// What a registry answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pull {
    /// The image.
    #[default]
    Works,
    /// The image to whoever has a pull secret for this registry; 401 to others.
    NeedsSecret,
    /// The image to whoever names a pull secret, whatever is in it; 401 to others.
    NamesSecret,
    /// The image to whoever names a pull secret that is there, whatever is in it; 401 to others.
    HoldsSecret,
    /// 401, whatever the credentials.
    Unauthorized,
    /// 403: the credentials do not suffice.
    Forbidden,
    /// No such image.
    NotFound,
    /// 429: too many pulls by whoever has no account, or by this one.
    RateLimited,
    /// Nothing.
    Timeout,
}

impl ImageRule {
    /// A rule that takes the usual time.
    pub fn new(image: &str, pull: Pull) -> Self {
        Self { image: image.into(), pull, takes: None }
    }

    /// Whether the rule is about an image.
    pub fn is_about(&self, image: &str) -> bool {
        self.image.matches(image) || self.image.matches(&full_name(image))
    }

    /// Why a pod cannot have an image.
    pub fn refusal(&self, image: &str, pod: &Value, view: &View<'_>) -> Option<Cause> {
        let image = image.to_owned();
        match self.pull {
            Pull::Works => None,
            Pull::NeedsSecret if has_credentials(pod, split(&image).0, view) => None,
            Pull::NamesSecret if names_secret(pod) => None,
            Pull::HoldsSecret if pull_secrets(pod, view).next().is_some() => None,
            Pull::NeedsSecret | Pull::NamesSecret | Pull::HoldsSecret | Pull::Unauthorized => {
                Some(Cause::Unauthorized { image })
            }
            Pull::Forbidden => Some(Cause::Forbidden { image }),
            Pull::NotFound => Some(Cause::ImageNotFound { image }),
            Pull::RateLimited => Some(Cause::RateLimited { image }),
            Pull::Timeout => Some(Cause::RegistryTimeout { image }),
        }
    }
}

/// Host, repository and tag (or digest) of an image, with the defaults of the container runtime.
pub(super) fn split(image: &str) -> (&str, String, &str) {
    let (host, rest) = match image.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest),
        _ => ("docker.io", image),
    };
    let (repository, tag) = match rest.split_once('@') {
        Some((repository, digest)) => (repository, digest),
        None => rest.rsplit_once(':').unwrap_or((rest, "latest")),
    };
    let is_short = host == "docker.io" && !repository.contains('/');
    let repository = if is_short { format!("library/{repository}") } else { repository.to_owned() };
    (host, repository, tag)
}

/// What is wrong with how an image is written; `None` for a reference that container runtimes can read
/// (distribution/reference: a host, lower-case steps, a tag of at most 128 characters, a digest).
pub(crate) fn reference_fault(image: &str) -> Option<String> {
    const INVALID: &str = "invalid reference format";
    let is_word = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
    };
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let is_digest = |digest: &str| {
        let is_hex = |hex: &str| hex.len() >= 32 && hex.chars().all(|c| c.is_ascii_hexdigit());
        digest.split_once(':').is_some_and(|(method, hex)| is_word(method) && is_hex(hex))
    };
    let last = name.rfind('/').map_or(0, |at| at + 1);
    let (path, tag) = match name[last..].split_once(':') {
        Some((step, tag)) => (&name[..last + step.len()], Some(tag)),
        None => (name, None),
    };
    let is_tag = |tag: &str| tag.len() <= 128 && is_word(tag) && !tag.starts_with(['.', '-']);
    if digest.is_some_and(|it| !is_digest(it)) || tag.is_some_and(|it| !is_tag(it)) {
        return Some(INVALID.to_owned());
    }
    let path = match path.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => rest,
        _ => path,
    };
    let is_step =
        |step: &str| is_word(step) && !step.starts_with(['.', '-', '_']) && !step.ends_with(['.', '-', '_']);
    if !path.split('/').all(is_step) {
        return Some(INVALID.to_owned());
    }
    let has_capitals = path.chars().any(|c| c.is_ascii_uppercase());
    has_capitals.then(|| {
        let name = if path.contains('/') { path.to_owned() } else { format!("library/{path}") };
        format!("{INVALID}: repository name ({name}) must be lowercase")
    })
}

/// The registry that an image comes from.
pub fn host(image: &str) -> &str {
    split(image).0
}

/// An image with host and tag in full.
pub(crate) fn full_name(image: &str) -> String {
    let (host, repository, tag) = split(image);
    let separator = if tag.contains(':') { '@' } else { ':' };
    format!("{host}/{repository}{separator}{tag}")
}

fn names_secret(pod: &Value) -> bool {
    pod.at(&["spec", "imagePullSecrets"]).and_then(Value::as_array).is_some_and(|secrets| !secrets.is_empty())
}

/// The pull secrets of a pod that are there.
fn pull_secrets<'a>(pod: &'a Value, view: &'a View<'_>) -> impl Iterator<Item = Arc<Object>> + 'a {
    let secrets = pod.at(&["spec", "imagePullSecrets"]).and_then(Value::as_array);
    let names = secrets.into_iter().flatten().filter_map(|secret| secret.str_at(&["name"]));
    names.filter_map(|name| {
        view.get(&resources::secrets(), &Key { namespace: pod.namespace().to_owned(), name: name.to_owned() })
    })
}

/// Whether one of the pod's pull secrets has something for a host. What it is stays unread.
fn has_credentials(pod: &Value, host: &str, view: &View<'_>) -> bool {
    pull_secrets(pod, view).any(|secret| {
        let encoded = secret.str_at(&["data", ".dockerconfigjson"]).unwrap_or_default();
        let decoded = decoded_base64(encoded);
        let config: Value = serde_json::from_slice(&decoded).unwrap_or_default();
        let hosts = config.get("auths").and_then(Value::as_object);
        hosts.into_iter().flatten().any(|(key, _)| {
            let bare = key.trim_start_matches("https://").trim_start_matches("http://");
            bare.split('/').next() == Some(host) || (host == "docker.io" && bare.contains("docker.io"))
        })
    })
}

fn decoded_base64(text: &str) -> Vec<u8> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.decode(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_that_cannot_be_read() {
        for image in [
            "nginx",
            "r.example:5000/a/b:2",
            "localhost/a_b/c-d.e:v1.2-x",
            "a/b@sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        ] {
            assert_eq!(reference_fault(image), None, "{image}");
        }
        let invalid =
            ["nginx:1:2", "nginx:", "a//b", "a b", "{{ .Values.image }}", "a/b@sha256:00", "-a/b", ""];
        for image in invalid {
            assert_eq!(reference_fault(image).as_deref(), Some("invalid reference format"), "{image}");
        }
        let capitals = "invalid reference format: repository name (library/Nginx) must be lowercase";
        assert_eq!(reference_fault("Nginx:1").as_deref(), Some(capitals));
    }

    #[test]
    fn names_in_full() {
        for (image, full) in [
            ("nginx", "docker.io/library/nginx:latest"),
            ("team/app:1", "docker.io/team/app:1"),
            ("r.example:5000/a/b:2", "r.example:5000/a/b:2"),
            ("r.example/a@sha256:00", "r.example/a@sha256:00"),
        ] {
            assert_eq!(full_name(image), full);
        }
    }
}
