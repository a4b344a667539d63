//! Measures an API server, embedded or real, over HTTPS: creates, gets and patches of ConfigMaps a second.
//! `cargo run --release -p tiphys-apiserver --example load -- ADDRESS TOKEN [COUNT] [CONNECTIONS]`.

use std::{error::Error, net::SocketAddr, sync::Arc, time::Instant};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tiphys_value::json;

type Fault = Box<dyn Error + Send + Sync>;

/// Measuring needs no proof of who answers.
#[derive(Debug)]
struct Trusting(Arc<CryptoProvider>);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Fault> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting(provider)))
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost")?;
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tls)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

#[derive(Clone, Copy)]
enum Work {
    Create,
    Get,
    Patch,
}

fn request(work: Work, token: &str, number: usize) -> Result<Request<Full<Bytes>>, Fault> {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    let name = format!("load-{number}");
    let (method, path, kind, body) = match work {
        Work::Create => {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "load"}}, "data": {"key": "value", "number": number.to_string()}});
            (Method::POST, PATH.to_owned(), "application/json", object.to_string())
        }
        Work::Get => (Method::GET, format!("{PATH}/{name}"), "application/json", String::new()),
        Work::Patch => {
            let patch = json!({"data": {"key": format!("changed-{number}")}});
            (Method::PATCH, format!("{PATH}/{name}"), "application/merge-patch+json", patch.to_string())
        }
    };
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {token}")).header("content-type", kind);
    Ok(request.body(Full::new(Bytes::from(body)))?)
}

async fn run(address: SocketAddr, token: &str, work: Work, count: usize, connections: usize) -> Result<f64, Fault> {
    let mut senders = Vec::new();
    for _ in 0..connections {
        senders.push(connect(address).await?);
    }
    let start = Instant::now();
    let mut tasks = Vec::new();
    for (first, mut sender) in senders.into_iter().enumerate() {
        let token = token.to_owned();
        tasks.push(tokio::spawn(async move {
            for number in (first..count).step_by(connections) {
                sender.ready().await?;
                let response = sender.send_request(request(work, &token, number)?).await?;
                let status = response.status();
                let body = response.into_body().collect().await?.to_bytes();
                if !status.is_success() {
                    return Err(Fault::from(format!("{status}: {}", String::from_utf8_lossy(&body))));
                }
            }
            Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, token, rest @ ..] = args.as_slice() else { return Err("ADDRESS TOKEN [COUNT] [CONNECTIONS]".into()) };
    let count = rest.first().map_or(Ok(10_000), |text| text.parse())?;
    let connections = rest.get(1).map_or(Ok(16), |text| text.parse())?;
    let address: SocketAddr = address.parse()?;
    for (name, work) in [("creates", Work::Create), ("gets", Work::Get), ("patches", Work::Patch)] {
        println!("{name}/s: {:.0}", run(address, token, work, count, connections).await?);
    }
    Ok(())
}
