//! What the process that evaluates and the one that has the files say to each other: JSON values one after
//! the other.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// What the evaluation asks for, and how it ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    Exists(String),
    Text(String),
    Bytes(String),
    /// The end: JSON.
    Yields(String),
    /// The end: why there is none.
    Fails(String),
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Exists(bool),
    Text(String),
    Bytes(Vec<u8>),
    Fault(String),
}

pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(message)?;
    text.push(b'\n');
    to.write_all(&text)?;
    to.flush()
}

/// The next message; the end of the stream is [`io::ErrorKind::UnexpectedEof`].
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    Ok(T::deserialize(&mut serde_json::Deserializer::from_reader(from))?)
}
