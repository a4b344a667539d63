//! The API without HTTP: for controllers and tests in the same process.

use std::sync::Arc;

use tiphys_value::{GroupVersionResource, Value};

use crate::{
    ApiError, ApiResult, ApiServer, Object,
    auth::User,
    ops::{self, At, Call},
};

pub use crate::ops::{DeleteOptions, ListOptions, Patch};

/// A client in the same process. Every call is what the HTTP request would do, carried out at once.
/// Objects are returned as stored (in their storage version).
#[derive(Clone)]
pub struct Client {
    server: ApiServer,
    user: User,
    manager: String,
    dry_run: bool,
}

/// A list and the revision it was taken at.
#[derive(Clone, Debug)]
pub struct List {
    /// The revision from which a watch continues.
    pub revision: u64,
    /// The objects, ordered by namespace and name.
    pub items: Vec<Arc<Object>>,
}

impl ApiServer {
    /// A client in the same process, acting as the cluster's administrator. Its writes are recorded
    /// under the field manager `name`.
    pub fn client(&self, name: &str) -> Client {
        Client::new(self.clone(), User::admin(), name)
    }
}

impl Client {
    pub(crate) fn new(server: ApiServer, user: User, manager: &str) -> Self {
        Self { server, user, manager: manager.to_owned(), dry_run: false }
    }

    /// The same client, carrying out everything but keeping nothing.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// The server behind the client.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// One object; the namespace is empty for cluster-scoped resources.
    pub fn get(&self, gvr: &GroupVersionResource, namespace: &str, name: &str) -> ApiResult<Arc<Object>> {
        ops::get(&self.server, &self.locate(gvr, namespace, name, None)?)
    }

    /// The objects of a namespace, or of all.
    pub fn list(
        &self,
        gvr: &GroupVersionResource,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> ApiResult<List> {
        let at = self.locate(gvr, namespace.unwrap_or_default(), "", None)?;
        let page = ops::list(&self.server, &at, options)?;
        Ok(List { revision: page.revision, items: page.items })
    }

    /// Creates an object.
    pub fn create(
        &self,
        gvr: &GroupVersionResource,
        namespace: &str,
        object: Value,
    ) -> ApiResult<Arc<Object>> {
        ops::create(&self.server, &mut self.call(), &self.locate(gvr, namespace, "", None)?, object)
    }

    /// Replaces an object; `metadata.resourceVersion` guards against lost updates if it is given.
    pub fn update(&self, gvr: &GroupVersionResource, object: Value) -> ApiResult<Arc<Object>> {
        self.replace(gvr, object, None)
    }

    /// Replaces the status of an object.
    pub fn update_status(&self, gvr: &GroupVersionResource, object: Value) -> ApiResult<Arc<Object>> {
        self.replace(gvr, object, Some("status"))
    }

    /// Replaces a subresource whose body is the object itself, such as a namespace's `finalize`.
    pub fn update_subresource(
        &self,
        gvr: &GroupVersionResource,
        object: Value,
        subresource: &str,
    ) -> ApiResult<Arc<Object>> {
        self.replace(gvr, object, Some(subresource))
    }

    /// Creates an object's subresource: `binding` or `eviction` of a pod.
    pub fn create_subresource(
        &self,
        gvr: &GroupVersionResource,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: Value,
    ) -> ApiResult<Value> {
        let at = self.locate(gvr, namespace, name, Some(subresource))?;
        ops::create_subresource(&self.server, &mut self.call(), &at, body)
    }

    /// Patches an object or a subresource of it.
    pub fn patch(
        &self,
        gvr: &GroupVersionResource,
        namespace: &str,
        name: &str,
        subresource: Option<&str>,
        patch: &Patch,
    ) -> ApiResult<Arc<Object>> {
        let at = self.locate(gvr, namespace, name, subresource)?;
        ops::patch(&self.server, &mut self.call(), &at, patch).map(|(object, _)| object)
    }

    /// Deletes an object: at once, or by marking it if finalizers or a grace period hold it.
    /// Returns its last state.
    pub fn delete(
        &self,
        gvr: &GroupVersionResource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> ApiResult<Arc<Object>> {
        let at = self.locate(gvr, namespace, name, None)?;
        ops::delete(&self.server, &mut self.call(), &at, options).map(|outcome| outcome.object)
    }

    fn replace(
        &self,
        gvr: &GroupVersionResource,
        object: Value,
        subresource: Option<&str>,
    ) -> ApiResult<Arc<Object>> {
        use tiphys_value::ObjectExt;
        let at = self.locate(gvr, object.namespace(), object.name(), subresource)?;
        ops::update(&self.server, &mut self.call(), &at, object).map(|(object, _)| object)
    }

    fn call(&self) -> Call {
        let mut call = Call::new(self.user.clone(), &self.manager);
        call.dry_run = self.dry_run;
        call
    }

    fn locate(
        &self,
        gvr: &GroupVersionResource,
        namespace: &str,
        name: &str,
        subresource: Option<&str>,
    ) -> ApiResult<At> {
        let registry = self.server.registry();
        let resource =
            registry.find(&gvr.group, &gvr.version, &gvr.resource).ok_or_else(ApiError::no_such_path)?;
        Ok(At {
            resource: Arc::clone(resource),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.map(str::to_owned),
        })
    }
}
