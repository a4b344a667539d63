//! Work that blocks: reading files, asking hosts, rendering.

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::JoinError,
};

/// Does it on a thread of its own. A runtime of one thread does it itself: virtual time is of such a runtime,
/// and what happens in it must not depend on how long a thread takes.
///
/// # Errors
/// It panicked, or the runtime ends.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => tokio::spawn(async move { work() }).await,
        _ => tokio::task::spawn_blocking(work).await,
    }
}
