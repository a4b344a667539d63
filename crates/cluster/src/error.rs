//! Why a request to a cluster failed.

use tiphys_diag::chain;
use tiphys_identity::IdentityError;
use tiphys_value::GroupVersionKind;

/// Why a request failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The API server answered with a failure.
    #[error("{message}")]
    Api {
        /// HTTP status code.
        code: u16,
        /// Reason for machines, such as `NotFound`.
        reason: String,
        /// Message for people.
        message: String,
    },
    /// No kind of that name is served.
    #[error(
        "the cluster has no kind {} in {}: its CustomResourceDefinition is not installed",
        .0.kind,
        .0.api_version()
    )]
    UnknownKind(GroupVersionKind),
    /// The request would change something, and nothing may be changed.
    #[error("nothing is written here: {0} was not sent")]
    ReadOnly(String),
    /// The request would change something, and somebody else may do so now.
    #[error("nothing more is written here: another replica has taken over")]
    LeaveEnded,
    /// There is no way to the cluster: the kubeconfig or the service account cannot be used.
    #[error("cannot use the cluster's configuration: {0}")]
    Config(String),
    /// The API server cannot be reached or does not speak its protocol.
    #[error("cannot reach the cluster: {0}")]
    Transport(String),
    /// The API server answered with success and with something that is no answer to the request, or with an
    /// object that is nested too deep.
    #[error("cannot read the cluster's answer: {0}")]
    Answer(String),
    /// The answer was longer than is read.
    #[error("the cluster's answer is longer than {bytes} bytes")]
    TooLong {
        /// How many bytes were to be read at most.
        bytes: usize,
    },
}

impl ClusterError {
    /// Whether the object or resource is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { code: 404, .. })
    }

    /// Whether whoever asks has no right to.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Api { code: 403, .. })
    }

    /// Whether the object changed meanwhile, or exists already.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { code: 409, .. })
    }

    /// Whether the resource version asked for is too old.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Api { code: 410, .. })
    }

    /// Whether what was sent is larger than the API server, its store, or all annotations of an object may
    /// be.
    pub fn is_too_large(&self) -> bool {
        const WORDS: [&str; 3] =
            ["request is too large", "message larger than max", "metadata.annotations: Too long"];
        match self {
            Self::Api { code, message, .. } => {
                *code == 413 || WORDS.iter().any(|words| message.contains(words))
            }
            _ => false,
        }
    }

    /// Whether trying again later, with nothing changed, may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Api { code, .. } => matches!(code, 401 | 429 | 500 | 502 | 503 | 504),
            Self::UnknownKind(_)
            | Self::Config(_)
            | Self::ReadOnly(_)
            | Self::LeaveEnded
            | Self::Answer(_)
            | Self::TooLong { .. } => false,
            Self::Transport(_) => true,
        }
    }
}

impl From<kube::Error> for ClusterError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => (*status).into(),
            kube::Error::Service(inner) if inner.is::<IdentityError>() => {
                Self::Transport(format!("there is no token for it: {inner}"))
            }
            other => Self::Transport(chain(&other)),
        }
    }
}

impl From<kube::core::Status> for ClusterError {
    fn from(status: kube::core::Status) -> Self {
        Self::Api { code: status.code, reason: status.reason, message: status.message }
    }
}

#[cfg(test)]
mod tests {
    use super::ClusterError;

    #[test]
    fn what_is_too_large_is_told_from_what_may_pass() {
        let error = |code, message: &str| {
            let message = message.to_owned();
            ClusterError::Api { code, reason: String::new(), message }.is_too_large()
        };
        for (code, message) in [
            (413, "Request entity too large: limit is 3145728"),
            (500, "etcdserver: request is too large"),
            (
                500,
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2 vs. 1)",
            ),
            (
                422,
                "Application.argoproj.io \"a\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes",
            ),
        ] {
            assert!(error(code, message), "{message}");
        }
        assert!(!error(500, "etcdserver: request timed out") && !error(409, "the object has been modified"));
    }
}
