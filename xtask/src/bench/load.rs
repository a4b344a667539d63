//! Creates, gets and patches of ConfigMaps, as fast as a server takes them.

use std::{net::SocketAddr, time::Instant};

use anyhow::ensure;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use tiphys_apiserver::{ApiServer, ApiServerOptions, Patch};
use tiphys_value::{GroupVersionResource, Value, json};

use crate::https::connect;

/// What [`Rates`] are of.
pub(super) const FIGURES: [&str; 3] = ["creates", "gets", "patches"];

/// Requests a second, one figure for each of [`FIGURES`].
pub(super) type Rates = [f64; 3];

/// What is sent to a server over HTTPS.
pub(super) struct Load<'a> {
    /// Host and port.
    pub address: &'a str,
    /// Bearer token.
    pub token: &'a str,
    /// Objects.
    pub count: usize,
    /// Connections, each of which waits for an answer before its next request.
    pub connections: usize,
}

#[derive(Clone, Copy)]
enum Work {
    Create,
    Get,
    Patch,
}

impl Load<'_> {
    /// Creates all objects, then reads them, then patches them.
    ///
    /// # Errors
    /// A request is refused.
    pub(super) async fn rates(&self) -> anyhow::Result<Rates> {
        Ok([self.rate(Work::Create).await?, self.rate(Work::Get).await?, self.rate(Work::Patch).await?])
    }

    async fn rate(&self, work: Work) -> anyhow::Result<f64> {
        let address: SocketAddr = self.address.parse()?;
        let mut senders = Vec::new();
        for _ in 0..self.connections {
            senders.push(connect(address).await?);
        }
        let start = Instant::now();
        let tasks = senders.into_iter().enumerate().map(|(first, mut sender)| {
            let (token, numbers) = (self.token.to_owned(), (first..self.count).step_by(self.connections));
            tokio::spawn(async move {
                for number in numbers {
                    sender.ready().await?;
                    let response = sender.send_request(request(work, &token, number)?).await?;
                    let status = response.status();
                    let body = response.into_body().collect().await?.to_bytes();
                    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
                }
                Ok(())
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await??;
        }
        Ok(self.count as f64 / start.elapsed().as_secs_f64())
    }
}

fn request(work: Work, token: &str, number: usize) -> anyhow::Result<Request<Full<Bytes>>> {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    let object = || format!("{PATH}/{}", name(number));
    let (method, path, kind, body) = match work {
        Work::Create => (Method::POST, PATH.to_owned(), "application/json", config_map(number).to_string()),
        Work::Get => (Method::GET, object(), "application/json", String::new()),
        Work::Patch => (Method::PATCH, object(), "application/merge-patch+json", change(number).to_string()),
    };
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {token}")).header("content-type", kind);
    Ok(request.body(Full::new(Bytes::from(body)))?)
}

fn name(number: usize) -> String {
    format!("load-{number}")
}

fn config_map(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name(number), "labels": {"app": "load"}},
        "data": {"key": "value", "number": number.to_string()}})
}

fn change(number: usize) -> Value {
    json!({"data": {"key": format!("changed-{number}")}})
}

/// The same work by the client of an embedded server in this process.
///
/// # Errors
/// A request is refused.
pub(super) fn in_process(count: usize) -> anyhow::Result<Rates> {
    let server = ApiServer::new(ApiServerOptions::default())?;
    let client = server.client("load");
    let maps = GroupVersionResource::new("", "v1", "configmaps");
    let rate = |work: &dyn Fn(usize) -> anyhow::Result<()>| {
        let start = Instant::now();
        (0..count).try_for_each(work)?;
        anyhow::Ok(count as f64 / start.elapsed().as_secs_f64())
    };
    Ok([
        rate(&|number| Ok(client.create(&maps, "default", config_map(number)).map(drop)?))?,
        rate(&|number| Ok(client.get(&maps, "default", &name(number)).map(drop)?))?,
        rate(&|number| {
            let patch = Patch::merge(change(number));
            Ok(client.patch(&maps, "default", &name(number), None, &patch).map(drop)?)
        })?,
    ])
}
