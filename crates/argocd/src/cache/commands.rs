//! The commands of Redis that Argo CD uses, in the second version of its protocol (Redis serialization
//! protocol specification): a request is a list of texts, each behind its length. They are read one by one,
//! so that none can nest.

use std::{io, time::Duration};

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// Most bytes of a request.
const LONGEST: usize = 64 << 20;
/// Most texts of a request.
const MOST_TEXTS: usize = 1024;
/// Most bytes of a line that says how much follows.
const LONGEST_LINE: u64 = 64;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Something that is equivalent to done: logins, names of connections, the choice of a database.
    Done,
    Ping,
    Get(String),
    Set {
        key: String,
        value: Vec<u8>,
        lifetime: Option<Duration>,
        if_absent: bool,
    },
    Delete(Vec<String>),
    Rename(String, String),
    Publish,
    /// What is not understood, with what is said of it.
    Refused(String),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Ok,
    Text(&'static str),
    Number(usize),
    Bytes(Vec<u8>),
    Nothing,
    Error(String),
}

impl Reply {
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Ok => b"+OK\r\n".to_vec(),
            Self::Text(text) => format!("+{text}\r\n").into_bytes(),
            Self::Number(number) => format!(":{number}\r\n").into_bytes(),
            Self::Bytes(bytes) => [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat(),
            Self::Nothing => b"$-1\r\n".to_vec(),
            Self::Error(why) => format!("-{}\r\n", why.replace(['\r', '\n'], " ")).into_bytes(),
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("Redis protocol: {what}"))
}

/// The next request; `None` at the end.
///
/// # Errors
/// The connection breaks, or what comes is no request, or too long.
pub(super) async fn read_command(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Command>> {
    let Some(count) = read_count(from, b'*').await? else { return Ok(None) };
    if count > MOST_TEXTS {
        return Err(malformed("too many texts"));
    }
    let mut texts = Vec::with_capacity(count);
    let mut left = LONGEST;
    for _ in 0..count {
        let length = read_count(from, b'$').await?.ok_or_else(|| malformed("a request is cut off"))?;
        left = left.checked_sub(length).ok_or_else(|| malformed("a request is too long"))?;
        let mut text = Vec::new();
        let limit = u64::try_from(length).unwrap_or(u64::MAX);
        let taken = (&mut *from).take(limit).read_to_end(&mut text).await?;
        let mut end = [0; 2];
        from.read_exact(&mut end).await?;
        if taken != length || end != *b"\r\n" {
            return Err(malformed("a text does not end where it should"));
        }
        texts.push(text);
    }
    Ok(Some(understood(texts)))
}

/// A line with a number behind a sign.
async fn read_count(from: &mut (impl AsyncBufRead + Unpin), sign: u8) -> io::Result<Option<usize>> {
    let mut line = Vec::new();
    let taken = (&mut *from).take(LONGEST_LINE).read_until(b'\n', &mut line).await?;
    if taken == 0 {
        return Ok(None);
    }
    let number = line.strip_suffix(b"\r\n").and_then(|line| line.strip_prefix(&[sign]));
    let number = number.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    number.map(Some).ok_or_else(|| malformed(&format!("a number behind {:?} was awaited", char::from(sign))))
}

fn understood(texts: Vec<Vec<u8>>) -> Command {
    let word = |at: usize| texts.get(at).map(|text| String::from_utf8_lossy(text).into_owned());
    let name = word(0).unwrap_or_default().to_ascii_uppercase();
    let misused =
        || Command::Refused(format!("ERR wrong number of arguments for '{}' command", name.to_lowercase()));
    match (name.as_str(), texts.len()) {
        ("AUTH" | "CLIENT" | "SELECT" | "QUIT", _) => Command::Done,
        ("PING", _) => Command::Ping,
        ("GET", 2) => word(1).map_or_else(misused, Command::Get),
        ("SET", 3..) => set(&texts),
        ("DEL" | "UNLINK", 2..) => Command::Delete((1..texts.len()).filter_map(word).collect()),
        ("RENAME", 3) => match (word(1), word(2)) {
            (Some(from), Some(to)) => Command::Rename(from, to),
            _ => misused(),
        },
        ("PUBLISH", 3) => Command::Publish,
        ("GET" | "SET" | "DEL" | "UNLINK" | "RENAME" | "PUBLISH", _) => misused(),
        _ => Command::Refused(format!("ERR unknown command '{}'", word(0).unwrap_or_default())),
    }
}

/// `SET key value`, perhaps with `EX seconds`, `PX milliseconds`, `NX`.
fn set(texts: &[Vec<u8>]) -> Command {
    let mut options = texts[3..].iter().map(|text| String::from_utf8_lossy(text).to_ascii_uppercase());
    let (mut lifetime, mut if_absent) = (None, false);
    while let Some(option) = options.next() {
        let mut number = || options.next().and_then(|number| number.parse::<u64>().ok());
        match option.as_str() {
            "NX" => if_absent = true,
            "EX" => lifetime = number().map(Duration::from_secs),
            "PX" => lifetime = number().map(Duration::from_millis),
            other => return Command::Refused(format!("ERR syntax error: SET has no option {other} here")),
        }
    }
    let key = String::from_utf8_lossy(&texts[1]).into_owned();
    Command::Set { key, value: texts[2].clone(), lifetime, if_absent }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The requests in some bytes, and whether they end well.
    fn commands(mut bytes: &[u8]) -> (Vec<Command>, bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
        let mut all = Vec::new();
        loop {
            match runtime.block_on(read_command(&mut bytes)) {
                Ok(Some(command)) => all.push(command),
                Ok(None) => return (all, true),
                Err(_) => return (all, false),
            }
        }
    }

    #[test]
    fn commands_are_read() {
        let (all, ends) = commands(
            b"*2\r\n$5\r\nhello\r\n$1\r\n3\r\n*1\r\n$4\r\nping\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\
              *5\r\n$3\r\nset\r\n$1\r\nk\r\n$2\r\n\r\n\r\n$2\r\nex\r\n$2\r\n60\r\n*3\r\n$3\r\ndel\r\n$1\r\na\r\n$1\r\nb\r\n",
        );
        assert!(ends);
        let set = Command::Set {
            key: "k".to_owned(),
            value: b"\r\n".to_vec(),
            lifetime: Some(Duration::from_secs(60)),
            if_absent: false,
        };
        let expected = [
            Command::Refused("ERR unknown command 'hello'".to_owned()),
            Command::Ping,
            Command::Get("k".to_owned()),
            set,
            Command::Delete(vec!["a".to_owned(), "b".to_owned()]),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_no_request_ends_the_connection() {
        for bytes in [
            "GET k\r\n",
            "*1\r\n*1\r\n",
            "*1\r\n$-1\r\n",
            "*99999999\r\n",
            "*1\r\n$99999999999\r\n",
            "*1\r\n$3\r\nab",
        ] {
            assert!(!commands(bytes.as_bytes()).1, "{bytes}");
        }
    }

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(Reply::Error("ERR a\r\n+OK".to_owned()).bytes(), b"-ERR a  +OK\r\n");
    }

    proptest! {
        #[test]
        fn anything_is_read_or_refused(bytes: Vec<u8>, head in "[*$][0-9]{0,3}\r\n") {
            let _ = commands(&[head.as_bytes(), &bytes].concat());
        }
    }
}
