//! A server on loopback for tests of scripts that fetch and write by HTTP.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
};

/// What a script asked.
pub(super) struct Request {
    pub method: String,
    /// With the query.
    pub path: String,
    /// The header lines in lower case.
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

/// Serves until the test ends, one request after the other; returns the address.
pub(super) fn serve(mut answer: impl FnMut(&Request) -> (u16, Vec<u8>) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever hangs up early misses the rest.
            let _ = answer_one(stream, &mut answer);
        }
    });
    address
}

fn answer_one(
    mut stream: TcpStream,
    answer: &mut impl FnMut(&Request) -> (u16, Vec<u8>),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? <= 2 {
            break;
        }
        headers.push(header.trim_end().to_lowercase());
    }
    let length = headers.iter().find_map(|header| header.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let (status, content) = answer(&Request { method, path, headers, body });
    let length = content.len();
    write!(stream, "HTTP/1.1 {status} Told\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")?;
    stream.write_all(&content)
}

/// Keeps a script from asking a proxy for what is on loopback.
pub(super) fn without_proxy(command: &mut Command) -> &mut Command {
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    command
}
