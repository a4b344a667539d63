//! Frames of SPDY/3.1 ("SPDY Protocol - Draft 3.1", "Framing Layer"), as far as they are needed to forward
//! ports. There is no flow control: the clients of Kubernetes have none.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::headers::{self, Headers};

/// Bytes before the content of a frame.
const HEAD: usize = 8;
/// Marks a control frame, of version 3.
const CONTROL: [u8; 2] = [0x80, 0x03];
/// The last frame of its side of a stream.
const FIN: u8 = 0x01;
/// The highest bit of a stream's number is none of it.
const STREAM: u32 = 0x7fff_ffff;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;
const HEADERS: u16 = 8;

/// A frame that is of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The client opens a stream.
    Open { stream: u32, headers: Headers, fin: bool },
    /// The server accepts it.
    Accept { stream: u32 },
    /// Content of a stream.
    Data { stream: u32, data: Bytes, fin: bool },
    /// A stream is broken off.
    Reset { stream: u32 },
    /// A question whether the other side is there, and the answer.
    Ping(u32),
    /// No more streams will be opened.
    GoAway,
    /// Anything else.
    Other,
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("SPDY: {what}"))
}

/// The frames that come in.
pub(super) struct Reader<R> {
    from: R,
    headers: headers::Reader,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, headers: headers::Reader::new() }
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// The connection breaks, or a frame is malformed.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut head = [0; HEAD];
        match self.from.read_exact(&mut head).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        };
        let [a, b, c, d, flags, e, f, g] = head;
        let length = u32::from_be_bytes([0, e, f, g]);
        let mut content = Vec::new();
        let taken = (&mut self.from).take(u64::from(length)).read_to_end(&mut content).await?;
        if u32::try_from(taken) != Ok(length) {
            return Err(malformed("a frame is cut off"));
        }
        if [a, b] == CONTROL {
            return self.control(u16::from_be_bytes([c, d]), flags, &content).map(Some);
        }
        if a & 0x80 != 0 {
            return Err(malformed("another version than 3"));
        }
        let stream = u32::from_be_bytes([a, b, c, d]);
        Ok(Some(Frame::Data { stream, data: content.into(), fin: flags & FIN != 0 }))
    }

    fn control(&mut self, kind: u16, flags: u8, content: &[u8]) -> io::Result<Frame> {
        let number = || -> io::Result<u32> {
            let first = content.first_chunk().ok_or_else(|| malformed("a frame is too short"))?;
            Ok(u32::from_be_bytes(*first))
        };
        Ok(match kind {
            SYN_STREAM => {
                // The stream that this one belongs to, priority and slot say nothing here.
                let block = content.get(10..).ok_or_else(|| malformed("a frame is too short"))?;
                let headers = self.headers.read(block)?;
                Frame::Open { stream: number()? & STREAM, headers, fin: flags & FIN != 0 }
            }
            HEADERS => {
                // Of no use, but part of what the next block builds on.
                self.headers.read(content.get(4..).ok_or_else(|| malformed("a frame is too short"))?)?;
                Frame::Other
            }
            RST_STREAM => Frame::Reset { stream: number()? & STREAM },
            PING => Frame::Ping(number()?),
            GO_AWAY => Frame::GoAway,
            _ => Frame::Other,
        })
    }
}

/// The frames that go out.
pub(super) struct Writer(headers::Writer);

impl Writer {
    pub(super) fn new() -> Self {
        Self(headers::Writer::new())
    }

    /// The bytes of a frame; of one that only clients send there are none.
    ///
    /// # Errors
    /// Its content is too long for a frame.
    pub(super) fn bytes(&mut self, frame: &Frame) -> io::Result<Vec<u8>> {
        let control = |kind: u16, content: &[&[u8]]| {
            let [a, b] = kind.to_be_bytes();
            framed([CONTROL[0], CONTROL[1], a, b], 0, content)
        };
        match frame {
            Frame::Accept { stream } => {
                control(SYN_REPLY, &[&stream.to_be_bytes(), &self.0.write(&Headers::new())?])
            }
            Frame::Data { stream, data, fin } => framed(stream.to_be_bytes(), u8::from(*fin) * FIN, &[data]),
            Frame::Reset { stream } => {
                const PROTOCOL_ERROR: u32 = 1;
                control(RST_STREAM, &[&stream.to_be_bytes(), &PROTOCOL_ERROR.to_be_bytes()])
            }
            Frame::Ping(id) => control(PING, &[&id.to_be_bytes()]),
            Frame::Open { .. } | Frame::GoAway | Frame::Other => Ok(Vec::new()),
        }
    }
}

fn framed(first: [u8; 4], flags: u8, content: &[&[u8]]) -> io::Result<Vec<u8>> {
    let length: usize = content.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).ok().filter(|length| *length < 1 << 24);
    let [_, a, b, c] = length.ok_or_else(|| malformed("a frame is too long"))?.to_be_bytes();
    let mut bytes = [first.as_slice(), &[flags, a, b, c]].concat();
    content.iter().for_each(|part| bytes.extend_from_slice(part));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[tokio::test]
    async fn frames_are_read_as_they_are_written() {
        let mut writer = Writer::new();
        let frames = [
            Frame::Ping(7),
            Frame::Data { stream: 5, data: Bytes::from_static(b"text"), fin: false },
            Frame::Data { stream: 5, data: Bytes::new(), fin: true },
            Frame::Reset { stream: 3 },
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| writer.bytes(frame).expect("fits")).collect();
        let mut reader = Reader::new(bytes.as_slice());
        for frame in frames {
            assert_eq!(reader.next().await.expect("is read"), Some(frame));
        }
        assert_eq!(reader.next().await.expect("ends"), None);
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(mut bytes: Vec<u8>, is_control: bool, kind in 0_u8..10) {
            if is_control {
                bytes.splice(0..0, [0x80, 0x03, 0, kind, 0, 0, 0, 16]);
            }
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
            let mut reader = Reader::new(bytes.as_slice());
            while let Ok(Some(_)) = runtime.block_on(reader.next()) {}
        }
    }
}
