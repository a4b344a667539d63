//! Sends the same requests to two API servers and compares the answers: code and reason, message, object
//! (without uids, times, revisions and addresses).
//! `cargo run -p tiphys-apiserver --example compare -- ADDRESS TOKEN ADDRESS TOKEN CORPUS...`, the real server first.
//!
//! A corpus is a list of requests: `METHOD PATH [CONTENT-TYPE]`, header lines `> NAME: VALUE`, the body on the
//! next line if there is one, an empty line. Lines that start with `#` say what the requests are about.
#![expect(clippy::print_stdout, reason = "the result is what it prints")]

mod client;

use bytes::Bytes;
use client::{Fault, connect};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use tiphys_value::Value;

struct Peer {
    sender: SendRequest<Full<Bytes>>,
    token: String,
}

/// Fields that differ between two servers by their nature.
const OWN: [&str; 12] = [
    // Of a column: documentation.
    "description",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "time",
    "lastTransitionTime",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "continue",
    "deletionTimestamp",
    "storageVersionHash",
];

impl Peer {
    async fn open(address: &str, token: &str) -> Result<Self, Fault> {
        Ok(Self { sender: connect(address.parse()?).await?, token: token.to_owned() })
    }

    async fn send(&mut self, head: &str, headers: &[&str], body: &str) -> Result<(u16, Value), Fault> {
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let kind = words.next().unwrap_or("application/json");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", kind);
        let request = headers.iter().fold(request, |request, line| {
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            request.header(name, value)
        });
        let request = request
            .header("authorization", format!("Bearer {}", self.token))
            .header("user-agent", "compare/1");
        self.sender.ready().await?;
        let response =
            self.sender.send_request(request.body(Full::new(Bytes::from(body.to_owned())))?).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
        Ok((code, serde_json::from_slice(&bytes).unwrap_or_else(|_| text())))
    }
}

/// A message without the uids in it.
fn without_uids(message: &Value) -> Vec<&str> {
    let text = message.as_str().unwrap_or_default();
    let revisions = text.contains("Too large resource version") || text.contains("in the precondition");
    let is_revision = |word: &str| revisions && word.bytes().all(|b| b.is_ascii_digit());
    let words = text.split([' ', '(', ')', ',', '"']);
    let is_uid = |word: &str| word.len() == 36 && word.matches('-').count() == 4;
    words.filter(|word| !is_uid(word) && !is_revision(word)).collect()
}

fn is_uid(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() == 36 && text.matches('-').count() == 4)
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // What is generated differs from server to server.
            if map.contains_key("generateName") {
                map.remove("name");
            }
            for value in map.values_mut().filter(|value| is_uid(value)) {
                *value = Value::Null;
            }
            map.retain(|key, _| !OWN.contains(&key.as_str()));
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The first path at which two values differ, with both values.
fn difference(a: &Value, b: &Value, path: &str) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys = x.keys().chain(y.keys().filter(|key| !x.contains_key(*key)));
            keys.into_iter()
                .find_map(|key| difference(&a[key.as_str()], &b[key.as_str()], &format!("{path}.{key}")))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            x.iter().zip(y).enumerate().find_map(|(at, (x, y))| difference(x, y, &format!("{path}[{at}]")))
        }
        _ if a == b => None,
        _ => Some(format!("{path}: real {a}, ours {b}")),
    }
}

/// How many answers were equal.
#[derive(Default)]
struct Score {
    requests: usize,
    codes: usize,
    errors: usize,
    messages: usize,
    answers: usize,
    objects: usize,
}

impl Score {
    fn print(&self, name: &str) {
        println!(
            "{name}: requests {}; code and reason equal {}; errors {}, message equal {}; answers {}, object equal {}",
            self.requests, self.codes, self.errors, self.messages, self.answers, self.objects
        );
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.codes += other.codes;
        self.errors += other.errors;
        self.messages += other.messages;
        self.answers += other.answers;
        self.objects += other.objects;
    }

    fn compare(&mut self, head: &str, real: (u16, Value), ours: (u16, Value)) {
        let ((code, mut expected), (our_code, mut found)) = (real, ours);
        self.requests += 1;
        let same_reason = code == our_code && expected["reason"] == found["reason"];
        self.codes += usize::from(same_reason);
        if !same_reason {
            println!("CODE    {head}\n  real {code} {expected}\n  ours {our_code} {found}");
        }
        if code >= 400 {
            self.errors += 1;
            let same = without_uids(&expected["message"]) == without_uids(&found["message"]);
            self.messages += usize::from(same);
            if !same && same_reason {
                println!("MESSAGE {head}\n  real {}\n  ours {}", expected["message"], found["message"]);
            }
            return;
        }
        self.answers += 1;
        strip(&mut expected);
        strip(&mut found);
        match difference(&expected, &found, "") {
            None => self.objects += 1,
            Some(text) if same_reason => println!("OBJECT  {head}\n  {text}"),
            Some(_) => {}
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [real, real_token, ours, our_token, corpora @ ..] = args.as_slice() else {
        return Err("ADDRESS TOKEN ADDRESS TOKEN CORPUS...".into());
    };
    let (mut real, mut ours) = (Peer::open(real, real_token).await?, Peer::open(ours, our_token).await?);
    let mut total = Score::default();
    for corpus in corpora {
        let text = std::fs::read_to_string(corpus)?;
        let mut score = Score::default();
        for block in text.split("\n\n") {
            let mut lines = block.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
            let Some(head) = lines.next() else { continue };
            let rest: Vec<&str> = lines.collect();
            let headers: Vec<&str> = rest.iter().filter_map(|line| line.strip_prefix("> ")).collect();
            let body = rest.iter().find(|line| !line.starts_with("> ")).copied().unwrap_or_default();
            let expected = real.send(head, &headers, body).await?;
            let found = ours.send(head, &headers, body).await?;
            score.compare(head, expected, found);
        }
        score.print(corpus.rsplit('/').next().unwrap_or(corpus));
        total.add(&score);
    }
    total.print("all");
    Ok(())
}
