//! Watches: what is there (if asked for), then every change, one JSON object a line.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use tiphys_value::{ObjectExt, Value, json};

use super::{
    ResponseBody,
    context::Context,
    negotiate::{self, Form},
    response::{object_text, partial, raw_response},
    table,
};
use crate::{
    ApiError, ApiResult, ApiServer, Change, ChangeKind, Object, Snapshot, ops::At, registry::Resource,
    selectors::Selection,
};

/// How often a client that asked for bookmarks gets one.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// How long a watch lasts if the client does not say.
const LIFETIME: Duration = Duration::from_secs(1800);
/// How many changes are taken from the log at once.
const BATCH: usize = 256;
/// How much is written at once, in bytes, give or take one object: what a client that does not read costs.
const CHUNK: usize = 128 * 1024;

struct Watcher {
    server: ApiServer,
    at: At,
    selection: Selection,
    form: Form,
    include: String,
    bookmarks: bool,
    revision: u64,
    sent_columns: bool,
    ends: tokio::time::Instant,
    done: bool,
    /// Why it cannot begin: that is an event too.
    failed: Option<ApiError>,
    /// What was there in the beginning and has not been shown yet.
    initial: Option<Initial>,
}

/// The objects that a watch begins with.
struct Initial {
    snapshot: Snapshot,
    /// The key of the last one that has been shown.
    after: Option<Arc<str>>,
    /// Whether a bookmark says where they end.
    ends_with_bookmark: bool,
}

/// Starts a watch.
pub(super) fn serve(context: &Context<'_>, at: &At) -> ApiResult<Response<ResponseBody>> {
    if !at.resource.has_verb("watch") {
        return Err(ApiError::method_not_supported(at.resource.object_named(""), "watch"));
    }
    let watcher = start(context, at)?;
    let stream = futures::stream::unfold(watcher, next);
    let mut response = raw_response(200, "application/json", Bytes::new());
    *response.body_mut() = ResponseBody::stream(stream.boxed());
    Ok(response)
}

fn start(context: &Context<'_>, at: &At) -> ApiResult<Watcher> {
    let query = &context.query;
    let mut fields = query.get("fieldSelector").to_owned();
    if !at.name.is_empty() {
        fields = format!("metadata.name={}", at.name);
    }
    let selection = Selection::parse(&at.resource, query.get("labelSelector"), &fields)?;
    let initial = match query.get("sendInitialEvents") {
        "" => None,
        _ => Some(query.flag("sendInitialEvents")),
    };
    check_initial(context, initial)?;
    let snapshot = context.server.snapshot();
    let asked =
        crate::ops::read_revision(query.get("resourceVersion")).map_err(|why| ApiError::new(500, "", why))?;
    let seconds = query.get("timeoutSeconds").parse().ok().filter(|s| *s > 0).map(Duration::from_secs);
    let mut watcher = Watcher {
        server: context.server.clone(),
        at: at.clone(),
        selection,
        form: negotiate::form(context.header("accept"))?,
        include: query.get("includeObject").to_owned(),
        bookmarks: query.flag("allowWatchBookmarks"),
        revision: asked,
        sent_columns: false,
        ends: tokio::time::Instant::now() + seconds.unwrap_or(LIFETIME),
        done: false,
        failed: None,
        initial: None,
    };
    if initial == Some(true) && asked > snapshot.revision() {
        // Who wants to see the state of a revision waits for it, if not for long; others wait for what comes
        // after it.
        watcher.failed = Some(ApiError::revision_in_future(asked, snapshot.revision()).with_retry_after(1));
        return Ok(watcher);
    }
    // Without a revision to start from, a watch first shows what is there.
    if initial.unwrap_or(asked == 0) {
        watcher.revision = snapshot.revision();
        let ends_with_bookmark = initial == Some(true) && watcher.bookmarks;
        watcher.initial = Some(Initial { snapshot, after: None, ends_with_bookmark });
    } else if asked == 0 {
        watcher.revision = snapshot.revision();
    }
    Ok(watcher)
}

fn check_initial(context: &Context<'_>, initial: Option<bool>) -> ApiResult<()> {
    let query = &context.query;
    let matching = query.get("resourceVersionMatch");
    let refuse = |field: &str, why: &str| {
        let fault = tiphys_schema::FieldError::forbidden(&tiphys_schema::Path::new(field), why);
        let kind = tiphys_value::GroupKind::new("meta.k8s.io", "ListOptions");
        Err(ApiError::invalid(&kind, "", &tiphys_schema::ErrorList(vec![fault])))
    };
    match initial {
        None if !matching.is_empty() => refuse(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        Some(_) if matching != "NotOlderThan" => {
            let path = tiphys_schema::Path::new("resourceVersionMatch");
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            let mut faults = vec![tiphys_schema::FieldError::forbidden(&path, why)];
            if !matching.is_empty() {
                faults.push(tiphys_schema::FieldError::not_supported(&path, matching, &["NotOlderThan"]));
            }
            let kind = tiphys_value::GroupKind::new("meta.k8s.io", "ListOptions");
            Err(ApiError::invalid(&kind, "", &tiphys_schema::ErrorList(faults)))
        }
        _ => Ok(()),
    }
}

/// The next piece of the stream; ends with the watch's time, its resource, or a lost place in the log.
async fn next(mut watcher: Watcher) -> Option<(Bytes, Watcher)> {
    if watcher.done {
        return None;
    }
    let mut out = Vec::new();
    if let Some(error) = watcher.failed.take() {
        watcher.done = true;
        write_line(&mut out, "ERROR", &error.to_value().to_string());
        return Some((Bytes::from(out), watcher));
    }
    watcher.write_initial(&mut out);
    if !out.is_empty() {
        return Some((Bytes::from(out), watcher));
    }
    let signal = watcher.server.inner.store.signal(&watcher.at.resource.id);
    let mut bookmark = tokio::time::Instant::now() + BOOKMARKS;
    loop {
        let notified = signal.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        let mut out = Vec::new();
        if !watcher.is_served() {
            return None;
        }
        watcher.drain(&mut out);
        if !out.is_empty() {
            return Some((Bytes::from(out), watcher));
        }
        tokio::select! {
            // Of what comes at one moment always the same counts: a seed decides all there is to decide.
            biased;
            () = notified => {}
            () = tokio::time::sleep_until(watcher.ends) => return None,
            () = tokio::time::sleep_until(bookmark) => {
                // A revision that is yet to come is no place to go on from.
                if watcher.bookmarks && watcher.revision <= watcher.server.revision() {
                    watcher.write_bookmark(&mut out, None);
                    return Some((Bytes::from(out), watcher));
                }
                bookmark = tokio::time::Instant::now() + BOOKMARKS;
            }
        }
    }
}

impl Watcher {
    /// A watch of a custom resource ends when its definition goes or changes.
    fn is_served(&self) -> bool {
        let Some(custom) = &self.at.resource.custom else { return true };
        let gvr = self.at.resource.gvr();
        let registry = self.server.registry();
        let now = registry.find(&gvr.group, &gvr.version, &gvr.resource).and_then(|r| r.custom.as_ref());
        now.is_some_and(|now| now.definition.uid() == custom.definition.uid())
    }

    /// The next of what was there in the beginning; nothing once all of it has been shown.
    fn write_initial(&mut self, out: &mut Vec<u8>) {
        let Some(mut initial) = self.initial.take() else { return };
        let namespace = Some(self.at.namespace.clone()).filter(|n| !n.is_empty());
        let id = self.at.resource.id.clone();
        let (snapshot, after) = (initial.snapshot.clone(), initial.after.take());
        for (key, object) in snapshot.range(&id, namespace.as_deref(), after.as_deref()) {
            if out.len() >= CHUNK {
                self.initial = Some(initial);
                return;
            }
            let Some(object) = self.converted(out, object) else { return };
            if self.selection.matches(&object) {
                self.write_event(out, "ADDED", &object);
            }
            initial.after = Some(Arc::clone(key));
        }
        if initial.ends_with_bookmark {
            self.write_bookmark(out, Some(json!({"k8s.io/initial-events-end": "true"})));
        }
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        let changes = self.server.inner.store.changes_since(Some(&self.at.resource.id), self.revision, BATCH);
        match changes {
            Ok(changes) => {
                for change in changes {
                    if out.len() >= CHUNK {
                        return;
                    }
                    self.revision = change.revision;
                    self.write_change(out, &change);
                }
            }
            Err(lost) => {
                self.done = true;
                let error = ApiError::expired(lost.to_string());
                write_line(out, "ERROR", &error.to_value().to_string());
            }
        }
    }

    /// What a change means for this watch: an object may come into its selection or leave it.
    fn write_change(&mut self, out: &mut Vec<u8>, change: &Change) {
        let Some(object) = self.converted(out, &change.object) else { return };
        let previous = match &change.previous {
            Some(previous) => match self.converted(out, previous) {
                Some(previous) => Some(previous),
                None => return,
            },
            None => None,
        };
        let before = previous.as_ref().is_some_and(|previous| self.is_here(previous));
        let after = change.kind != ChangeKind::Deleted && self.is_here(&object);
        match (before, after) {
            (false, true) => self.write_event(out, "ADDED", &object),
            (true, true) => self.write_event(out, "MODIFIED", &object),
            (true, false) => self.write_event(out, "DELETED", &object),
            (false, false) => {}
        }
    }

    fn is_here(&self, object: &Object) -> bool {
        (self.at.namespace.is_empty() || object.namespace() == self.at.namespace)
            && self.selection.matches(object)
    }

    /// An object in the version of the watch; a failure to convert it is told and ends the watch.
    fn converted(&mut self, out: &mut Vec<u8>, object: &Arc<Object>) -> Option<Arc<Object>> {
        if self.done {
            return None;
        }
        match crate::ops::converted(&self.server, &self.at.resource, Arc::clone(object)) {
            Ok(object) => Some(object),
            Err(error) => {
                self.done = true;
                write_line(out, "ERROR", &error.to_value().to_string());
                None
            }
        }
    }

    fn write_event(&mut self, out: &mut Vec<u8>, kind: &str, object: &Arc<Object>) {
        match self.form {
            Form::Table => {
                let metadata = json!({"resourceVersion": object.resource_version()});
                let columns = !std::mem::replace(&mut self.sent_columns, true);
                let now = self.server.now();
                let table = table::table_as_of(
                    &self.at.resource,
                    std::slice::from_ref(object),
                    metadata,
                    columns,
                    &self.include,
                    now,
                );
                write_line(out, kind, &table.to_string());
            }
            Form::Metadata | Form::MetadataList => write_line(out, kind, &partial(object).to_string()),
            _ => write_line(out, kind, &object_text(&self.at.resource, object)),
        }
    }

    fn write_bookmark(&mut self, out: &mut Vec<u8>, annotations: Option<Value>) {
        let resource: &Resource = &self.at.resource;
        let mut metadata = json!({"resourceVersion": self.revision.to_string(), "creationTimestamp": null});
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        let object = json!({"kind": resource.gvk.kind, "apiVersion": resource.gvk.api_version(), "metadata": metadata});
        let text = match self.form {
            Form::Table => {
                let row = json!({"cells": [], "object": object});
                json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": self.revision.to_string()}, "columnDefinitions": null, "rows": [row]})
            }
            Form::Metadata | Form::MetadataList => partial(&object),
            _ => object,
        };
        write_line(out, "BOOKMARK", &text.to_string());
    }
}

fn write_line(out: &mut Vec<u8>, kind: &str, object: &str) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object.as_bytes());
    out.extend_from_slice(b"}\n");
}
