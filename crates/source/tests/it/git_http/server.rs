//! A Git host on loopback that misbehaves on request. It speaks the stateless protocol over HTTP; `git
//! upload-pack` does the work.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// What the host does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Serves everybody.
    Serve,
    /// Answers that it is overloaded.
    Down,
    /// Takes the connection and says nothing.
    Silent,
    /// Begins to send the objects, and says nothing more.
    StopsMidway,
    /// Begins to send the objects, and hangs up.
    HangsUp,
    /// Wants a password, and no password is right.
    Refuse,
    /// Serves whoever sends this in the header for authorization.
    Login(String),
    /// Sends everybody to another address.
    Redirect(String),
    /// Hands out no single commits.
    WholeOnly,
    /// Speaks the first protocol, and knows nothing of tags that come along with what they point to.
    Old,
}

/// What lies between the host and a connection.
pub(super) type Layer = Arc<dyn Fn(TcpStream) -> Box<dyn Stream> + Send + Sync>;

/// A connection.
pub(super) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// The host.
pub(super) struct Host {
    pub url: String,
    mode: Arc<Mutex<Mode>>,
    seen: Arc<Mutex<Vec<String>>>,
    requests: Arc<AtomicUsize>,
}

impl Host {
    /// Serves one repository.
    pub(super) fn for_repository(repository: &Path) -> Self {
        Self::serve(repository, None)
    }

    /// The same by HTTPS, as `localhost`; `layer` speaks TLS.
    pub(super) fn with_tls(repository: &Path, layer: Layer) -> Self {
        Self::serve(repository, Some(layer))
    }

    fn serve(repository: &Path, layer: Option<Layer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let url = match layer {
            None => format!("http://{address}/acme/shop"),
            Some(_) => format!("https://localhost:{}/acme/shop", address.port()),
        };
        let mode = Arc::new(Mutex::new(Mode::Serve));
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let requests: Arc<AtomicUsize> = Arc::default();
        let (repository, shared, log) = (repository.to_owned(), mode.clone(), seen.clone());
        let count = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let (repository, mode, log) = (repository.clone(), shared.clone(), log.clone());
                let layer = layer.clone();
                std::thread::spawn(move || match layer {
                    None => answer(stream, &repository, &mode, &log),
                    Some(layer) => answer(layer(stream), &repository, &mode, &log),
                });
            }
        });
        Self { url, mode, seen, requests }
    }

    /// Behaves otherwise from now on.
    pub(super) fn set(&self, mode: Mode) {
        *self.mode.lock().expect("no thread panicked") = mode;
    }

    /// How many requests came.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// The values of the authorization headers that came.
    pub(super) fn authorizations(&self) -> Vec<String> {
        self.seen.lock().expect("no thread panicked").clone()
    }
}

struct Request {
    path: String,
    authorization: Option<String>,
    /// The version of the protocol that is asked for.
    protocol: String,
    body: Vec<u8>,
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let (mut authorization, mut length, mut line) = (None, 0, String::new());
    let mut protocol = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap_or(0),
            "git-protocol" => value.clone_into(&mut protocol),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some(Request { path, authorization, protocol, body }))
}

fn answer(
    stream: impl Read + Write,
    repository: &Path,
    mode: &Mutex<Mode>,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let Some(mut request) = read(&mut reader)? else { return Ok(()) };
    log.lock().expect("no thread panicked").extend(request.authorization.clone());
    let mode = mode.lock().expect("no thread panicked").clone();
    let advertises = request.path.contains("/info/refs");
    match mode {
        Mode::Silent => return silence(&mut reader),
        Mode::Login(ref right) if request.authorization.as_ref() == Some(right) => {}
        Mode::Refuse | Mode::Login(_) => {
            let head = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"shop\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            return reader.get_mut().write_all(head.as_bytes());
        }
        Mode::Down => {
            let head = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            return reader.get_mut().write_all(head.as_bytes());
        }
        Mode::Redirect(to) => {
            let rest = request.path.split_once("/acme/shop").map_or("", |(_, rest)| rest);
            let head = format!(
                "HTTP/1.1 302 Found\r\nLocation: {to}{rest}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            return reader.get_mut().write_all(head.as_bytes());
        }
        Mode::WholeOnly if request.body.windows(8).any(|word| word == b"deepen 1") => {
            let head = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            return reader.get_mut().write_all(head.as_bytes());
        }
        Mode::Serve | Mode::StopsMidway | Mode::HangsUp | Mode::WholeOnly | Mode::Old => {}
    }
    if mode == Mode::Old {
        request.protocol.clear();
    }
    let mut body = upload_pack(repository, &request, advertises);
    if mode == Mode::Old && advertises {
        forget(&mut body, b" include-tag");
    }
    let kind = if advertises { "advertisement" } else { "result" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-{kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let stream = reader.get_mut();
    stream.write_all(head.as_bytes())?;
    if advertises || matches!(mode, Mode::Serve | Mode::WholeOnly | Mode::Old | Mode::Login(_)) {
        stream.write_all(&body)?;
        return stream.flush();
    }
    stream.write_all(&body[..body.len() / 2])?;
    stream.flush()?;
    if mode == Mode::StopsMidway { silence(&mut reader) } else { Ok(()) }
}

/// Puts another word in place of a capability, as long as it.
fn forget(advertisement: &mut [u8], capability: &[u8]) {
    let at = advertisement.windows(capability.len()).position(|word| word == capability);
    let at = at.expect("git knows the capability") + 1;
    advertisement[at..at + capability.len() - 1].fill(b'x');
}

/// Says nothing until the other side hangs up.
fn silence(reader: &mut impl Read) -> std::io::Result<()> {
    reader.read_to_end(&mut Vec::new()).map(drop)
}

fn upload_pack(repository: &Path, request: &Request, advertises: bool) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(["upload-pack", "--stateless-rpc"]).env("GIT_PROTOCOL", &request.protocol);
    if advertises {
        command.arg("--advertise-refs");
    }
    let child = command.arg(repository).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("git is installed");
    let mut stdin = child.stdin.take().expect("is piped");
    stdin.write_all(&request.body).expect("git reads it");
    drop(stdin);
    let output = child.wait_with_output().expect("git ends").stdout;
    let names_service = advertises && request.protocol != "version=2";
    let mut body = if names_service { b"001e# service=git-upload-pack\n0000".to_vec() } else { Vec::new() };
    body.extend(output);
    body
}
