//! A service on loopback that hands out tokens.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use parking_lot::Mutex;

/// What was asked: the line of the request with its headers, and the body.
pub(crate) type Asked = (String, String);

pub(crate) struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Answers requests by what `answer` makes of the head and the body: a status and a text.
    pub(crate) fn start(answer: impl Fn(&str, &str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("is bound"));
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a client comes");
                let Some((head, body)) = read(&mut stream) else { continue };
                let (status, text) = answer(&head, &body);
                log.lock().push((head, body));
                let answer = format!(
                    "HTTP/1.1 {status} Said\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                    text.len()
                );
                stream.write_all(answer.as_bytes()).expect("the client listens");
            }
        });
        Self { url, asked }
    }

    /// What was asked so far.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }
}

fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let lower = head.to_lowercase();
        let length = lower.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next());
        if body.len() >= length.map_or(0, |length| length.trim().parse().expect("is a number")) {
            return Some((head.to_owned(), body.to_owned()));
        }
    }
}
