//! Why something does not happen.

use std::fmt;

/// Why a pod, a container or a custom resource does not get on: the fact itself, of which events,
/// statuses and exits are consequences.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The registry wants credentials and got none.
    Unauthorized {
        /// The image.
        image: String,
    },
    /// The registry knows the credentials and they do not suffice.
    Forbidden {
        /// The image.
        image: String,
    },
    /// The registry does not have the image.
    ImageNotFound {
        /// The image.
        image: String,
    },
    /// The registry refuses further pulls for a while.
    RateLimited {
        /// The image.
        image: String,
    },
    /// The registry does not answer.
    RegistryTimeout {
        /// The image.
        image: String,
    },
    /// An object that is needed does not exist.
    Missing {
        /// Its resource, in the singular and lower case.
        kind: String,
        /// Its name.
        name: String,
    },
    /// An object that is needed lacks a key.
    MissingKey {
        /// `ConfigMap` or `Secret`.
        kind: String,
        /// Namespace and name.
        name: String,
        /// The key.
        key: String,
    },
    /// A Service that is needed has nothing Ready behind it.
    NoEndpoints {
        /// Namespace and name.
        service: String,
    },
    /// An object that is needed is not Ready.
    NotReady {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// Packets are dropped on the way.
    Unreachable {
        /// What cannot be reached.
        target: String,
        /// The words of whoever tries.
        text: String,
    },
    /// The API server does not let the program do something.
    MayNot {
        /// The words of the API server.
        text: String,
    },
    /// The node's network does not work yet.
    NetworkNotReady,
    /// The program ends by itself.
    Exit {
        /// With this code.
        code: i32,
    },
}

/// In the words of the component that meets it.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unauthorized { image } => {
                let (host, repository, _) = super::image::split(image);
                let scope = repository.replace('/', "%2F");
                let url = format!("https://{host}/token?scope=repository%3A{scope}%3Apull&service={host}");
                let full = super::image::full_name(image);
                write!(
                    f,
                    "failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\": failed to \
                     authorize: failed to fetch anonymous token: unexpected status from GET request to {url}: 401 Unauthorized"
                )
            }
            Self::Forbidden { image } => {
                let (host, repository, tag) = super::image::split(image);
                let full = super::image::full_name(image);
                write!(
                    f,
                    "failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\": unexpected \
                     status from HEAD request to https://{host}/v2/{repository}/manifests/{tag}: 403 Forbidden"
                )
            }
            Self::ImageNotFound { image } => {
                let full = super::image::full_name(image);
                write!(
                    f,
                    "rpc error: code = NotFound desc = failed to pull and unpack image \"{full}\": failed to resolve \
                     reference \"{full}\": {full}: not found"
                )
            }
            Self::RateLimited { image } => {
                let (host, repository, tag) = super::image::split(image);
                let full = super::image::full_name(image);
                write!(
                    f,
                    "failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\": unexpected \
                     status from HEAD request to https://{host}/v2/{repository}/manifests/{tag}: 429 Too Many Requests"
                )
            }
            Self::RegistryTimeout { image } => {
                let (host, repository, tag) = super::image::split(image);
                let full = super::image::full_name(image);
                write!(
                    f,
                    "failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\": failed to do \
                     request: Head \"https://{host}/v2/{repository}/manifests/{tag}\": dial tcp: i/o timeout"
                )
            }
            Self::Missing { kind, name } => write!(f, "{kind} \"{name}\" not found"),
            Self::MissingKey { kind, name, key } => write!(f, "couldn't find key {key} in {kind} {name}"),
            Self::NoEndpoints { service } => write!(f, "no endpoints available for service \"{service}\""),
            Self::NotReady { kind, name } => write!(f, "{kind} \"{name}\" is not ready"),
            Self::Unreachable { text, .. } | Self::MayNot { text } => f.write_str(text),
            Self::NetworkNotReady => f.write_str(
                "network is not ready: container runtime network not ready: NetworkReady=false \
                 reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
            ),
            Self::Exit { code } => write!(f, "exit code {code}"),
        }
    }
}
