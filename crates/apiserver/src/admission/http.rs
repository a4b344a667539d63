//! Calling a webhook over HTTPS, in the words in which the API server tells why it could not.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tiphys_schema::quote;
use tiphys_value::{ObjectExt, Value};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Snapshot;

/// Most bytes of an answer.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// One call of a webhook's backend.
pub(crate) struct HttpCall {
    /// The URL with the timeout as a parameter.
    pub url: String,
    /// Where to connect, if not to where the URL's name points.
    pub address: Option<SocketAddr>,
    /// PEM in base64, as the configuration has it.
    pub ca_bundle: String,
    pub timeout: Duration,
    pub body: Value,
}

impl HttpCall {
    /// Makes the call and returns the answer, or why there is none. Blocks the calling thread; on a
    /// runtime with several threads the others take over its tasks meanwhile.
    pub(super) fn run(self) -> Result<Value, String> {
        let timeout = self.timeout;
        let post = format!("Post {}", quote(&self.url));
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| format!("{post}: {e}"))?;
            runtime.block_on(async {
                match tokio::time::timeout(timeout, self.exchange()).await {
                    Ok(Ok(answer)) => Ok(answer),
                    Ok(Err(Failure::Transport(why))) => Err(format!("{post}: {why}")),
                    Ok(Err(Failure::Answer(why))) => Err(why),
                    Err(_) => Err(format!("{post}: context deadline exceeded")),
                }
            })
        };
        let wait = || {
            let thread = std::thread::spawn(work);
            thread.join().unwrap_or_else(|_| Err("the call ended unexpectedly".into()))
        };
        match tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor()) {
            Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
            _ => wait(),
        }
    }

    async fn exchange(self) -> Result<Value, Failure> {
        let uri: http::Uri = self.url.parse().map_err(|e| Failure::transport(format!("parse: {e}")))?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if uri.scheme_str() != Some("https") {
            return Err(Failure::transport(
                "unsupported protocol scheme: webhooks are called over https only",
            ));
        }
        let stream = connect(&host, uri.port_u16().unwrap_or(443), self.address).await?;
        let connector = TlsConnector::from(Arc::new(trust(&self.ca_bundle)?));
        let name = ServerName::try_from(host.clone()).map_err(|e| Failure::transport(e.to_string()))?;
        let stream = connector.connect(name, stream).await.map_err(|e| tls_failure(&e, &host))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| Failure::transport(e.to_string()))?;
        tokio::spawn(connection);
        let target = uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let request = http::Request::post(target)
            .header("host", authority)
            .header("content-type", "application/json")
            .header("accept", "application/json, */*")
            .header("user-agent", "kube-apiserver-admission")
            .body(Full::new(Bytes::from(self.body.to_string())))
            .map_err(|e| Failure::transport(e.to_string()))?;
        let response = sender.send_request(request).await.map_err(|_| Failure::transport("EOF"))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|e| Failure::transport(e.to_string()))?.to_bytes();
        read_answer(status.as_u16(), &body)
    }
}

enum Failure {
    /// Nobody answered.
    Transport(String),
    /// The answer is none.
    Answer(String),
}

impl Failure {
    fn transport(why: impl Into<String>) -> Self {
        Self::Transport(why.into())
    }
}

fn read_answer(status: u16, body: &[u8]) -> Result<Value, Failure> {
    let parsed: Result<Value, _> = serde_json::from_slice(body);
    if (200..300).contains(&status) {
        return parsed.map_err(|_| {
            let text = String::from_utf8_lossy(body);
            Failure::Answer(format!(
                "couldn't get version/kind; json parse error: invalid answer {}",
                quote(text.trim())
            ))
        });
    }
    let told = parsed.ok().and_then(|v| Some(v.str_at(&["message"])?.to_owned())).filter(|m| !m.is_empty());
    let text = String::from_utf8_lossy(body);
    Err(Failure::Answer(told.unwrap_or_else(|| match status {
        404 => "the server could not find the requested resource".into(),
        401 => "the server has asked for the client to provide credentials".into(),
        403 => "the server does not allow access to the requested resource".into(),
        400 => "the server rejected our request for an unknown reason".into(),
        405 => "the server does not allow this method on the requested resource".into(),
        _ => format!(
            "an error on the server ({}) has prevented the request from succeeding",
            quote(text.trim())
        ),
    })))
}

async fn connect(host: &str, port: u16, address: Option<SocketAddr>) -> Result<TcpStream, Failure> {
    let address = match address {
        Some(address) => address,
        None => {
            let no_host = || Failure::transport(format!("dial tcp: lookup {host}: no such host"));
            let mut found = tokio::net::lookup_host((host, port)).await.map_err(|_| no_host())?;
            found.next().ok_or_else(no_host)?
        }
    };
    TcpStream::connect(address).await.map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "connection refused".into(),
            std::io::ErrorKind::TimedOut => "connection timed out".into(),
            std::io::ErrorKind::NetworkUnreachable => "network is unreachable".into(),
            std::io::ErrorKind::HostUnreachable => "no route to host".into(),
            _ => error.to_string(),
        };
        Failure::transport(format!("dial tcp {address}: connect: {why}"))
    })
}

/// Who is trusted: those in the bundle, nobody else.
fn trust(ca_bundle: &str) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    let pem = STANDARD.decode(ca_bundle).unwrap_or_default();
    for certificate in CertificateDer::pem_slice_iter(&pem).flatten() {
        // What is no certificate is not trusted.
        let _ = roots.add(certificate);
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Failure::transport(e.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn tls_failure(error: &std::io::Error, host: &str) -> Failure {
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
    let why = match inner {
        Some(rustls::Error::InvalidCertificate(fault)) => match fault {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "certificate signed by unknown authority".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "certificate has expired or is not yet valid".to_owned()
            }
            CertificateError::NotValidForName => format!("certificate is not valid for {host}"),
            CertificateError::NotValidForNameContext { presented, .. } => {
                let names = presented.iter().map(|name| name.split('"').nth(1).unwrap_or(name));
                format!("certificate is valid for {}, not {host}", names.collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        },
        _ => return Failure::transport(error.to_string()),
    };
    Failure::transport(format!("tls: failed to verify certificate: x509: {why}"))
}

/// The address of something outside of the simulated cluster that stands behind a Service: an endpoint
/// that is ready and belongs to no pod.
pub(crate) fn outside_endpoint(
    snapshot: &Snapshot,
    namespace: &str,
    name: &str,
    port: i64,
) -> Option<SocketAddr> {
    use crate::{ops::items, store::ResourceId};
    let service = snapshot.get(&ResourceId::new("", "services"), namespace, name)?;
    let number = |value: &Value| u16::try_from(value.as_i64()?).ok();
    let spec = items(service, "/spec/ports").find(|p| p["port"] == port)?;
    let slices = snapshot.list(&ResourceId::new("discovery.k8s.io", "endpointslices"), Some(namespace));
    for slice in slices.filter(|slice| slice.label("kubernetes.io/service-name") == Some(name)) {
        let named = |p: &&Value| {
            p["name"] == spec["name"]
                || p["name"].as_str().unwrap_or_default() == spec["name"].as_str().unwrap_or_default()
        };
        let target = items(slice, "/ports").find(named).and_then(|p| number(&p["port"]));
        let own = |endpoint: &&Value| {
            endpoint["targetRef"]["kind"] != "Pod"
                && endpoint.at(&["conditions", "ready"]) != Some(&Value::Bool(false))
        };
        let endpoint = items(slice, "/endpoints").find(own);
        let address =
            endpoint.and_then(|e| items(e, "/addresses").next()).and_then(|a| a.as_str()?.parse().ok());
        if let (Some(address), Some(port)) = (address, target.or_else(|| number(&spec["targetPort"]))) {
            return Some(SocketAddr::new(address, port));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    fn call(url: String, ca: &str) -> Result<Value, String> {
        let timeout = Duration::from_secs(2);
        HttpCall { url, address: None, ca_bundle: STANDARD.encode(ca), timeout, body: json!({}) }.run()
    }

    #[test]
    fn nobody_listens() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let why = call(format!("https://{free}/x?timeout=2s"), "").unwrap_err();
        assert_eq!(
            why,
            format!("Post \"https://{free}/x?timeout=2s\": dial tcp {free}: connect: connection refused")
        );
    }

    #[test]
    fn a_server_is_trusted_by_its_authority_only() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = crate::ApiServer::new(crate::ApiServerOptions::default()).unwrap();
        let serving = runtime.block_on(server.bind(([127, 0, 0, 1], 0).into())).unwrap();
        let (address, ca) = (serving.address(), serving.ca_pem().to_owned());
        runtime.spawn(serving.run());
        let why = call(format!("https://{address}/version?timeout=2s"), "").unwrap_err();
        assert!(why.ends_with("x509: certificate signed by unknown authority"), "{why}");
        let why = call(format!("https://{address}/version?timeout=2s"), &ca).unwrap_err();
        assert!(why.starts_with("forbidden: User \"system:anonymous\" cannot post path"), "{why}");
    }
}
