//! A small HTTP server on loopback, and charts to serve.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
};

use sha2::{Digest, Sha256};

/// What was asked.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub path: String,
    pub authorization: Option<String>,
}

/// Status, headers, body.
pub(super) type Answer = (u16, Vec<(&'static str, String)>, Vec<u8>);

type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

/// A server that lives as long as the process; each connection carries one exchange.
pub(super) struct Server {
    pub host: String,
    pub requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(super) fn start(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(Arc::new(handler), None)
    }

    pub(super) fn start_tls(
        config: Arc<rustls::ServerConfig>,
        handler: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::serve(Arc::new(handler), Some(config))
    }

    fn serve(handler: Arc<Handler>, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let host = listener.local_addr().expect("it is bound").to_string();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let log = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (handler, log, tls) = (handler.clone(), log.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => exchange(stream, &*handler, &log),
                    Some(config) => {
                        let connection =
                            rustls::ServerConnection::new(config).expect("the configuration is sound");
                        exchange(rustls::StreamOwned::new(connection, stream), &*handler, &log);
                    }
                });
            }
        });
        Self { host, requests }
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.requests.lock().expect("no thread panicked").iter().map(|request| request.path.clone()).collect()
    }

    pub(super) fn authorizations(&self, path: &str) -> Vec<Option<String>> {
        let requests = self.requests.lock().expect("no thread panicked");
        requests.iter().filter(|request| request.path == path).map(|r| r.authorization.clone()).collect()
    }
}

fn exchange(stream: impl Read + Write, handler: &Handler, log: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    let mut authorization = None;
    let mut length = 0;
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        match name.to_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().expect("is a number"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let request = Request { path, authorization };
    log.lock().expect("no thread panicked").push(request.clone());
    let (status, headers, body) = handler(&request);
    let mut head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let stream = reader.get_mut();
    // A client that hangs up early is its own test's business.
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&body))
        .and_then(|()| stream.flush());
}

pub(super) fn ok(body: impl Into<Vec<u8>>) -> Answer {
    (200, Vec::new(), body.into())
}

pub(super) fn not_found() -> Answer {
    (404, Vec::new(), b"no".to_vec())
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A packaged chart with nothing but its `Chart.yaml`.
pub(super) fn chart(name: &str, version: &str) -> Vec<u8> {
    pack(name, &[("Chart.yaml", &metadata(name, version))])
}

/// A packaged chart with one template.
pub(super) fn chart_with(name: &str, version: &str, template: &str) -> Vec<u8> {
    pack(name, &[("Chart.yaml", &metadata(name, version)), ("templates/c.yaml", template)])
}

fn metadata(name: &str, version: &str) -> String {
    format!("apiVersion: v2\nname: {name}\nversion: {version}\n")
}

fn pack(name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(gzip);
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, format!("{name}/{path}"), text.as_bytes())
            .expect("memory is writable");
    }
    builder.into_inner().and_then(|gzip| gzip.finish()).expect("memory is writable")
}
