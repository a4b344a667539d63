//! What goes wrong between the engine and the API server, by a plan.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use parking_lot::Mutex;
use tiphys_apiserver::ApiService;
use tiphys_value::json;
use tokio::{sync::Notify, time::Instant};
use tower::{BoxError, Service};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// The server answers with a status code and does nothing.
    Refuse(u16),
    /// The request never arrives: the connection is refused.
    Unreachable,
    /// The server does it, and the answer is lost.
    LoseAnswer,
    /// The server does it, and the answer comes late.
    Late(Duration),
    /// The server does it, and the engine dies before it hears of it.
    Die,
}

/// Tells what becomes of a request: its method, its path with query, and its number.
type Plan = dyn Fn(&str, &str, u64) -> Option<RequestFault> + Send + Sync;

struct State {
    began: Instant,
    plan: Mutex<Option<Arc<Plan>>>,
    count: Mutex<u64>,
    log: Mutex<Vec<String>>,
    /// Every request, with the time at which it came.
    requests: Mutex<Vec<String>>,
    /// Told when all watches are to break off. Who waits is woken in order; those of a `watch` channel are in
    /// a random one.
    cut: Arc<Notify>,
    /// Whether requests are written down.
    is_logging: bool,
    /// Told when the engine dies.
    death: Notify,
}

/// The plan. Cheap to clone.
#[derive(Clone)]
pub struct Faults(Arc<State>);

impl Default for Faults {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Faults {
    fn new(is_logging: bool) -> Self {
        let state = State {
            began: Instant::now(),
            plan: Mutex::default(),
            count: Mutex::default(),
            log: Mutex::default(),
            requests: Mutex::default(),
            cut: Arc::default(),
            is_logging,
            death: Notify::new(),
        };
        Self(Arc::new(state))
    }
}

impl Faults {
    /// Faults that write down every request.
    pub fn logging() -> Self {
        Self::new(true)
    }

    /// Goes by a plan from now on.
    pub fn plan(&self, plan: impl Fn(&str, &str, u64) -> Option<RequestFault> + Send + Sync + 'static) {
        *self.0.plan.lock() = Some(Arc::new(plan));
    }

    /// All is well from now on.
    pub fn end(&self) {
        *self.0.plan.lock() = None;
    }

    /// Breaks off every watch.
    pub fn cut_watches(&self) {
        self.0.cut.notify_waiters();
    }

    /// Returns when the plan has the engine die. Whoever plans that kills it then.
    pub async fn death(&self) {
        self.0.death.notified().await;
    }

    /// The writes that the engine asked for, in order, without those of a dry run.
    pub fn writes(&self) -> Vec<String> {
        self.0.log.lock().clone()
    }

    /// Every request that the engine sent, reads and watches too, with the time at which it did.
    pub fn requests(&self) -> Vec<String> {
        self.0.requests.lock().clone()
    }

    /// The service behind the faults.
    pub fn before(&self, inner: ApiService) -> Faulty {
        Faulty { inner, faults: self.clone() }
    }

    fn note(&self, method: &str, path: &str) {
        let at = self.0.began.elapsed();
        self.0.requests.lock().push(format!("{at:?} {method} {path}"));
        if method != "GET" && !path.contains("dryRun=All") {
            self.0.log.lock().push(format!("{method} {}", path.split('?').next().unwrap_or_default()));
        }
    }

    fn fault(&self, method: &str, path: &str) -> Option<RequestFault> {
        let mut count = self.0.count.lock();
        *count += 1;
        if self.0.is_logging {
            self.note(method, path);
        }
        let plan = self.0.plan.lock().clone()?;
        plan(method, path, *count)
    }
}

/// A server that cannot be relied on.
#[derive(Clone)]
pub struct Faulty {
    inner: ApiService,
    faults: Faults,
}

impl<B> Service<Request<B>> for Faulty
where
    ApiService: Service<Request<B>, Error = Infallible>,
    <ApiService as Service<Request<B>>>::Response: IntoAnswer + Send,
    <ApiService as Service<Request<B>>>::Future: Send + 'static,
{
    type Response = Response<FaultyBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().to_string();
        let fault = self.faults.fault(request.method().as_str(), &path);
        match fault {
            Some(RequestFault::Refuse(code)) => return Box::pin(async move { Ok(refusal(code)) }),
            Some(RequestFault::Unreachable) => return Box::pin(async { Err(broken("connection refused")) }),
            Some(RequestFault::LoseAnswer | RequestFault::Late(_) | RequestFault::Die) | None => {}
        }
        let faults = self.faults.clone();
        let cut = self.faults.0.cut.clone().notified_owned();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let Ok(answer) = answer.await;
            match fault {
                Some(RequestFault::LoseAnswer) => return Err(broken("connection reset by peer")),
                Some(RequestFault::Late(time)) => tokio::time::sleep(time).await,
                Some(RequestFault::Die) => {
                    faults.0.death.notify_one();
                    std::future::pending::<()>().await;
                }
                _ => {}
            }
            Ok(answer.into_answer(Box::pin(cut)))
        })
    }
}

fn broken(why: &str) -> BoxError {
    std::io::Error::new(std::io::ErrorKind::ConnectionReset, why.to_owned()).into()
}

fn refusal(code: u16) -> Response<FaultyBody> {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        429 => "TooManyRequests",
        500 => "InternalError",
        _ => "ServiceUnavailable",
    };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
        "message": format!("a fault answers {code} here"), "code": code});
    let body = FaultyBody::Text(Some(status.to_string().into()));
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    response
}

/// Comes when an answer is to be broken off.
pub type Cut = Pin<Box<dyn Future<Output = ()> + Send>>;
/// The body of an answer of the server.
pub type Inner = Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>;

/// Puts the answer of the server behind what may break it off.
pub trait IntoAnswer {
    /// The answer, until `cut` comes.
    fn into_answer(self, cut: Cut) -> Response<FaultyBody>;
}

impl<T: Body<Data = Bytes, Error = Infallible> + Send + 'static> IntoAnswer for Response<T> {
    fn into_answer(self, cut: Cut) -> Response<FaultyBody> {
        self.map(|body| FaultyBody::Server(Box::pin(body), cut))
    }
}

/// The body of an answer.
pub enum FaultyBody {
    /// A text of ours.
    Text(Option<Bytes>),
    /// What the server answers, until it is cut off.
    Server(Inner, Cut),
}

impl Body for FaultyBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match &mut *self {
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Server(body, cut) => {
                if cut.poll_unpin(cx).is_ready() {
                    *self = Self::Text(None);
                    return Poll::Ready(Some(Err(std::io::Error::other("the connection was cut"))));
                }
                body.as_mut()
                    .poll_frame(cx)
                    .map(|frame| frame.map(|frame| frame.map_err(|never| match never {})))
            }
        }
    }
}
