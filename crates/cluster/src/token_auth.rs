//! Requests in the name of an identity whose tokens end.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, Request, header::AUTHORIZATION};
use kube::client::Body;
use tiphys_identity::{Identity, Tokens};
use tower::{BoxError, filter::AsyncPredicate};

/// Sends with each request the token that an identity has by then.
#[derive(Clone)]
pub(crate) struct Bearer {
    identity: Identity,
    tokens: Arc<Tokens<Identity>>,
}

impl Bearer {
    pub(crate) fn new(identity: Identity) -> Self {
        Self { identity, tokens: Arc::default() }
    }
}

impl AsyncPredicate<Request<Body>> for Bearer {
    type Future = BoxFuture<'static, Result<Request<Body>, BoxError>>;
    type Request = Request<Body>;

    fn check(&mut self, mut request: Request<Body>) -> Self::Future {
        let Self { identity, tokens } = self.clone();
        async move {
            // Services that hand out tokens are asked by clients that block.
            let asked = tokio::task::spawn_blocking(move || {
                tokens.get_or_request(&identity, || identity.token(&tiphys_identity::client()?))
            });
            let mut value = HeaderValue::try_from(format!("Bearer {}", asked.await??))?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
            Ok(request)
        }
        .boxed()
    }
}
