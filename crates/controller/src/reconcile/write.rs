//! The one place where a look writes: the status of its Application, Kubernetes Events, what is counted, and
//! the looks that have to follow.

use std::sync::Arc;

use serde::Serialize;
use tiphys_model::{Application, ConditionType, status::Condition};
use tiphys_value::{Value, json};
use tokio::time::Instant;

use super::{
    report::Report,
    status::{says_nothing_new, set_unknown_because, too_large, written},
};
use crate::{
    AppKey,
    app_state::AppMemory,
    events,
    home::Home,
    journal::{self, Entry},
    metrics::Metrics,
    queue::Queue,
    replicas::{note_written, version_to_follow},
    status_writer::{self, own_key},
};

/// Writes what looks find out.
pub(crate) struct Writer {
    home: Arc<Home>,
    apps: Arc<AppMemory>,
    queue: Arc<Queue>,
    metrics: Arc<Metrics>,
}

impl Writer {
    pub(crate) fn new(
        home: Arc<Home>,
        apps: Arc<AppMemory>,
        queue: Arc<Queue>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { home, apps, queue, metrics }
    }

    /// Writes what changed of status, operation and the refresh request, after what the look has to tell
    /// beside. `false` if the status could not be written: then the Application is looked at again later.
    pub(crate) async fn status(
        &self,
        key: &AppKey,
        before: &Value,
        app: &Application,
        report: &mut Report,
    ) -> bool {
        self.events(app, report).await;
        self.requeue(report);
        let there = app.operation.is_none().then(|| self.home.cache.peek(&own_key(app))).flatten();
        let after = written(before, app, there.as_deref());
        if !self.home.settings.sync.compat && says_nothing_new(before, &after) {
            return true;
        }
        let Home { cache, settings, .. } = &*self.home;
        let follows = version_to_follow(settings, key);
        match status_writer::write_after(cache, key, before, &after, follows).await {
            Ok(version) => {
                note_written(settings, key, version);
                self.record_changes(key, before, app, report);
                true
            }
            Err(error) => {
                self.apps.lost_write(key, &error);
                if error.is_too_large() {
                    let after = too_large(before, &after, &error, self.home.now());
                    self.object(key, before, &after).await;
                }
                false
            }
        }
    }

    /// An Application of which nothing is known but why still gets a status that says so.
    pub(crate) async fn unknown(&self, key: &AppKey, object: &Value, kind: ConditionType, fault: &str) {
        let mut after = object.clone();
        set_unknown_because(&mut after, kind, &status_writer::bounded(fault.to_owned()));
        self.object(key, object, &after).await;
    }

    async fn object(&self, key: &AppKey, before: &Value, after: &Value) {
        if let Err(error) = status_writer::write(&self.home.cache, key, before, after).await {
            self.apps.lost_write(key, &error);
        }
        self.apps.mark_seen(key);
    }

    /// Writes one condition in the place of all, if it is not the only one already.
    pub(crate) async fn condition(&self, key: &AppKey, app: &Application, condition: Condition) {
        let known = &app.status.conditions;
        if known.len() == 1 && known[0].kind == condition.kind && known[0].message == condition.message {
            return;
        }
        let patch = json!({"status": {"conditions": [condition]}});
        if let Err(error) = status_writer::patch_application(&self.home.cache, key, &patch).await {
            self.apps.lost_write(key, &error);
        }
    }

    /// Writes the finalizers of an Application, if nobody changed it meanwhile.
    pub(crate) async fn finalizers(&self, key: &AppKey, app: &Application, finalizers: &[impl Serialize]) {
        let patch =
            json!({"metadata": {"finalizers": finalizers, "resourceVersion": app.metadata.resource_version}});
        match status_writer::patch_application(&self.home.cache, key, &patch).await {
            Ok(_) => {}
            // Whoever changed it leads back here.
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => self.apps.lost_write(key, &error),
        }
    }

    /// Records the Events of a report.
    pub(crate) async fn events(&self, app: &Application, report: &mut Report) {
        for event in std::mem::take(&mut report.events) {
            self.event(app, &event).await;
        }
    }

    async fn event(&self, app: &Application, Entry { reason, is_warning, message }: &Entry) {
        let kind = if *is_warning { events::WARNING } else { events::NORMAL };
        events::record(&self.home.cache, app, kind, reason, message, self.home.now()).await;
    }

    /// Counts what a report has, and lets those be looked at that it names.
    pub(crate) fn requeue(&self, report: &mut Report) {
        self.metrics.count(std::mem::take(&mut report.counts));
        let now = Instant::now();
        for look in std::mem::take(&mut report.looks) {
            self.queue.add(look.key, look.level, now + look.wait);
        }
    }

    /// Logs what a write of a status tells, and records it as Events where these are asked for.
    fn record_changes(&self, key: &AppKey, before: &Value, after: &Application, report: &mut Report) {
        let records = self.home.settings.events;
        // Every write passes here, and reading what was there costs as much as the write.
        if !records && !tracing::enabled!(tracing::Level::WARN) {
            return;
        }
        let before = report.written.replace(after.clone()).or_else(|| Application::from_value(before).ok());
        let entries = journal::entries(before.as_ref(), after);
        for Entry { reason, is_warning, message } in &entries {
            match is_warning {
                true => tracing::warn!(app = %key.name, namespace = %key.namespace, %reason, "{message}"),
                false => tracing::info!(app = %key.name, namespace = %key.namespace, %reason, "{message}"),
            }
        }
        if !records || entries.is_empty() {
            return;
        }
        let (cache, app, now) = (self.home.cache.clone(), after.clone(), self.home.now());
        // No look waits for Events to be written.
        tokio::spawn(async move {
            for Entry { reason, is_warning, message } in &entries {
                let kind = if *is_warning { events::WARNING } else { events::NORMAL };
                events::record(&cache, &app, kind, reason, message, now).await;
            }
        });
    }
}
