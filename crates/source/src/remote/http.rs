//! GET over HTTP(S), with limits.

use std::{io::Read, time::Duration};

use parking_lot::Mutex;
use reqwest::{
    Identity, NoProxy, Proxy, StatusCode,
    blocking::{Client, ClientBuilder, RequestBuilder, Response},
    redirect,
};

use super::tls;
use crate::{SourceError, host_backoff::Pauses, remote::Access};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// For a whole exchange: large archives over slow lines need minutes.
const TIMEOUT: Duration = Duration::from_secs(300);
const MAX_REDIRECTS: usize = 10;

/// HTTP clients, one for each set of TLS options.
///
/// Blocking: not to be used (or dropped) on an async runtime's own threads.
#[derive(Default)]
pub(crate) struct Http {
    clients: Mutex<Vec<(Access, Client)>>,
    /// Addresses that failed a moment ago.
    pub pauses: Pauses,
}

impl Http {
    /// Clients for what is good for a time: what failed is not asked again at once.
    pub(crate) fn pausing(fresh_for: Duration) -> Self {
        Self { clients: Mutex::default(), pauses: Pauses::with_freshness(fresh_for) }
    }

    /// The client for an access.
    pub(crate) fn client(&self, url: &str, access: &Access) -> Result<Client, SourceError> {
        let nobody = Access { username: None, password: None, bearer_token: None, ..access.clone() };
        let tls = Access { github_app: None, identity: None, ..nobody };
        let mut clients = self.clients.lock();
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == tls) {
            return Ok(client.clone());
        }
        let client = build(&tls).map_err(|reason| SourceError::Fetch { url: redact(url), reason })?;
        clients.push((tls, client.clone()));
        Ok(client)
    }

    /// The body behind an address.
    pub(crate) fn get(&self, url: &str, access: &Access, limit: u64) -> Result<Vec<u8>, SourceError> {
        self.pauses.ask(url, || read_ok(url, self.send(url, access)?, limit))
    }

    /// The answer of an address, whatever its status.
    pub(crate) fn send(&self, url: &str, access: &Access) -> Result<Response, SourceError> {
        let request = authorize(self.client(url, access)?.get(url), access);
        request.send().map_err(|e| fetch_error(url, &e))
    }
}

/// Adds what an access has to say about who asks.
pub(crate) fn authorize(request: RequestBuilder, access: &Access) -> RequestBuilder {
    match (&access.bearer_token, &access.username) {
        (Some(token), _) => request.bearer_auth(token),
        (None, Some(user)) => request.basic_auth(user, access.password.as_deref()),
        (None, None) => request,
    }
}

/// The body of a successful answer, within a limit.
pub(crate) fn read_ok(url: &str, response: Response, limit: u64) -> Result<Vec<u8>, SourceError> {
    let status = response.status();
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(SourceError::Denied { url: redact(url), status: status.as_u16() });
    }
    if !status.is_success() {
        return Err(SourceError::Fetch { url: redact(url), reason: format!("the server answers {status}") });
    }
    let mut body = Vec::new();
    let read = response.take(limit + 1).read_to_end(&mut body);
    read.map_err(|e| SourceError::Fetch { url: redact(url), reason: format!("the answer breaks off: {e}") })?;
    if body.len() as u64 > limit {
        let reason = format!("the answer is larger than {limit} bytes");
        return Err(SourceError::Fetch { url: redact(url), reason });
    }
    Ok(body)
}

pub(crate) fn fetch_error(url: &str, error: &reqwest::Error) -> SourceError {
    let mut reason = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = cause {
        let text = inner.to_string();
        // The outermost text repeats the address, possibly with credentials in it.
        if !text.contains("://") && !reason.contains(&text) {
            reason = if reason.is_empty() { text } else { format!("{reason}: {text}") };
        }
        cause = inner.source();
    }
    if reason.is_empty() {
        let kind = if error.is_timeout() { "no answer in time" } else { "the host cannot be reached" };
        kind.clone_into(&mut reason);
    }
    SourceError::Fetch { url: redact(url), reason: with_advice(reason) }
}

/// Why a fetch failed, with what to do about a certificate that is not believed.
pub(crate) fn with_advice(reason: String) -> String {
    let advice = if reason.contains("UnknownIssuer") {
        "no authority that is trusted here signed the host's certificate; SSL_CERT_FILE names a file with one more"
    } else if reason.contains("CaUsedAsEndEntity") {
        "the host shows the certificate of an authority (CA:TRUE), which is believed only where it is itself declared for the host (argocd-tls-certs-cm, --ca-file)"
    } else {
        return reason;
    };
    format!("{reason} ({advice})")
}

/// An address without user, password and query.
pub(crate) fn redact(url: &str) -> String {
    let Ok(mut parsed) = reqwest::Url::parse(url) else { return url.to_owned() };
    // Addresses without authority have nothing to hide there.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.to_string()
}

fn build(access: &Access) -> Result<Client, String> {
    // Whoever comes first sets the process's provider; they are all the same.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("tiphys/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(redirect::Policy::limited(MAX_REDIRECTS));
    with_transport(builder, access)?.build().map_err(|e| format!("TLS cannot be set up: {e}"))
}

/// Adds what an access says of certificates and of a proxy.
pub(crate) fn with_transport(mut builder: ClientBuilder, access: &Access) -> Result<ClientBuilder, String> {
    if let Some(pem) = access.ca_pem.as_ref().filter(|_| !access.insecure_skip_verify) {
        builder = builder.tls_backend_preconfigured(tls::config(pem, access)?);
    } else if let (Some(certificate), Some(key)) = (&access.client_certificate_pem, &access.client_key_pem) {
        let identity = Identity::from_pem(format!("{certificate}\n{key}").as_bytes());
        builder = builder.identity(identity.map_err(|_| "the client certificate or its key cannot be read")?);
    }
    builder = builder.tls_danger_accept_invalid_certs(access.insecure_skip_verify);
    if let Some(address) = &access.proxy {
        // The address may hold a password, which the error would repeat.
        let proxy = Proxy::all(address).map_err(|_| "the address of the proxy cannot be read")?;
        builder = builder.proxy(proxy.no_proxy(access.no_proxy.as_deref().and_then(NoProxy::from_string)));
    }
    Ok(builder)
}
