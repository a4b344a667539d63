//! Applications and managed identities of Microsoft Entra ID (Microsoft identity platform documentation,
//! "OAuth 2.0 client credentials flow", "Workload identity federation", "How managed identities for Azure
//! resources work with Azure virtual machines").

use std::{fmt, path::PathBuf};

use reqwest::blocking::Client;

use crate::{
    IdentityError, Token,
    http::{ask, post_form, token_of},
};

/// Where an identity is proved if nothing else is said.
const AUTHORITY: &str = "https://login.microsoftonline.com";
/// The authorities of the clouds, by the names that `AAD_ENVIRONMENT_NAME` gives them.
const ENVIRONMENTS: [(&str, &str); 3] = [
    ("AzurePublicCloud", AUTHORITY),
    ("AzureUSGovernmentCloud", "https://login.microsoftonline.us"),
    ("AzureChinaCloud", "https://login.chinacloudapi.cn"),
];
/// Where a machine of Azure asks for the identity that it was given.
const MACHINE: &str = "http://169.254.169.254";
/// What asks for all that an application may do.
const ALL: &str = "/.default";
/// A signed token in place of a password (RFC 7523, section 2.2).
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Who asks, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Azure {
    /// How the identity is proved.
    pub login: AzureLogin,
    /// The tenant; empty for a managed identity.
    pub tenant: String,
    /// The client; empty for the one identity of a machine.
    pub client: String,
    /// The service that proves it, in place of the public cloud's or the machine's.
    pub authority: Option<String>,
    /// The application that the token is for.
    pub resource: String,
}

/// How an identity is proved.
#[derive(Clone, PartialEq, Eq)]
pub enum AzureLogin {
    /// By a secret of an application.
    Secret(String),
    /// By the token of a service account, which this file holds (workload identity).
    TokenFile(PathBuf),
    /// By being the machine that has it.
    Managed,
}

impl fmt::Debug for AzureLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(_) => f.write_str("Secret"),
            Self::TokenFile(path) => f.debug_tuple("TokenFile").field(path).finish(),
            Self::Managed => f.write_str("Managed"),
        }
    }
}

impl Azure {
    /// The identity that the environment of this process gives, as the SDKs look for it: a secret, a
    /// workload's token, the machine's (Azure SDK documentation, "DefaultAzureCredential").
    pub fn of_environment(resource: &str) -> Self {
        let given = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let login = match (given("AZURE_CLIENT_SECRET"), given("AZURE_FEDERATED_TOKEN_FILE")) {
            (Some(secret), _) => AzureLogin::Secret(secret),
            (None, Some(path)) => AzureLogin::TokenFile(path.into()),
            (None, None) => AzureLogin::Managed,
        };
        let authority = match login {
            AzureLogin::Managed => "AZURE_POD_IDENTITY_AUTHORITY_HOST",
            _ => "AZURE_AUTHORITY_HOST",
        };
        Self {
            login,
            tenant: given("AZURE_TENANT_ID").unwrap_or_default(),
            client: given("AZURE_CLIENT_ID").unwrap_or_default(),
            authority: given(authority),
            resource: resource.to_owned(),
        }
    }

    /// The authority of a cloud by its name (kubelogin documentation, "Environment Variables").
    pub(crate) fn authority_of(environment: &str) -> Option<&'static str> {
        let mut known = ENVIRONMENTS.iter();
        known.find(|(name, _)| name.eq_ignore_ascii_case(environment)).map(|(_, authority)| *authority)
    }

    pub(crate) fn token(&self, client: &Client) -> Result<Token, IdentityError> {
        let answer = match &self.login {
            AzureLogin::Managed => return self.of_machine(client),
            AzureLogin::Secret(secret) => self.prove(client, &[("client_secret", secret)])?,
            AzureLogin::TokenFile(path) => {
                let read = std::fs::read_to_string(path);
                let proof = read.map_err(|error| {
                    IdentityError(format!("the token of the workload, {}: {error}", path.display()))
                })?;
                let proof = proof.trim();
                self.prove(client, &[("client_assertion_type", ASSERTION), ("client_assertion", proof)])?
            }
        };
        token_of(&self.address()?, &answer)
    }

    fn prove(&self, client: &Client, proof: &[(&str, &str)]) -> Result<serde_json::Value, IdentityError> {
        let scope = format!("{}{ALL}", self.resource);
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("client_id", self.client.as_str()),
            ("scope", scope.as_str()),
        ];
        form.extend(proof);
        post_form(client, &self.address()?, &form)
    }

    fn address(&self) -> Result<String, IdentityError> {
        for (what, given) in [("tenant", &self.tenant), ("client", &self.client)] {
            if given.is_empty() {
                return Err(IdentityError(format!("it is not said which {what} asks")));
            }
        }
        let authority = self.authority.as_deref().unwrap_or(AUTHORITY).trim_end_matches('/');
        Ok(format!("{authority}/{}/oauth2/v2.0/token", self.tenant))
    }

    fn of_machine(&self, client: &Client) -> Result<Token, IdentityError> {
        let host = self.authority.as_deref().unwrap_or(MACHINE);
        let url = format!("{}/metadata/identity/oauth2/token", host.trim_end_matches('/'));
        let mut address =
            reqwest::Url::parse(&url).map_err(|error| IdentityError(format!("{host}: {error}")))?;
        let mut query = vec![("api-version", "2018-02-01"), ("resource", self.resource.as_str())];
        if !self.client.is_empty() {
            query.push(("client_id", &self.client));
        }
        address.query_pairs_mut().extend_pairs(query);
        token_of(&url, &ask(&url, client.get(address).header("Metadata", "true"))?)
    }
}
