//! Service accounts and users of Google Cloud (Google Cloud documentation, "How Application Default
//! Credentials works"; Google Identity documentation, "Using OAuth 2.0 for Server to Server Applications").

use std::{
    fmt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use reqwest::blocking::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    IdentityError, Token,
    http::{ask, post_form, token_of},
    jwt::signed_rs256,
};

/// What a token is for: everything, as its account's roles say.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// What GKE wants besides.
const EMAIL_SCOPE: &str = "https://www.googleapis.com/auth/userinfo.email";
/// Where keys are exchanged for tokens.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// How long a proof is good, in seconds; no longer is taken.
const PROOF_SECONDS: u64 = 3600;

/// Where the credentials come from.
#[derive(Clone, PartialEq, Eq)]
pub enum Google {
    /// From this text: a key file's.
    Key(String),
    /// From this file, or, without one, from where this process's own are looked for:
    /// `GOOGLE_APPLICATION_CREDENTIALS`, the file that `gcloud auth application-default login` writes, the
    /// machine.
    Default(Option<PathBuf>),
}

impl fmt::Debug for Google {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(_) => f.write_str("Key"),
            Self::Default(path) => f.debug_tuple("Default").field(path).finish(),
        }
    }
}

/// A file of credentials. What is not of its type is empty.
#[derive(Deserialize, Default)]
#[serde(default)]
struct KeyFile {
    r#type: String,
    client_email: String,
    private_key: String,
    token_uri: Option<String>,
    client_id: String,
    client_secret: String,
    refresh_token: String,
    audience: String,
    subject_token_type: String,
    token_url: String,
    service_account_impersonation_url: Option<String>,
    credential_source: Value,
}

impl Google {
    /// The name of the account, which is the user where the token is a password; empty if none is said.
    pub fn account(&self) -> String {
        match self {
            Self::Key(text) => parse(text, "the key").map(|key| key.client_email).unwrap_or_default(),
            Self::Default(_) => String::new(),
        }
    }

    pub(crate) fn token(&self, client: &Client) -> Result<Token, IdentityError> {
        match self {
            Self::Key(text) => parse(text, "the key")?.token(client),
            Self::Default(given) => match given.clone().or_else(file_of_environment) {
                Some(path) => read(&path)?.token(client),
                None => of_machine(client),
            },
        }
    }
}

impl KeyFile {
    fn token(&self, client: &Client) -> Result<Token, IdentityError> {
        let uri = self.token_uri.as_deref().unwrap_or(TOKEN_URI);
        match self.r#type.as_str() {
            "service_account" => {
                let proof = self.proof(uri)?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                token_of(uri, &post_form(client, uri, &[("grant_type", grant), ("assertion", &proof)])?)
            }
            "authorized_user" => {
                let form = [
                    ("grant_type", "refresh_token"),
                    ("client_id", &self.client_id),
                    ("client_secret", &self.client_secret),
                    ("refresh_token", &self.refresh_token),
                ];
                token_of(uri, &post_form(client, uri, &form)?)
            }
            "external_account" => self.federated(client),
            other => Err(fail(format!("credentials of type {other:?} are not supported"))),
        }
    }

    /// What proves that the key is here (RFC 7523, section 2.1).
    fn proof(&self, audience: &str) -> Result<String, IdentityError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = json!({
            "iss": self.client_email, "scope": format!("{SCOPE} {EMAIL_SCOPE}"), "aud": audience,
            "iat": now, "exp": now + PROOF_SECONDS,
        });
        signed_rs256(&self.private_key, &claims).ok_or_else(|| fail("private_key is no RSA key in PEM"))
    }

    /// A token for one of another authority (RFC 8693, "OAuth 2.0 Token Exchange"), as workload identity
    /// federation has it, and for the service account that may be used by it.
    fn federated(&self, client: &Client) -> Result<Token, IdentityError> {
        let subject = self.subject(client)?;
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("audience", &self.audience),
            ("scope", SCOPE),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token", &subject),
            ("subject_token_type", &self.subject_token_type),
        ];
        let own = token_of(&self.token_url, &post_form(client, &self.token_url, &form)?)?;
        let Some(url) = &self.service_account_impersonation_url else { return Ok(own) };
        let body = json!({"scope": [SCOPE, EMAIL_SCOPE], "lifetime": format!("{PROOF_SECONDS}s")});
        let request = client
            .post(url)
            .bearer_auth(&own.text)
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = ask(url, request)?;
        let text = answer["accessToken"].as_str().ok_or_else(|| fail(format!("{url} answers no token")))?;
        let ends = answer["expireTime"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let expires =
            ends.map_or_else(|| SystemTime::now() + Duration::from_secs(PROOF_SECONDS), SystemTime::from);
        Ok(Token { text: text.to_owned(), expires })
    }

    /// The token of the other authority.
    fn subject(&self, client: &Client) -> Result<String, IdentityError> {
        let source = &self.credential_source;
        let field = source["format"]["subject_token_field_name"].as_str();
        let field = field.filter(|_| source["format"]["type"] == "json");
        let text = if let Some(path) = source["file"].as_str() {
            std::fs::read_to_string(path)
                .map_err(|error| fail(format!("credential_source.file {path}: {error}")))?
        } else if let Some(url) = source["url"].as_str() {
            let mut request = client.get(url);
            for (name, value) in source["headers"].as_object().into_iter().flatten() {
                request = request.header(name, value.as_str().unwrap_or_default());
            }
            let answer = request.send().and_then(reqwest::blocking::Response::error_for_status);
            answer
                .and_then(reqwest::blocking::Response::text)
                .map_err(|error| fail(error.without_url().to_string()))?
        } else {
            return Err(fail(
                "credential_source names neither a file nor a url, and nothing else is supported",
            ));
        };
        let Some(field) = field else { return Ok(text.trim().to_owned()) };
        let value: Option<Value> = serde_json::from_str(&text).ok();
        let token = value.as_ref().and_then(|value| value[field].as_str());
        token.map(str::to_owned).ok_or_else(|| fail(format!("credential_source has no {field}")))
    }
}

fn fail(reason: impl fmt::Display) -> IdentityError {
    IdentityError(reason.to_string())
}

/// Reads credentials. The error quotes nothing of them.
fn parse(text: &str, what: &str) -> Result<KeyFile, IdentityError> {
    serde_json::from_str(text).map_err(|error| {
        fail(format!("{what} is not valid at line {}, column {}", error.line(), error.column()))
    })
}

fn read(path: &Path) -> Result<KeyFile, IdentityError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| fail(format!("{name}: {error}")))?;
    parse(&text, &name)
}

fn file_of_environment() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("GOOGLE_APPLICATION_CREDENTIALS").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let folder = match std::env::var_os("CLOUDSDK_CONFIG") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::home_dir()?.join(".config/gcloud"),
    };
    Some(folder.join("application_default_credentials.json")).filter(|path| path.is_file())
}

/// The token of the machine's service account, or, with Workload Identity, of the pod's (Google Cloud
/// documentation, "VM metadata").
fn of_machine(client: &Client) -> Result<Token, IdentityError> {
    let host = std::env::var("GCE_METADATA_HOST").unwrap_or_else(|_| "169.254.169.254".to_owned());
    let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
    let address = format!("{url}?scopes={SCOPE},{EMAIL_SCOPE}");
    token_of(&url, &ask(&url, client.get(address).header("Metadata-Flavor", "Google"))?)
}
