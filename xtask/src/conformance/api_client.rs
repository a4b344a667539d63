//! One of the two API servers, as a client sees it.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use serde_json::Value;

use super::corpus::Exchange;
use crate::https::connect;

/// How long an answer may take; watches without an end would take for ever.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection to an API server.
pub(super) struct Peer {
    address: SocketAddr,
    token: String,
    sender: SendRequest<Full<Bytes>>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// HTTP status.
    pub code: u16,
    /// The body; text that is no JSON as a string.
    pub body: Value,
    /// `Warning` headers.
    pub warnings: Vec<String>,
}

impl Peer {
    /// Connects as the holder of a token.
    ///
    /// # Errors
    /// Nobody answers there.
    pub(super) async fn open(address: &str, token: &str) -> anyhow::Result<Self> {
        let address = address.parse().with_context(|| address.to_owned())?;
        let sender = connect(address).await?;
        Ok(Self { address, token: token.to_owned(), sender })
    }

    /// Sends one request and reads the whole answer. A server that gives none, twice, is said to answer with
    /// code 0.
    ///
    /// # Errors
    /// Nobody listens there any longer, or the answer takes too long.
    pub(super) async fn send(&mut self, exchange: &Exchange) -> anyhow::Result<Answer> {
        let answer = tokio::time::timeout(PATIENCE, self.send_twice(exchange)).await;
        answer.with_context(|| format!("no answer to {} {}", exchange.method, exchange.path))?
    }

    async fn send_twice(&mut self, exchange: &Exchange) -> anyhow::Result<Answer> {
        match self.try_send(exchange).await {
            Ok(answer) => Ok(answer),
            // A server may close a connection after an answer that it gave early.
            Err(_) => {
                self.sender = connect(self.address).await?;
                let again = self.try_send(exchange).await;
                if again.is_err() {
                    self.sender = connect(self.address).await?;
                }
                Ok(again.unwrap_or_else(|error| Answer {
                    code: 0,
                    body: error.to_string().into(),
                    warnings: Vec::new(),
                }))
            }
        }
    }

    async fn try_send(&mut self, exchange: &Exchange) -> anyhow::Result<Answer> {
        let mut request = Request::builder().method(exchange.method.as_str()).uri(&exchange.path);
        let headers = exchange.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in headers.chain([("host", "localhost"), ("user-agent", "conformance/1")]) {
            request = request.header(name, value);
        }
        request = request.header("content-type", &exchange.content_type);
        request = request.header("authorization", format!("Bearer {}", self.token));
        self.sender.ready().await?;
        let body = Full::new(Bytes::from(exchange.body.clone()));
        let response = self.sender.send_request(request.body(body)?).await?;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        let kind = response.headers().get("content-type").cloned();
        let is_yaml = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/yaml"));
        let bytes = response.into_body().collect().await?.to_bytes();
        let body = match is_yaml {
            true => tiphys_yaml::from_yaml(&String::from_utf8_lossy(&bytes)).context("YAML that is none")?,
            false => read(&bytes),
        };
        Ok(Answer { code, body, warnings })
    }
}

/// A JSON value, the values of a stream, or text.
fn read(bytes: &[u8]) -> Value {
    let values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
    match values.collect::<Result<Vec<_>, _>>() {
        Ok(mut values) if values.len() == 1 => values.remove(0),
        Ok(values) if !values.is_empty() => values.into(),
        _ => String::from_utf8_lossy(bytes).into_owned().into(),
    }
}
