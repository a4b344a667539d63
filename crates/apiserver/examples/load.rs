//! Measures an API server, embedded or real, over HTTPS: creates, gets and patches of ConfigMaps a second.
//! `cargo run --release -p tiphys-apiserver --example load -- ADDRESS TOKEN [COUNT] [CONNECTIONS]`, or with
//! `in-process COUNT` the embedded server without HTTP.

#![expect(clippy::print_stdout, reason = "the result is what it prints")]

mod client;

use std::{net::SocketAddr, time::Instant};

use bytes::Bytes;
use client::{Fault, connect};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use tiphys_apiserver::{ApiServer, ApiServerOptions, Patch};
use tiphys_value::{GroupVersionResource, json};

#[derive(Clone, Copy)]
enum Work {
    Create,
    Get,
    Patch,
}

fn request(work: Work, token: &str, number: usize) -> Result<Request<Full<Bytes>>, Fault> {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    let name = format!("load-{number}");
    let (method, path, kind, body) = match work {
        Work::Create => {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "load"}}, "data": {"key": "value", "number": number.to_string()}});
            (Method::POST, PATH.to_owned(), "application/json", object.to_string())
        }
        Work::Get => (Method::GET, format!("{PATH}/{name}"), "application/json", String::new()),
        Work::Patch => {
            let patch = json!({"data": {"key": format!("changed-{number}")}});
            (Method::PATCH, format!("{PATH}/{name}"), "application/merge-patch+json", patch.to_string())
        }
    };
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    let request = request.header("authorization", format!("Bearer {token}")).header("content-type", kind);
    Ok(request.body(Full::new(Bytes::from(body)))?)
}

async fn run(
    address: SocketAddr,
    token: &str,
    work: Work,
    count: usize,
    connections: usize,
) -> Result<f64, Fault> {
    let mut senders = Vec::new();
    for _ in 0..connections {
        senders.push(connect(address).await?);
    }
    let start = Instant::now();
    let mut tasks = Vec::new();
    for (first, mut sender) in senders.into_iter().enumerate() {
        let token = token.to_owned();
        tasks.push(tokio::spawn(async move {
            for number in (first..count).step_by(connections) {
                sender.ready().await?;
                let response = sender.send_request(request(work, &token, number)?).await?;
                let status = response.status();
                let body = response.into_body().collect().await?.to_bytes();
                if !status.is_success() {
                    return Err(Fault::from(format!("{status}: {}", String::from_utf8_lossy(&body))));
                }
            }
            Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

/// The same work through the client in the same process.
fn in_process(count: usize) -> Result<(), Fault> {
    let server = ApiServer::new(ApiServerOptions::default())?;
    let client = server.client("load");
    let maps = GroupVersionResource::new("", "v1", "configmaps");
    let rate = |start: Instant| count as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    for number in 0..count {
        let object = json!({"metadata": {"name": format!("load-{number}"), "labels": {"app": "load"}}, "data": {"key": "value", "number": number.to_string()}});
        client.create(&maps, "default", object)?;
    }
    println!("creates/s: {:.0}", rate(start));
    let start = Instant::now();
    for number in 0..count {
        client.get(&maps, "default", &format!("load-{number}"))?;
    }
    println!("gets/s: {:.0}", rate(start));
    let start = Instant::now();
    for number in 0..count {
        let patch = Patch::merge(json!({"data": {"key": format!("changed-{number}")}}));
        client.patch(&maps, "default", &format!("load-{number}"), None, &patch)?;
    }
    println!("patches/s: {:.0}", rate(start));
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, count] = args.as_slice()
        && mode == "in-process"
    {
        return in_process(count.parse()?);
    }
    let [address, token, rest @ ..] = args.as_slice() else {
        return Err("ADDRESS TOKEN [COUNT] [CONNECTIONS]".into());
    };
    let count = rest.first().map_or(Ok(10_000), |text| text.parse())?;
    let connections = rest.get(1).map_or(Ok(16), |text| text.parse())?;
    let address: SocketAddr = address.parse()?;
    for (name, work) in [("creates", Work::Create), ("gets", Work::Get), ("patches", Work::Patch)] {
        println!("{name}/s: {:.0}", run(address, token, work, count, connections).await?);
    }
    Ok(())
}
