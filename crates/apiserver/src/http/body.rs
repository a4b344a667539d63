//! Response bodies: a finished text, or a watch that goes on.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::stream::BoxStream;
use http_body::{Body, Frame, SizeHint};

/// The body of a response.
pub struct ResponseBody(Kind);

enum Kind {
    Full(Option<Bytes>),
    Stream(BoxStream<'static, Bytes>),
}

impl ResponseBody {
    pub(super) fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Full(Some(bytes.into())))
    }

    /// The bytes of a finished body.
    pub(super) fn whole(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::Full(bytes) => bytes.as_ref(),
            Kind::Stream(_) => None,
        }
    }

    pub(super) fn stream(stream: BoxStream<'static, Bytes>) -> Self {
        Self(Kind::Stream(stream))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Full(bytes) => {
                Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b))))
            }
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|b| Ok(Frame::data(b))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Full(None)) || matches!(&self.0, Kind::Full(Some(bytes)) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}
