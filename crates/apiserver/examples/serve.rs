//! Serves an empty cluster: `cargo run -p tiphys-apiserver --example serve -- 127.0.0.1:6443 kubeconfig
//! [state-dir]`.

use std::{net::SocketAddr, path::PathBuf};

use tiphys_apiserver::{ApiServer, ApiServerOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let address: SocketAddr = args.next().unwrap_or_else(|| "127.0.0.1:6443".into()).parse()?;
    let kubeconfig = PathBuf::from(args.next().unwrap_or_else(|| "kubeconfig".into()));
    let state_dir = args.next().map(PathBuf::from);
    let server = ApiServer::new(ApiServerOptions { state_dir, ..ApiServerOptions::default() })?;
    let serving = server.bind(address).await?;
    serving.write_kubeconfig(&kubeconfig)?;
    serving.run().await;
    Ok(())
}
