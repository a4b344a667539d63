//! The streams of a forward (Kubernetes, `portforward.k8s.io`): for each connection that the client's side
//! accepts, one for its bytes and one for what went wrong, both with the port and the number of the request
//! in their headers.

use std::{collections::BTreeMap, io, sync::Arc};

use bytes::Bytes;
use tiphys_value::{ObjectExt, Value};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, WriteHalf},
    sync::mpsc,
    task::JoinSet,
};

use super::{
    headers::Headers,
    spdy::{Frame, Reader, Writer},
};
use crate::PodBackend;

/// Bytes under way in one direction of a connection to a pod.
const BUFFER: usize = 64 * 1024;
/// Frames under way to the client, and of one stream to a pod.
const QUEUE: usize = 32;

/// The pod that ports are forwarded to.
pub(in crate::http) struct Target {
    pub pod: Value,
    pub backend: Option<Arc<dyn PodBackend>>,
}

impl Target {
    /// A connection to a port; `None` if nothing listens there.
    fn connect(&self, port: u16) -> Option<DuplexStream> {
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        let listens = self.backend.as_ref()?.connect(&self.pod, port, theirs);
        listens.then_some(ours)
    }
}

/// Serves streams until the client ends the connection.
pub(super) async fn serve(
    connection: impl AsyncRead + AsyncWrite + Send + 'static,
    target: Target,
) -> io::Result<()> {
    let (reader, writer) = tokio::io::split(connection);
    let (out, frames) = mpsc::channel(QUEUE);
    let mut forward =
        Forward { target, out, errors: BTreeMap::new(), streams: BTreeMap::new(), tasks: JoinSet::new() };
    forward.tasks.spawn(send(writer, frames));
    let mut reader = Reader::new(reader);
    while let Some(frame) = reader.next().await? {
        if !forward.take(frame).await {
            break;
        }
    }
    Ok(())
}

/// Writes what the client is to get. That it hung up is seen where it is read.
async fn send(mut writer: WriteHalf<impl AsyncWrite>, mut frames: mpsc::Receiver<Frame>) {
    let mut encoder = Writer::new();
    while let Some(frame) = frames.recv().await {
        let Ok(bytes) = encoder.bytes(&frame) else { return };
        if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

/// A connection with its streams. What is under way ends with it.
struct Forward {
    target: Target,
    out: mpsc::Sender<Frame>,
    /// The streams for errors, by request.
    errors: BTreeMap<String, u32>,
    /// Where the bytes of a stream go.
    streams: BTreeMap<u32, mpsc::Sender<Bytes>>,
    tasks: JoinSet<()>,
}

impl Forward {
    /// Takes up a frame; `false` if the connection is over.
    async fn take(&mut self, frame: Frame) -> bool {
        match frame {
            Frame::Ping(id) => self.tell(Frame::Ping(id)).await,
            Frame::Open { stream, headers, .. } => self.open(stream, &headers).await,
            Frame::Data { stream, data, fin } => {
                if let Some(to) = self.streams.get(&stream).filter(|_| !data.is_empty()) {
                    // Who no longer listens has said so by ending its own side.
                    let _ = to.send(data).await;
                }
                if fin {
                    self.streams.remove(&stream);
                }
                true
            }
            Frame::Reset { stream } => {
                self.streams.remove(&stream);
                true
            }
            Frame::GoAway => false,
            Frame::Accept { .. } | Frame::Other => true,
        }
    }

    async fn tell(&self, frame: Frame) -> bool {
        self.out.send(frame).await.is_ok()
    }

    async fn open(&mut self, stream: u32, headers: &Headers) -> bool {
        let header = |name: &str| headers.get(name).map(String::as_str).unwrap_or_default();
        let request = header("requestid").to_owned();
        let port = header("port").parse::<u16>().ok().filter(|port| *port != 0);
        match (header("streamtype"), port) {
            ("error", Some(_)) => {
                self.errors.insert(request, stream);
                self.tell(Frame::Accept { stream }).await
            }
            ("data", Some(port)) => {
                let error = self.errors.remove(&request);
                self.tell(Frame::Accept { stream }).await && self.connect(stream, error, port).await
            }
            _ => self.tell(Frame::Reset { stream }).await,
        }
    }

    async fn connect(&mut self, stream: u32, error: Option<u32>, port: u16) -> bool {
        let Some(connection) = self.target.connect(port) else {
            let told = format!(
                "error forwarding port {port} to pod {}: connection refused: in the embedded cluster nothing listens there",
                self.target.pod.name()
            );
            return end(&self.out, stream, error, told.into()).await;
        };
        let (mut from, mut to) = tokio::io::split(connection);
        let (sender, mut sent) = mpsc::channel::<Bytes>(QUEUE);
        self.streams.insert(stream, sender);
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move {
            while let Some(data) = sent.recv().await {
                if to.write_all(&data).await.is_err() {
                    return;
                }
            }
            // Who does not hear of the end has hung up already.
            let _ = to.shutdown().await;
        });
        let out = self.out.clone();
        self.tasks.spawn(async move {
            let mut buffer = vec![0; BUFFER];
            while let Ok(length @ 1..) = from.read(&mut buffer).await {
                let data = Bytes::copy_from_slice(&buffer[..length]);
                if out.send(Frame::Data { stream, data, fin: false }).await.is_err() {
                    return;
                }
            }
            end(&out, stream, error, Bytes::new()).await;
        });
        true
    }
}

/// Ends both streams of a request, with what went wrong if anything did.
async fn end(out: &mpsc::Sender<Frame>, stream: u32, error: Option<u32>, told: Bytes) -> bool {
    let mut frames = vec![Frame::Data { stream, data: Bytes::new(), fin: true }];
    frames.extend(error.map(|stream| Frame::Data { stream, data: told, fin: true }));
    for frame in frames {
        if out.send(frame).await.is_err() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    /// Answers at port 80 with what it is sent.
    struct Echo;

    impl PodBackend for Echo {
        fn connect(&self, pod: &Value, port: u16, connection: DuplexStream) -> bool {
            let listens = pod.name() == "web" && port == 80;
            if listens {
                tokio::spawn(async move {
                    let (mut from, mut to) = tokio::io::split(connection);
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                    let _ = to.shutdown().await;
                });
            }
            listens
        }
    }

    fn headers(kind: &str, port: &str) -> Headers {
        let headers = [("streamtype", kind), ("port", port), ("requestid", "0")];
        headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    /// What a client gets that opens both streams for a port, sends a text and says that it has no more.
    async fn exchange(port: &str) -> (String, String) {
        let pod = json!({"metadata": {"name": "web"}});
        let (out, mut told) = mpsc::channel(QUEUE);
        let mut forward = Forward {
            target: Target { pod, backend: Some(Arc::new(Echo)) },
            out,
            errors: BTreeMap::new(),
            streams: BTreeMap::new(),
            tasks: JoinSet::new(),
        };
        for (stream, kind) in [(1, "error"), (3, "data")] {
            assert!(forward.take(Frame::Open { stream, headers: headers(kind, port), fin: false }).await);
            assert_eq!(told.recv().await, Some(Frame::Accept { stream }));
        }
        for (data, fin) in [(Bytes::from_static(b"hello"), false), (Bytes::new(), true)] {
            assert!(forward.take(Frame::Data { stream: 3, data, fin }).await);
        }
        let (mut texts, mut open) = (BTreeMap::from([(1, Vec::new()), (3, Vec::new())]), 2);
        while open > 0 {
            let Some(Frame::Data { stream, data, fin }) = told.recv().await else { panic!("only data") };
            texts.entry(stream).or_default().extend_from_slice(&data);
            open -= i32::from(fin);
        }
        let text = |stream| String::from_utf8(texts[&stream].clone()).expect("is text");
        (text(3), text(1))
    }

    #[tokio::test]
    async fn bytes_go_to_the_port_and_back() {
        assert_eq!(exchange("80").await, ("hello".to_owned(), String::new()));
    }

    #[tokio::test]
    async fn a_port_where_nothing_listens_is_refused() {
        let (data, error) = exchange("81").await;
        assert_eq!(data, "");
        assert!(error.starts_with("error forwarding port 81 to pod web: connection refused"), "{error}");
    }

    #[tokio::test]
    async fn pings_are_answered_until_the_client_goes() {
        let (mut client, server) = tokio::io::duplex(64);
        let target = Target { pod: json!({}), backend: None };
        let served = tokio::spawn(serve(server, target));
        let ping = [0x80, 0x03, 0x00, 0x06, 0, 0, 0, 4, 0, 0, 0, 1];
        for _ in 0..2 {
            client.write_all(&ping).await.expect("is open");
            let mut answer = [0; 12];
            client.read_exact(&mut answer).await.expect("answers");
            assert_eq!(answer, ping);
        }
        drop(client);
        assert!(served.await.expect("no panic").is_ok());
    }
}
