//! The handle to an embedded API server.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, Ordering},
    },
};

use jiff::Timestamp;
use parking_lot::RwLock;
use tiphys_value::Value;
use tokio::io::DuplexStream;

use crate::{
    Change, Entropy, KubernetesVersion, SharedClock, Snapshot, TooOld,
    http::RequestCounts,
    registry::Registry,
    store::{ResourceId, ServiceNetwork, Store},
};

/// How an [`ApiServer`] starts.
pub struct ApiServerOptions {
    /// Where time comes from; the machine's wall time advanced by tokio's clock if not given.
    pub clock: Option<SharedClock>,
    /// Makes uids and generated names repeatable.
    pub seed: Option<u64>,
    /// Where every write is kept; in memory only if not given.
    pub state_dir: Option<PathBuf>,
    /// The bearer token of the administrator; a random one if not given.
    pub token: Option<String>,
    /// Which Kubernetes the server is; the newest that is known if not given.
    pub kubernetes_version: KubernetesVersion,
    /// Where Services get their addresses from; if not given, as the state folder says, or from 10.96.0.0/16.
    pub service_network: Option<ServiceNetwork>,
    /// What becomes of calls to webhooks outside of the cluster: those of a URL, and of Services with
    /// addresses outside.
    pub outbound: Outbound,
}

/// What becomes of calls to webhooks outside of the cluster. The calls carry objects, to wherever other
/// objects say: who serves somebody else's objects makes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outbound {
    /// They are made.
    #[default]
    Call,
    /// They fail.
    Refuse,
    /// They are not made, and the webhook is taken to have no objection.
    Assume,
}

impl Default for ApiServerOptions {
    fn default() -> Self {
        Self {
            clock: None,
            seed: None,
            state_dir: None,
            token: None,
            kubernetes_version: KubernetesVersion::default(),
            service_network: None,
            outbound: Outbound::Call,
        }
    }
}

/// What answers admission and conversion webhooks whose backend is inside the cluster.
pub trait WebhookBackend: Send + Sync {
    /// Calls a webhook with an `AdmissionReview` or `ConversionReview`; returns the answered review, or why
    /// there is none in the words that follow `failed to call webhook: `.
    fn call(&self, webhook: &WebhookCall<'_>) -> Result<Value, String>;
}

/// One call of a webhook.
pub struct WebhookCall<'a> {
    /// The webhook's entry in its configuration; of a conversion one with the name
    /// `conversion_webhook_for_DEFINITION`.
    pub webhook: &'a Value,
    /// The URL that is called.
    pub url: &'a str,
    /// The `AdmissionReview` or `ConversionReview` with the request.
    pub review: &'a Value,
    /// What the store held when the request came.
    pub snapshot: &'a Snapshot,
}

/// What listens in the containers of pods, which run nothing here.
pub trait PodBackend: Send + Sync {
    /// Serves a connection to a port of a pod. `false` if nothing listens there.
    fn connect(&self, pod: &Value, port: u16, connection: DuplexStream) -> bool;
}

pub(crate) struct Inner {
    pub store: Store,
    pub registry: RwLock<Arc<Registry>>,
    pub clock: SharedClock,
    pub entropy: Entropy,
    /// Made when it is first asked for: the cryptographic random source takes tens of milliseconds to start.
    pub token: OnceLock<String>,
    pub webhooks: RwLock<Option<Arc<dyn WebhookBackend>>>,
    pub pods: RwLock<Option<Arc<dyn PodBackend>>>,
    pub version: KubernetesVersion,
    /// See [`ApiServerOptions::outbound`].
    pub outbound: Outbound,
    pub requests: RequestCounts,
    /// Old events are not looked for before this time, in seconds since 1970.
    pub next_event_sweep: AtomicI64,
}

/// An embedded Kubernetes API server. A cheap handle: clones are the same server.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

impl ApiServer {
    /// A server over a store, with nothing in it but what is there.
    pub(crate) fn assemble(
        store: Store,
        clock: SharedClock,
        entropy: Entropy,
        token: OnceLock<String>,
        version: KubernetesVersion,
        outbound: Outbound,
    ) -> Self {
        let registry = RwLock::new(Arc::new(Registry::build(&store.snapshot(), version, None)));
        let inner = Inner {
            store,
            registry,
            clock,
            entropy,
            token,
            webhooks: RwLock::default(),
            pods: RwLock::default(),
            version,
            outbound,
            requests: RequestCounts::default(),
            next_event_sweep: AtomicI64::new(i64::MIN),
        };
        Self { inner: Arc::new(inner) }
    }

    /// An independent server with the same content, clock and random state, in memory. What is written to one
    /// is not seen by the other. Watches do not carry over; nor do the backends of webhooks and pods.
    pub fn fork(&self) -> Self {
        self.fork_with_clock(Arc::clone(&self.inner.clock))
    }

    /// As [`Self::fork`], under another clock: the fork can live ahead of what it came from.
    pub fn fork_with_clock(&self, clock: SharedClock) -> Self {
        let inner = &self.inner;
        let registry = RwLock::new(self.registry());
        let forked = Inner {
            store: inner.store.fork(),
            registry,
            clock,
            entropy: inner.entropy.fork(),
            token: inner.token.clone(),
            webhooks: RwLock::default(),
            pods: RwLock::default(),
            version: inner.version,
            outbound: inner.outbound,
            requests: RequestCounts::default(),
            next_event_sweep: AtomicI64::new(inner.next_event_sweep.load(Ordering::Relaxed)),
        };
        Self { inner: Arc::new(forked) }
    }

    /// Everything in the store now.
    pub fn snapshot(&self) -> Snapshot {
        self.inner.store.snapshot()
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.inner.store.revision()
    }

    /// At most `limit` changes of all resources after a revision, oldest first. Who has fallen too far
    /// behind starts over from [`Self::snapshot`].
    pub fn changes_since(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Change>>, TooOld> {
        self.inner.store.changes_since(None, revision, limit)
    }

    /// Returns once the store has a newer revision than this one.
    pub async fn changed_after(&self, revision: u64) {
        let signal = self.inner.store.any_signal();
        loop {
            let notified = signal.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.revision() > revision {
                return;
            }
            notified.await;
        }
    }

    /// The time on the server's clock.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The server's source of uids and generated names.
    pub fn entropy(&self) -> &Entropy {
        &self.inner.entropy
    }

    /// The bearer token of the administrator.
    pub fn token(&self) -> &str {
        self.inner.token.get_or_init(crate::tls::random_token)
    }

    /// Installs what answers webhooks whose backend is a Service of the cluster.
    pub fn set_webhook_backend(&self, backend: Arc<dyn WebhookBackend>) {
        *self.inner.webhooks.write() = Some(backend);
    }

    /// Installs what listens in pods.
    pub fn set_pod_backend(&self, backend: Arc<dyn PodBackend>) {
        *self.inner.pods.write() = Some(backend);
    }

    pub(crate) fn pod_backend(&self) -> Option<Arc<dyn PodBackend>> {
        self.inner.pods.read().clone()
    }

    /// Where objects of a kind are stored, and whether they live in namespaces; `None` if it is not served.
    pub fn resource_of_kind(&self, gvk: &tiphys_value::GroupVersionKind) -> Option<(ResourceId, bool)> {
        self.registry().by_kind(gvk).map(|r| (r.id.clone(), r.namespaced))
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.inner.registry.read())
    }

    pub(crate) fn reload_registry(&self) {
        let registry =
            Arc::new(Registry::build(&self.snapshot(), self.inner.version, Some(&self.registry())));
        *self.inner.registry.write() = registry;
    }
}
