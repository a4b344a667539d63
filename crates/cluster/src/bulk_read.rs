//! Reading much of a cluster within bounds: lists page by page, tails of logs.
//!
//! A diagnosis reads every kind of a cluster that may be large, slow or broken. What it takes is bounded for
//! each request, and what was left out is told.

use std::time::Duration;

use http::Method;

use tiphys_value::Value;

use crate::{
    Cluster, ClusterError, Resource,
    client::{PAGE, RawList, unreadable, with_type},
    discovery::escape_segment,
    object::Object,
    retry::{self, Limits},
};

/// The longest page that is read; a longer one is asked for in smaller parts.
const PAGE_BYTES: usize = 32 * 1024 * 1024;
/// By what a page becomes smaller whose answer was too long.
const SMALLER: usize = 8;
/// The media type of lists that hold the metadata alone.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// What reading one list may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many objects are read.
    pub objects: usize,
    /// How many bytes of answers are read.
    pub bytes: usize,
    /// How long the API server may take for one page.
    pub timeout: Duration,
}

/// Which objects of a kind are read, and what of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// Those of this namespace; empty means all.
    pub namespace: &'a str,
    /// Those that this field selector selects; empty means all.
    pub fields: &'a str,
    /// Their metadata alone.
    pub metadata_only: bool,
}

/// How far a list was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many objects were read.
    pub objects: usize,
    /// How many bytes the answers had.
    pub bytes: usize,
    /// Why not all were read.
    pub cut: Option<Cut>,
}

/// Why a list was not read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The bound was reached; as far as the API server tells, so many objects are left.
    Bound {
        /// How many objects were not read.
        remaining: Option<u64>,
    },
    /// A later page could not be had.
    Failed(String),
}

/// The end of a container's log.
#[derive(Clone, Copy, Debug)]
pub struct LogTail<'a> {
    /// Namespace of the pod.
    pub namespace: &'a str,
    /// The pod.
    pub pod: &'a str,
    /// The container.
    pub container: &'a str,
    /// Of the instance that ran before.
    pub previous: bool,
    /// How many lines.
    pub lines: usize,
    /// How many bytes the API server sends at most, from the first of the lines on.
    pub bytes: usize,
}

impl Cluster {
    /// Reads objects of a kind page by page and hands each over as it comes, with its `apiVersion` and
    /// `kind`.
    ///
    /// # Errors
    /// The first page cannot be had. What happens later is told by the extent.
    pub async fn read_list(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        bounds: Bounds,
        mut take: impl FnMut(Value),
    ) -> Result<Extent, ClusterError> {
        let mut extent = Extent::default();
        let (mut more, mut page) = (String::new(), PAGE);
        loop {
            let limit = page.min(bounds.objects.saturating_sub(extent.objects)).max(1);
            let bytes = PAGE_BYTES.min(bounds.bytes.saturating_sub(extent.bytes));
            let limits = Limits { timeout: bounds.timeout, bytes };
            let (length, read) = match self.page(resource, selection, limit, &more, limits).await {
                Err(ClusterError::TooLong { .. }) if limit > 1 => {
                    page = (limit / SMALLER).max(1);
                    continue;
                }
                Err(ClusterError::TooLong { .. }) => {
                    extent.cut = Some(Cut::Bound { remaining: None });
                    return Ok(extent);
                }
                Err(error) if extent.objects > 0 => {
                    extent.cut = Some(Cut::Failed(error.to_string()));
                    return Ok(extent);
                }
                answer => answer?,
            };
            extent.bytes += length;
            for Object(item) in read.items.into_iter().flatten() {
                extent.objects += 1;
                take(with_kind(item, resource, selection.metadata_only));
            }
            more = read.metadata.more;
            if more.is_empty() {
                return Ok(extent);
            }
            if extent.objects >= bounds.objects || extent.bytes >= bounds.bytes {
                extent.cut = Some(Cut::Bound { remaining: read.metadata.remaining_item_count });
                return Ok(extent);
            }
        }
    }

    /// One page of a list, and how many bytes it had.
    async fn page(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        limit: usize,
        more: &str,
        limits: Limits,
    ) -> Result<(usize, RawList), ClusterError> {
        let mut path = format!("{}?limit={limit}", resource.path(selection.namespace, ""));
        for (key, value) in [("fieldSelector", selection.fields), ("continue", more)] {
            if !value.is_empty() {
                path.push_str(&format!("&{key}={}", query(value)));
            }
        }
        let accept = if selection.metadata_only { METADATA } else { "application/json" };
        let request = self.request(accept, Method::GET, &path, "", None)?;
        let answer = retry::send(self.client(), &request, limits, None).await?;
        let read = serde_json::from_slice(&answer).map_err(|error| unreadable(&error))?;
        Ok((answer.len(), read))
    }

    /// The last lines of a container's log.
    ///
    /// # Errors
    /// The request failed, or the log is longer than `tail.bytes`.
    pub async fn log_tail(&self, tail: LogTail<'_>, timeout: Duration) -> Result<String, ClusterError> {
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/log?container={}&tailLines={}&limitBytes={}&previous={}",
            escape_segment(tail.namespace),
            escape_segment(tail.pod),
            query(tail.container),
            tail.lines,
            tail.bytes,
            tail.previous,
        );
        let request = self.request("*/*", Method::GET, &path, "", None)?;
        // The server cuts in the middle of a line, and may count otherwise.
        let limits = Limits { timeout, bytes: tail.bytes.saturating_mul(2) };
        let answer = retry::send(self.client(), &request, limits, None).await?;
        Ok(String::from_utf8(answer)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

/// Percent-encodes the value of a query parameter.
fn query(text: &str) -> String {
    escape_segment(text).replace('+', "%2B").replace(';', "%3B")
}

/// An item with the kind that the list is of: lists of metadata say `PartialObjectMetadata`.
fn with_kind(mut item: Value, resource: &Resource, metadata_only: bool) -> Value {
    if let (Value::Object(map), true) = (&mut item, metadata_only) {
        map.remove("apiVersion");
        map.remove("kind");
    }
    with_type(item, resource)
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use super::*;
    use tiphys_value::{GroupVersionKind, ObjectExt as _, json};

    /// A cluster of `count` ConfigMaps of so many bytes each, and the queries that it was asked.
    fn cluster(count: usize, bytes: usize) -> (Cluster, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = asked.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let value = |key: &str| {
                let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                pairs.find(|(known, _)| *known == key).and_then(|(_, value)| value.parse::<usize>().ok())
            };
            let (limit, from) = (value("limit").unwrap_or(count), value("continue").unwrap_or(0));
            let end = count.min(from + limit);
            let items: Vec<Value> = (from..end)
                .map(|at| json!({"metadata": {"name": format!("m{at}")}, "data": {"a": "x".repeat(bytes)}}))
                .collect();
            let more = if end < count { end.to_string() } else { String::new() };
            let list =
                json!({"metadata": {"continue": more, "remainingItemCount": count - end}, "items": items});
            heard.lock().expect("no panic").push(query);
            let answer = http::Response::new(http_body_util::Full::new(bytes::Bytes::from(list.to_string())));
            async move { Ok::<_, Infallible>(answer) }
        });
        (Cluster::new(service), asked)
    }

    fn maps() -> Resource {
        let gvk = GroupVersionKind::new("", "v1", "ConfigMap");
        Resource { gvk, plural: "configmaps".into(), namespaced: true, verbs: vec!["list".into()] }
    }

    async fn read(cluster: &Cluster, objects: usize, bytes: usize) -> (Extent, Vec<String>) {
        let bounds = Bounds { objects, bytes, timeout: Duration::from_secs(1) };
        let mut names = Vec::new();
        let take = |object: Value| names.push(format!("{} {}", object.kind(), object.name()));
        let extent = cluster.read_list(&maps(), Selection::default(), bounds, take).await;
        (extent.expect("readable"), names)
    }

    #[tokio::test]
    async fn a_list_is_read_page_by_page_to_its_end() {
        let (cluster, asked) = cluster(1_100, 1);
        let (extent, names) = read(&cluster, 10_000, usize::MAX).await;
        assert_eq!((extent.objects, extent.cut), (1_100, None));
        assert_eq!(names.last().map(String::as_str), Some("ConfigMap m1099"));
        let asked = asked.lock().expect("no panic").clone();
        assert_eq!(asked, ["limit=500", "limit=500&continue=500", "limit=500&continue=1000"]);
    }

    #[tokio::test]
    async fn bounds_end_a_list_and_tell_what_is_left() {
        let (cluster, _) = cluster(1_100, 1);
        let (extent, names) = read(&cluster, 600, usize::MAX).await;
        assert_eq!((extent.objects, names.len()), (600, 600));
        assert_eq!(extent.cut, Some(Cut::Bound { remaining: Some(500) }));
    }

    #[tokio::test]
    async fn a_page_that_is_too_long_is_asked_for_in_parts() {
        let (cluster, asked) = cluster(20, 1_000);
        let (extent, names) = read(&cluster, 10_000, 10_000).await;
        assert_eq!(extent.cut, Some(Cut::Bound { remaining: None }), "{extent:?}");
        assert!(!names.is_empty() && names.len() < 10 && extent.bytes <= 10_000, "{names:?}");
        assert!(asked.lock().expect("no panic").len() < 20);
    }
}
