//! A connection whose client takes nothing, or says nothing to begin with, is cut off: it must not be held
//! for ever.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// How long a client may take nothing of what it has been sent.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a client may take to say which protocol it speaks, and in how many bytes it does.
const GREETING: Duration = Duration::from_secs(10);
const GREETING_BYTES: usize = 24;

/// Fails writes that make no progress for [`PATIENCE`], and a beginning that takes longer than [`GREETING`].
pub(super) struct Stalling<S> {
    stream: S,
    deadline: Pin<Box<Sleep>>,
    is_waiting: bool,
    /// When the first bytes have to be there, until they are.
    greeting: Option<Pin<Box<Sleep>>>,
    heard: usize,
}

impl<S> Stalling<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            deadline: Box::pin(tokio::time::sleep(PATIENCE)),
            is_waiting: false,
            greeting: Some(Box::pin(tokio::time::sleep(GREETING))),
            heard: 0,
        }
    }

    /// Passes on what came of a write; starts the clock if nothing did.
    fn timed<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.is_waiting = false;
            return outcome;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.deadline.as_mut().reset(Instant::now() + PATIENCE);
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let Some(greeting) = &mut self.greeting else { return outcome };
        if outcome.is_pending() {
            ready!(greeting.as_mut().poll(cx));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client says nothing")));
        }
        self.heard += buffer.filled().len() - before;
        if self.heard >= GREETING_BYTES {
            self.greeting = None;
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buffer);
        self.timed(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.timed(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.timed(cx, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_too_little_is_cut_off() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = Stalling::new(near);
        far.write_all(b"GET / HT").await.unwrap();
        let cut = near.read_exact(&mut [0; 24]).await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = Stalling::new(near);
        far.write_all(&[b'x'; 24]).await.unwrap();
        near.read_exact(&mut [0; 24]).await.unwrap();
        let later = tokio::spawn(async move {
            tokio::time::sleep(GREETING * 3).await;
            far.write_all(b"y").await
        });
        assert_eq!(near.read(&mut [0; 1]).await.unwrap(), 1, "later it may be silent");
        later.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut_off() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut near = Stalling::new(near);
        let reader = tokio::spawn(async move {
            let mut taken = [0; 4];
            for _ in 0..3 {
                tokio::time::sleep(PATIENCE / 2).await;
                far.read_exact(&mut taken).await.unwrap();
            }
            // It lives, but reads no more.
            far
        });
        near.write_all(&[1; 12]).await.unwrap();
        let far = reader.await.unwrap();
        near.write_all(&[2; 4]).await.unwrap();
        let cut = near.write_all(&[3; 1]).await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
        drop(far);
    }
}
