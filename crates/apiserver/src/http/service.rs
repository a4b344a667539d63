//! The server as a `tower::Service`: what a client is given, in process or behind a socket.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use tower::Service;

use super::{ResponseBody, dispatch, response::error_response};
use crate::{ApiError, ApiServer, auth::User};

/// Most bytes of a request body.
const MAX_BODY: usize = 3 * 1024 * 1024;

impl ApiServer {
    /// The API as a service for clients in the same process: they are the administrator and need no token.
    pub fn service(&self) -> ApiService {
        ApiService { server: self.clone(), user: Some(User::admin()) }
    }

    /// The API as a service that authenticates every request by its bearer token.
    pub fn authenticated_service(&self) -> ApiService {
        ApiService { server: self.clone(), user: None }
    }
}

/// The HTTP API of an [`ApiServer`]; cheap to clone. Can stand under `kube::Client`.
#[derive(Clone)]
pub struct ApiService {
    server: ApiServer,
    user: Option<User>,
}

impl<B> Service<Request<B>> for ApiService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (server, user) = (self.server.clone(), self.user.clone());
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let response = match collect(body).await {
                Ok(bytes) => dispatch::handle(&server, user, &parts, bytes).await,
                Err(error) => error_response(&error),
            };
            server.inner.requests.count(&parts.method, response.status());
            Ok(response)
        })
    }
}

/// Reads a body up to the limit.
async fn collect<B>(body: B) -> Result<Bytes, ApiError>
where
    B: Body,
    B::Error: std::fmt::Display,
{
    let mut body = std::pin::pin!(body);
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| ApiError::bad_request(format!("unable to read the body: {e}")))?;
        let Ok(mut data) = frame.into_data() else { continue };
        if bytes.len() + data.remaining() > MAX_BODY {
            return Err(ApiError::too_large(format!("Request entity too large: limit is {MAX_BODY}")));
        }
        bytes.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    Ok(bytes.freeze())
}
