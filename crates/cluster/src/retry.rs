//! One request as it is sent: what the API server declined is asked again when it says so.

use std::time::Duration;

use http::{Method, StatusCode, header::RETRY_AFTER};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::{client::Body, core::Status};

use crate::{ClusterError, Fence};

/// How often one request is sent at most.
const ATTEMPTS: u32 = 5;
/// The pause before the second attempt where the server names none; it doubles from attempt to attempt.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest pause that is waited out here: whoever asked can wait longer without holding a worker.
const LONGEST: Duration = Duration::from_secs(10);
/// How long the answer to a request may take: API servers give up after 60 s themselves.
const TIMEOUT: Duration = Duration::from_secs(90);

/// What the answer to one request may take.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How many bytes the answer may have.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout: TIMEOUT, bytes: usize::MAX }
    }
}

/// Why an attempt failed.
struct Failed {
    error: ClusterError,
    /// `Retry-After` of the answer.
    after: Option<Duration>,
}

impl Failed {
    /// The pause before the same request may be sent again; `None` if it must not be. What the server
    /// declined (429, or any failure with `Retry-After`) was not done; whether a write was done that failed
    /// otherwise, nobody knows here.
    fn pause(&self, method: &Method, attempt: u32) -> Option<Duration> {
        let ClusterError::Api { code, .. } = &self.error else { return None };
        let declined = *code == 429 || (*code >= 500 && self.after.is_some());
        let passes = *method == Method::GET && matches!(code, 500 | 502..=504);
        if attempt >= ATTEMPTS || !(declined || passes) {
            return None;
        }
        let own = PAUSE * 2u32.pow(attempt - 1);
        Some(self.after.map_or(own, |asked| asked.max(own))).filter(|pause| *pause <= LONGEST)
    }
}

/// Sends a request, and again as long as the server declines it. Returns the body of the answer.
///
/// # Errors
/// The last answer was a failure, or there was none.
pub(crate) async fn send(
    client: &kube::Client,
    request: &http::Request<Vec<u8>>,
    limits: Limits,
    fence: Option<&Fence>,
) -> Result<Vec<u8>, ClusterError> {
    let mut attempt = 1;
    loop {
        let answer = tokio::time::timeout(limits.timeout, send_once(client, request.clone(), limits));
        let answer = match fence {
            None => answer.await,
            Some(fence) => {
                fence.pass().await?;
                tokio::select! {
                    // A process that stood still must not go on sending: this is looked at first.
                    biased;
                    () = fence.lapsed() => return Err(lapsed()),
                    answer = answer => answer,
                }
            }
        };
        let failed = match answer {
            Ok(Ok(body)) => return Ok(body),
            Ok(Err(failed)) => failed,
            Err(_) => {
                return Err(ClusterError::Transport(format!("no answer within {:?}", limits.timeout)));
            }
        };
        let Some(pause) = failed.pause(request.method(), attempt) else { return Err(failed.error) };
        tracing::debug!(uri = %request.uri(), error = %failed.error, ?pause, "asked again");
        tokio::time::sleep(pause).await;
        attempt += 1;
    }
}

/// Whether the write was done, nobody knows here.
fn lapsed() -> ClusterError {
    ClusterError::Transport("the Lease was not renewed in time: the answer is not waited for".to_owned())
}

async fn send_once(
    client: &kube::Client,
    request: http::Request<Vec<u8>>,
    limits: Limits,
) -> Result<Vec<u8>, Failed> {
    let plain = |error: kube::Error| Failed { error: error.into(), after: None };
    let answer = client.send(request.map(Body::from)).await.map_err(plain)?;
    let status = answer.status();
    let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = Limited::new(answer.into_body(), limits.bytes).collect().await;
    let body = body.map_err(|error| Failed { error: cut_short(error, limits), after: None })?.to_bytes();
    if status.is_client_error() || status.is_server_error() {
        return Err(Failed { error: failure(status, &body), after: seconds.map(Duration::from_secs) });
    }
    Ok(body.into())
}

/// Why the body of an answer was not read to its end.
fn cut_short(error: Box<dyn std::error::Error + Send + Sync>, limits: Limits) -> ClusterError {
    if error.is::<LengthLimitError>() {
        return ClusterError::TooLong { bytes: limits.bytes };
    }
    match error.downcast::<kube::Error>() {
        Ok(error) => (*error).into(),
        Err(error) => ClusterError::Transport(error.to_string()),
    }
}

/// What a failure's body says: a `Status`, or the text of whoever stands before the API server.
fn failure(code: StatusCode, body: &[u8]) -> ClusterError {
    match serde_json::from_slice::<Status>(body) {
        Ok(status) if status.code != 0 => status.into(),
        _ => {
            let text = String::from_utf8_lossy(body);
            let text = text.trim();
            let message = if text.is_empty() { code.to_string() } else { text.to_owned() };
            ClusterError::Api { code: code.as_u16(), reason: String::new(), message }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use super::*;
    use tokio::time::Instant;

    type Answer = (u16, Option<&'static str>);

    /// A client of a server that gives these answers one after the other, and 200 afterwards.
    fn client(answers: &[Answer]) -> (kube::Client, Arc<Mutex<usize>>) {
        let count = Arc::new(Mutex::new(0));
        let (answers, counted) = (answers.to_vec(), count.clone());
        let service = tower::service_fn(move |_: http::Request<Body>| {
            let mut count = counted.lock().expect("no panic");
            let (code, after) = answers.get(*count).copied().unwrap_or((200, None));
            *count += 1;
            let mut answer = http::Response::builder().status(code);
            if let Some(after) = after {
                answer = answer.header(RETRY_AFTER, after);
            }
            let answer = answer.body(http_body_util::Full::new(bytes::Bytes::from_static(b"busy")));
            async move { Ok::<_, Infallible>(answer.expect("valid")) }
        });
        (kube::Client::new(service, "default"), count)
    }

    async fn sent(method: Method, answers: &[Answer]) -> (Result<Vec<u8>, ClusterError>, usize, Duration) {
        let (client, count) = client(answers);
        let request = http::Request::builder().method(method).uri("/api").body(Vec::new()).expect("valid");
        let start = Instant::now();
        let result = send(&client, &request, Limits::default(), None).await;
        let count = *count.lock().expect("no panic");
        (result, count, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_declined_is_sent_again_when_the_server_says() {
        let (result, count, time) =
            sent(Method::PATCH, &[(429, Some("3")), (429, None), (503, Some("1"))]).await;
        assert!(result.is_ok());
        assert_eq!(count, 4);
        assert!((4500..5000).contains(&time.as_millis()), "3 s, 0.5 s and 1 s, not {time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn reads_that_fail_for_the_moment_are_repeated_and_writes_are_not() {
        let (read, reads, _) = sent(Method::GET, &[(500, None), (504, None)]).await;
        assert!(read.is_ok());
        assert_eq!(reads, 3);
        let (write, writes, _) = sent(Method::POST, &[(500, None)]).await;
        assert_eq!(writes, 1);
        assert_eq!(write.expect_err("failed").to_string(), "busy");
    }

    #[tokio::test(start_paused = true)]
    async fn neither_refusals_nor_long_pauses_are_waited_out() {
        for answer in [(403, None), (404, None), (429, Some("60"))] {
            let (result, count, time) = sent(Method::GET, &[answer]).await;
            assert!(matches!(result, Err(ClusterError::Api { code, .. }) if code == answer.0));
            assert_eq!((count, time), (1, Duration::ZERO));
        }
        let (result, count, _) = sent(Method::DELETE, &[(429, None); 9]).await;
        assert!(result.is_err());
        assert_eq!(count, 5);
    }
}
