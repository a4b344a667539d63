//! Tokens of the identities that clouds give to programs: what `argocd-k8s-auth` and the tools of the clouds
//! would be run for, without running a program.
//!
//! Everything here blocks: it is not for an async runtime's own threads.

mod aws;
mod azure;
mod exec;
mod google;
mod http;
mod jwt;
mod tokens;

use std::time::{Duration, SystemTime};

pub use aws::Aws;
pub use azure::{Azure, AzureLogin};
pub use exec::of_exec;
pub use google::Google;
pub use http::{client, form};
pub use jwt::signed_rs256;
pub use tokens::Tokens;

/// Why there is no token. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdentityError(pub String);

/// Who asks, as a cloud knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A role or user of AWS, towards a cluster of EKS.
    Aws(Aws),
    /// A service account or user of Google Cloud.
    Google(Google),
    /// An application or managed identity of Microsoft Entra ID.
    Azure(Azure),
}

/// What proves an identity for a time.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// What is sent.
    pub text: String,
    /// When it is no longer taken.
    pub expires: SystemTime,
}

impl Token {
    /// One that is good for so long from now on.
    pub fn good_for(text: &str, time: Duration) -> Self {
        Self { text: text.to_owned(), expires: SystemTime::now() + time }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl Identity {
    /// A new token. `client` speaks to the services that hand them out, but for those of AWS. Blocking.
    ///
    /// # Errors
    /// The identity is not given here, or its cloud refuses or cannot be reached.
    pub fn token(&self, client: &reqwest::blocking::Client) -> Result<Token, IdentityError> {
        let (cloud, token) = match self {
            Self::Aws(aws) => ("AWS", aws.token()),
            Self::Google(google) => ("Google Cloud", google.token(client)),
            Self::Azure(azure) => ("Azure", azure.token(client)),
        };
        token.map_err(|IdentityError(reason)| IdentityError(format!("{cloud}: {reason}")))
    }
}
