//! Leave to write that ends by itself. Of several programs that share work only one may write an object, also
//! if one of them stands still for a while and then goes on where it was.

use std::sync::Arc;

use tokio::{sync::watch, time::Instant};

use crate::ClusterError;

/// Until when something may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    Until(Instant),
    /// It was given to somebody else and does not come back.
    Ended,
}

/// Leave to write, given again and again for a short time. Cheap to clone; all clones are one.
///
/// A request that would change something waits while there is no leave, and is given up when its leave ends
/// before the answer comes: whoever takes over may count on nothing more being sent.
#[derive(Clone, Debug)]
pub struct Fence(Arc<watch::Sender<Leave>>);

impl Default for Fence {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Leave::Until(Instant::now()))))
    }
}

impl Fence {
    /// Gives leave until a moment, unless it has ended for good.
    pub fn open_until(&self, end: Instant) {
        self.0.send_if_modified(|leave| {
            let is_new = *leave != Leave::Ended && *leave != Leave::Until(end);
            if is_new {
                *leave = Leave::Until(end);
            }
            is_new
        });
    }

    /// Ends the leave for good.
    pub fn end(&self) {
        self.0.send_replace(Leave::Ended);
    }

    /// Whether something may be written now.
    pub fn is_open(&self) -> bool {
        matches!(*self.0.borrow(), Leave::Until(end) if Instant::now() < end)
    }

    /// Returns as soon as there is leave.
    ///
    /// # Errors
    /// [`ClusterError::LeaveEnded`]
    pub(crate) async fn pass(&self) -> Result<(), ClusterError> {
        let mut changes = self.0.subscribe();
        loop {
            match *changes.borrow_and_update() {
                Leave::Ended => return Err(ClusterError::LeaveEnded),
                Leave::Until(end) if Instant::now() < end => return Ok(()),
                Leave::Until(_) => {}
            }
            // The sender lives as long as this fence.
            let _ = changes.changed().await;
        }
    }

    /// Returns when the leave has ended, for now or for good.
    pub(crate) async fn lapsed(&self) {
        let mut changes = self.0.subscribe();
        loop {
            let Leave::Until(end) = *changes.borrow_and_update() else { return };
            if tokio::time::timeout_at(end, changes.changed()).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn leave_lapses_by_itself_and_is_given_anew() {
        let fence = Fence::default();
        assert!(fence.pass().now_or_never().is_none(), "there is none at first");
        fence.open_until(Instant::now() + Duration::from_secs(7));
        assert!(fence.pass().now_or_never().expect("it is open").is_ok() && fence.is_open());
        let lapsed = fence.lapsed();
        tokio::pin!(lapsed);
        tokio::time::advance(Duration::from_secs(5)).await;
        fence.open_until(Instant::now() + Duration::from_secs(7));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(lapsed.as_mut().now_or_never().is_none(), "it was given anew");
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(lapsed.now_or_never().is_some() && !fence.is_open());
        let waits = tokio::spawn({
            let fence = fence.clone();
            async move { fence.pass().await }
        });
        tokio::task::yield_now().await;
        fence.open_until(Instant::now() + Duration::from_secs(1));
        assert!(waits.await.expect("no panic").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn leave_that_ended_does_not_come_back() {
        let fence = Fence::default();
        fence.end();
        fence.open_until(Instant::now() + Duration::from_secs(7));
        assert!(!fence.is_open() && matches!(fence.pass().await, Err(ClusterError::LeaveEnded)));
        fence.lapsed().await;
    }
}
