//! Requests.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use http::{Method, Request};
use parking_lot::RwLock;
use serde::{Deserialize, de::DeserializeOwned};
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};
use tower::{BoxError, Service};

use crate::{
    ClusterError, Discovery, Fence, Resource,
    discovery::{AGGREGATED, AggregatedList, CoreVersions, GroupList, ResourceList, escape_segment},
    object::Object,
    retry::{self, Limits},
};

/// How many objects one page of a list holds.
pub(crate) const PAGE: usize = 500;

/// A cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    read_only: bool,
    /// Who gives leave to change something, if not everything may be changed at any time.
    fence: Option<Fence>,
    /// Whom requests are made for, if not for the one who is connected.
    acting_as: Option<Arc<str>>,
    discovery: Arc<RwLock<Arc<Discovery>>>,
    sent: Arc<[AtomicU64; METHODS.len()]>,
}

/// The methods whose requests are counted.
const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// How an object is applied.
#[derive(Clone, Debug)]
pub struct ApplyOptions {
    /// Who owns the fields applied.
    pub field_manager: String,
    /// Take fields that others own.
    pub force: bool,
    /// Change nothing.
    pub dry_run: bool,
    /// Refuse unknown fields.
    pub validate: bool,
}

/// What happens to the objects that an object owns when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They go first.
    Foreground,
    /// They go afterwards.
    Background,
    /// They stay.
    Orphan,
}

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 7396.
    Merge,
    /// RFC 6902.
    Json,
    /// Kubernetes' strategic merge.
    Strategic,
}

impl PatchType {
    fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

/// The objects of a list and the moment it was taken at.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// The objects, each with `apiVersion` and `kind`.
    pub items: Vec<Value>,
    /// Resource version to watch from.
    pub resource_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawList {
    #[serde(default)]
    pub metadata: ListMeta,
    #[serde(default)]
    pub items: Option<Vec<Object>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    pub resource_version: String,
    #[serde(rename = "continue")]
    pub more: String,
    /// How many objects follow this page; API servers do not tell it of lists with selectors.
    pub remaining_item_count: Option<u64>,
}

impl Cluster {
    /// A cluster behind a service: the embedded one, or a connection to a real one. Must be called
    /// inside a Tokio runtime.
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<kube::client::Body>, Response = http::Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::from_client(kube::Client::new(service, "default"))
    }

    pub(crate) fn from_client(client: kube::Client) -> Self {
        Self {
            client,
            read_only: false,
            fence: None,
            acting_as: None,
            discovery: Arc::default(),
            sent: Arc::default(),
        }
    }

    /// The same cluster, of which every request that would change something is refused before it leaves.
    #[must_use]
    pub fn read_only(&self) -> Self {
        Self { read_only: true, ..self.clone() }
    }

    /// The same cluster, of which a request that would change something is sent only while there is leave.
    #[must_use]
    pub fn fenced(&self, fence: &Fence) -> Self {
        Self { fence: Some(fence.clone()), ..self.clone() }
    }

    /// The same cluster, of which every request is made as somebody else (user impersonation).
    #[must_use]
    pub fn acting_as(&self, user: &str) -> Self {
        Self { acting_as: Some(user.into()), ..self.clone() }
    }

    /// How many requests were sent, by method; watches are left out.
    pub fn requests(&self) -> Vec<(&'static str, u64)> {
        let names = ["GET", "POST", "PUT", "PATCH", "DELETE"];
        names.into_iter().zip(self.sent.iter().map(|count| count.load(Ordering::Relaxed))).collect()
    }

    /// What the cluster served when it was last asked.
    pub fn discovery(&self) -> Arc<Discovery> {
        self.discovery.read().clone()
    }

    /// Asks what the cluster serves. A group that does not answer must not stop everything else: it stays as
    /// it was last known, with a warning, and what was never known of it is left out.
    ///
    /// # Errors
    /// The list of groups cannot be read.
    pub async fn discover(&self) -> Result<Arc<Discovery>, ClusterError> {
        let known = self.discovery();
        let discovery = match self.discovered_at_once(&known).await? {
            Some(discovery) => discovery,
            None => self.discovered_by_version(&known).await?,
        };
        if *known == discovery {
            // The same answer is the same object: who keeps one can tell at a glance.
            return Ok(known);
        }
        let discovery = Arc::new(discovery);
        *self.discovery.write() = discovery.clone();
        Ok(discovery)
    }

    /// What the cluster serves, by two requests (aggregated discovery, KEP-3352). `None` if it does not
    /// answer these: API servers do since Kubernetes 1.27.
    async fn discovered_at_once(&self, known: &Discovery) -> Result<Option<Discovery>, ClusterError> {
        let mut discovery = Discovery::default();
        for path in ["/api", "/apis"] {
            let answer = match self.send_accepting(AGGREGATED, Method::GET, path, "", None).await {
                Err(ClusterError::Answer(_)) => None,
                answer => Some(answer?).filter(AggregatedList::is_one),
            };
            let Some(answer) = answer else { return Ok(None) };
            for (group, version) in answer.versions() {
                if version.is_stale() {
                    tracing::warn!(%group, version = %version.version, "API group does not answer");
                    discovery.add_unavailable(group, &version.version);
                    discovery.keep(known, group, &version.version);
                } else {
                    discovery.add_aggregated(group, version);
                }
            }
        }
        Ok(Some(discovery))
    }

    /// What the cluster serves, by one request for each version of each group.
    async fn discovered_by_version(&self, known: &Discovery) -> Result<Discovery, ClusterError> {
        let mut discovery = Discovery::default();
        let core: CoreVersions = self.get_json("/api").await?;
        for version in &core.versions {
            discovery.add("", version, self.get_json(&format!("/api/{version}")).await?);
        }
        let groups: GroupList = self.get_json("/apis").await?;
        for group in &groups.groups {
            for version in group.ordered_versions() {
                let path = format!("/apis/{}/{version}", group.name);
                match self.get_json::<ResourceList>(&path).await {
                    Ok(list) => discovery.add(&group.name, &version, list),
                    // The group is listed, this version of it just went.
                    Err(error) if error.is_not_found() => {}
                    Err(error) => {
                        tracing::warn!(group = %group.name, %version, %error, "API group does not answer");
                        discovery.add_unavailable(&group.name, &version);
                        discovery.keep(known, &group.name, &version);
                    }
                }
            }
        }
        Ok(discovery)
    }

    /// The resource of a kind; asks the cluster again if it was not known.
    ///
    /// # Errors
    /// [`ClusterError::UnknownKind`], or the cluster does not answer.
    pub async fn resource(&self, gvk: &GroupVersionKind) -> Result<Resource, ClusterError> {
        if let Some(resource) = self.discovery().resource(gvk) {
            return Ok(resource.clone());
        }
        let discovery = self.discover().await?;
        discovery.resource(gvk).cloned().ok_or_else(|| ClusterError::UnknownKind(gvk.clone()))
    }

    /// The version of Kubernetes, such as `v1.36.1`.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn version(&self) -> Result<String, ClusterError> {
        let version: Value = self.get_json("/version").await?;
        Ok(version.str_at(&["gitVersion"]).unwrap_or_default().to_owned())
    }

    /// An object, or `None` if it is not there.
    ///
    /// # Errors
    /// The request failed otherwise.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        match self.get_json(&resource.path(namespace, name)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a kind, in one namespace or (empty) in all.
    ///
    /// # Errors
    /// The request failed.
    pub async fn list(&self, resource: &Resource, namespace: &str) -> Result<List, ClusterError> {
        let mut all = List::default();
        let mut more = String::new();
        loop {
            let mut path = format!("{}?limit={PAGE}", resource.path(namespace, ""));
            if !more.is_empty() {
                path.push_str(&format!("&continue={}", escape_segment(&more)));
            }
            let page: RawList = self.get_json(&path).await?;
            all.resource_version = page.metadata.resource_version;
            all.items.extend(
                page.items.unwrap_or_default().into_iter().map(|Object(item)| with_type(item, resource)),
            );
            more = page.metadata.more;
            if more.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Server-side apply. Returns the object as it is then.
    ///
    /// # Errors
    /// Unknown kind, or the request failed.
    pub async fn apply(&self, object: &Value, options: &ApplyOptions) -> Result<Value, ClusterError> {
        let resource = self.resource(&object.gvk()).await?;
        let query = format!(
            "?fieldManager={}&force={}&fieldValidation={}{}",
            escape_segment(&options.field_manager),
            options.force,
            if options.validate { "Strict" } else { "Ignore" },
            if options.dry_run { "&dryRun=All" } else { "" },
        );
        let path = resource.path(object.namespace(), object.name()) + &query;
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", Some(object)).await
    }

    /// Creates an object. Returns it as it is then.
    ///
    /// # Errors
    /// Unknown kind, it exists already, or the request failed.
    pub async fn create(
        &self,
        object: &Value,
        field_manager: &str,
        dry_run: bool,
    ) -> Result<Value, ClusterError> {
        let resource = self.resource(&object.gvk()).await?;
        let path = resource.path(object.namespace(), "") + &write_query(field_manager, dry_run);
        self.send(Method::POST, &path, "application/json", Some(object)).await
    }

    /// Puts an object in the place of the one of its name.
    ///
    /// # Errors
    /// Unknown kind, not there, changed meanwhile, or the request failed.
    pub async fn replace(
        &self,
        object: &Value,
        field_manager: &str,
        dry_run: bool,
    ) -> Result<Value, ClusterError> {
        let resource = self.resource(&object.gvk()).await?;
        let path = resource.path(object.namespace(), object.name()) + &write_query(field_manager, dry_run);
        self.send(Method::PUT, &path, "application/json", Some(object)).await
    }

    /// Patches an object, or one of its subresources if `subresource` is not empty.
    ///
    /// # Errors
    /// Not there, or the request failed.
    pub async fn patch(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        subresource: &str,
        kind: PatchType,
        patch: &Value,
        field_manager: &str,
    ) -> Result<Value, ClusterError> {
        let mut path = resource.path(namespace, name);
        if !subresource.is_empty() {
            path.push('/');
            path.push_str(subresource);
        }
        path.push_str(&write_query(field_manager, false));
        self.send(Method::PATCH, &path, kind.content_type(), Some(patch)).await
    }

    /// Asks for the deletion of an object. `false` if it was not there. With a `uid` only that very
    /// object is deleted.
    ///
    /// # Errors
    /// The object was replaced by another one meanwhile, or the request failed.
    pub async fn delete(
        &self,
        resource: &Resource,
        (namespace, name): (&str, &str),
        propagation: Propagation,
        uid: &str,
        dry_run: bool,
    ) -> Result<bool, ClusterError> {
        let policy = match propagation {
            Propagation::Foreground => "Foreground",
            Propagation::Background => "Background",
            Propagation::Orphan => "Orphan",
        };
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        if !uid.is_empty() {
            options["preconditions"] = json!({"uid": uid});
        }
        if dry_run {
            options["dryRun"] = json!(["All"]);
        }
        let path = resource.path(namespace, name);
        match self.send::<Value>(Method::DELETE, &path, "application/json", Some(&options)).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    async fn get_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClusterError> {
        self.send(Method::GET, path, "", None).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<T, ClusterError> {
        self.send_accepting("application/json", method, path, content_type, body).await
    }

    async fn send_accepting<T: DeserializeOwned>(
        &self,
        accept: &str,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<T, ClusterError> {
        let changes = method != Method::GET && !path.contains("dryRun=All");
        if self.read_only && changes {
            return Err(ClusterError::ReadOnly(format!("{method} {path}")));
        }
        let fence = self.fence.as_ref().filter(|_| changes);
        let request = self.request(accept, method, path, content_type, body)?;
        let answer = retry::send(&self.client, &request, Limits::default(), fence).await?;
        serde_json::from_slice(&answer).map_err(|error| unreadable(&error))
    }

    /// A request, counted as sent.
    pub(crate) fn request(
        &self,
        accept: &str,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Request<Vec<u8>>, ClusterError> {
        let fail = |error: &dyn std::fmt::Display| ClusterError::Transport(error.to_string());
        if let Some(at) = METHODS.iter().position(|known| *known == method) {
            self.sent[at].fetch_add(1, Ordering::Relaxed);
        }
        let bytes = match body {
            Some(body) => serde_json::to_vec(body).map_err(|e| fail(&e))?,
            None => Vec::new(),
        };
        let mut request = Request::builder().method(method).uri(path).header("accept", accept);
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        if let Some(user) = &self.acting_as {
            request = request.header("impersonate-user", &**user);
        }
        request.body(bytes).map_err(|e| fail(&e))
    }
}

/// Why an answer is none, in words about the answer and not about its parser.
pub(crate) fn unreadable(error: &serde_json::Error) -> ClusterError {
    let told = error.to_string();
    ClusterError::Answer(match told.starts_with("recursion limit exceeded") {
        true => "it is nested deeper than 127 levels".to_owned(),
        false => told,
    })
}

fn write_query(field_manager: &str, dry_run: bool) -> String {
    let dry_run = if dry_run { "&dryRun=All" } else { "" };
    format!("?fieldManager={}{dry_run}", escape_segment(field_manager))
}

/// Items of a typed list bear no `apiVersion` and `kind` of their own.
pub(crate) fn with_type(mut item: Value, resource: &Resource) -> Value {
    if let Value::Object(map) = &mut item {
        map.entry("apiVersion").or_insert_with(|| resource.gvk.api_version().into());
        map.entry("kind").or_insert_with(|| resource.gvk.kind.clone().into());
    }
    item
}
