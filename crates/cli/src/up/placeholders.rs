//! When something stands in for what is missing: once nothing else moves.

use std::collections::BTreeSet;

use tiphys_cluster::{Cluster, LiveCache};
use tiphys_controller::Controller;
use tiphys_model::names;
use tiphys_value::{GroupKind, ObjectExt, ResourceKey};

use super::{
    app_rows::Row, bootstrap, brought::Brought, placeholder_issuers, placeholder_kinds, placeholder_platform,
    placeholder_platform::Presupposed, placeholder_secrets, progress::Progress, quiescence::Stillness,
    some_of, wait_messages,
};
use crate::ENGINE_NAMESPACE;

/// The kinds of Argo CD's API.
const ARGO_KINDS: [&str; 3] = ["Application", "ApplicationSet", "AppProject"];

/// What stands in for what is missing, and what did so far.
#[derive(Clone)]
pub(crate) struct Placeholders {
    when: placeholder_kinds::When,
    /// What the repository brings.
    brought: Brought,
    /// The kinds for which definitions stand in.
    kinds: BTreeSet<GroupKind>,
    /// The namespaces that stand in.
    namespaces: BTreeSet<String>,
    /// The projects that stand in.
    projects: BTreeSet<String>,
    /// The issuers that stand in, with the number of their cluster.
    issuers: BTreeSet<(usize, ResourceKey)>,
    /// The numbers of the clusters beside the engine's own that were given Argo CD's kinds.
    has_argo_kinds: BTreeSet<usize>,
    /// What of real clusters was put in place, in each cluster.
    presupposed: Vec<Presupposed>,
    /// Kinds of which all that there are are known, as those of a saved cluster: nothing stands in for them.
    whole: BTreeSet<&'static str>,
    /// The Applications of which it was told that nobody waits for them.
    passed: BTreeSet<String>,
    /// What is to be told.
    notices: Vec<String>,
}

/// Every cluster of an engine with its live state, the engine's own first.
pub(crate) fn sites(controller: &Controller) -> Vec<(Cluster, LiveCache)> {
    controller.caches().into_iter().map(|cache| (cache.cluster().clone(), cache)).collect()
}

impl Placeholders {
    /// Takes up what a changed repository brings.
    pub(crate) fn set_brought(&mut self, brought: Brought) {
        self.brought = brought;
    }

    /// The same, with kinds of which all that there are are known.
    #[must_use]
    pub(crate) fn with_whole(mut self, kinds: BTreeSet<&'static str>) -> Self {
        self.whole = kinds;
        self
    }

    /// Nothing stands in so far.
    pub(crate) fn new(when: placeholder_kinds::When, brought: Brought) -> Self {
        Self {
            when,
            brought,
            kinds: BTreeSet::new(),
            namespaces: BTreeSet::new(),
            projects: BTreeSet::new(),
            issuers: BTreeSet::new(),
            has_argo_kinds: BTreeSet::new(),
            presupposed: Vec::new(),
            whole: BTreeSet::new(),
            passed: BTreeSet::new(),
            notices: Vec::new(),
        }
    }

    /// Puts definitions and what else is missing in the place of those that are out of reach, if nothing else
    /// moves. Returns what is to be told of it.
    pub(crate) async fn stand_in(
        &mut self,
        progress: Progress<'_>,
        stillness: &mut Stillness,
    ) -> Vec<String> {
        let Progress { controller, rows, .. } = progress;
        if self.when == placeholder_kinds::When::Never || !stillness.is_settled() || !progress.has_seen_all()
        {
            return Vec::new();
        }
        let unreachable = progress.is_anything_out_of_reach();
        // What tools install is not read, like what is out of reach.
        let unread = unreachable || self.brought.tools_install();
        self.report_finished(rows);
        let always = self.when == placeholder_kinds::When::Always;
        let mut look = Look { controller, rows, stillness };
        self.stand_in_for_namespaces_and_projects(&mut look, unreachable || always).await;
        self.stand_in_for_what_clusters_have(&mut look).await;
        self.provide_argo_kinds(&mut look).await;
        self.stand_in_for_what_people_make(&mut look, always).await;
        if unread {
            self.stand_in_for_operators(&mut look).await;
            self.stand_in_for_issuers(&mut look).await;
        }
        self.stand_in_for_kinds(&mut look, unread).await;
        std::mem::take(&mut self.notices)
    }

    async fn stand_in_for_kinds(&mut self, look: &mut Look<'_>, unread: bool) {
        let mut kinds = placeholder_kinds::missing(&look.controller.caches(), look.rows);
        kinds.retain(|kind, _| !self.kinds.contains(kind));
        if self.when == placeholder_kinds::When::Auto && !kinds.is_empty() {
            kinds = placeholder_kinds::excused(kinds, look.controller.cache(), unread);
        }
        if kinds.is_empty() {
            return;
        }
        self.notices.push(placeholder_kinds::notice(&kinds));
        self.kinds.extend(kinds.keys().cloned());
        look.stillness.reset_timer();
        for (cluster, _) in look.sites() {
            if let Err(error) = placeholder_kinds::provide(&cluster, &kinds, &self.kinds).await {
                self.notices.push(format!("{error:#}"));
            }
        }
    }

    /// Plays the operators that something out of reach would have brought.
    async fn stand_in_for_operators(&mut self, look: &mut Look<'_>) {
        let mut kinds = placeholder_kinds::unattended(&look.controller.caches());
        kinds.retain(|kind| !self.kinds.contains(kind));
        if kinds.is_empty() {
            return;
        }
        self.notices.push(placeholder_kinds::told_of_operators(&kinds));
        self.kinds.extend(kinds);
        look.stillness.reset_timer();
        for (cluster, _) in look.sites() {
            if let Err(error) =
                placeholder_kinds::provide(&cluster, &placeholder_kinds::Kinds::new(), &self.kinds).await
            {
                self.notices.push(format!("{error:#}"));
            }
        }
    }

    /// Makes the Secrets and ConfigMaps that pods name and no Application brings: all of them, or those that
    /// a script, playbook or pipeline of the repository makes.
    async fn stand_in_for_what_people_make(&mut self, look: &mut Look<'_>, all: bool) {
        let home = look.controller.cache().clone();
        for (cluster, cache) in look.sites() {
            let mut missing = placeholder_secrets::missing(&cache, &home);
            missing.retain(|key, _| all || self.brought.is_made_by_tools(key));
            if missing.is_empty() {
                continue;
            }
            look.stillness.reset_timer();
            self.notices.push(placeholder_secrets::notice(&missing, all));
            if let Err(error) = placeholder_secrets::provide(&cluster, &missing).await {
                self.notices.push(format!("{error:#}"));
            }
        }
    }

    /// Makes the issuers that certificates name and something out of reach would have made, once their kinds
    /// are served.
    async fn stand_in_for_issuers(&mut self, look: &mut Look<'_>) {
        let home = look.controller.cache().clone();
        for (at, (cluster, cache)) in look.sites().into_iter().enumerate() {
            let mut missing = placeholder_issuers::missing(&cache, &home);
            missing.retain(|issuer| !self.issuers.contains(&(at, issuer.clone())));
            let mut kinds = placeholder_issuers::unserved(&missing, &cluster);
            missing.retain(|issuer| !kinds.contains_key(&issuer.group_kind()));
            kinds.retain(|kind, _| !self.kinds.contains(kind));
            if kinds.is_empty() && missing.is_empty() {
                continue;
            }
            look.stillness.reset_timer();
            if !kinds.is_empty() {
                self.notices.push(placeholder_kinds::notice(&kinds));
                self.kinds.extend(kinds.keys().cloned());
            }
            if !missing.is_empty() {
                self.notices.push(placeholder_issuers::notice(&missing));
                self.issuers.extend(missing.iter().map(|issuer| (at, issuer.clone())));
            }
            let defined = placeholder_kinds::provide(&cluster, &kinds, &self.kinds).await;
            let provided = match defined {
                Ok(()) => placeholder_issuers::provide(&cluster, &missing).await,
                Err(error) => Err(error),
            };
            if let Err(error) = provided {
                self.notices.push(format!("{error:#}"));
            }
        }
    }

    /// Gives the kinds of Argo CD's API to clusters beside the engine's own into which Applications bring
    /// objects of them: each has an Argo CD of its own then.
    async fn provide_argo_kinds(&mut self, look: &mut Look<'_>) {
        let waited = look.rows.iter().flat_map(|row| &row.waits).filter_map(wait_messages::missing_kind);
        let kinds: BTreeSet<&str> = waited
            .filter(|(group, kind)| *group == names::GROUP && ARGO_KINDS.contains(kind))
            .map(|(_, kind)| kind)
            .collect();
        for (at, (cluster, _)) in look.sites().into_iter().enumerate().skip(1) {
            let discovery = cluster.discovery();
            let is_without =
                |kind: &str| discovery.preferred_resource(&GroupKind::new(names::GROUP, kind)).is_none();
            if !kinds.iter().any(|kind| is_without(kind)) || !self.has_argo_kinds.insert(at) {
                continue;
            }
            look.stillness.reset_timer();
            self.notices.push(format!(
                "Argo CD's kinds are there in the other clusters too, as Applications bring objects of them (--stand-ins never leaves them out): {}",
                kinds.iter().copied().collect::<Vec<_>>().join(", ")
            ));
            let install = bootstrap::Install { cluster: &cluster, projects: &[], settings: None };
            // An Argo CD has a namespace, too.
            let namespace = BTreeSet::from([ENGINE_NAMESPACE.to_owned()]);
            let provided = match install.definitions().await {
                Ok(()) => install.stand_ins(&namespace, &BTreeSet::new()).await,
                failed => failed,
            };
            if let Err(error) = provided {
                self.notices.push(format!("{error:#}"));
            }
        }
    }

    /// `all` is whether those stand in that no platform has by itself: where a source of the repository's
    /// Applications cannot be had, as that may bring them, or where somebody asks for it.
    async fn stand_in_for_namespaces_and_projects(&mut self, look: &mut Look<'_>, all: bool) {
        let mut namespaces = placeholder_kinds::namespaces(look.rows);
        self.apply_namespaces_by_hand(look, &namespaces).await;
        namespaces.retain(|name| all || placeholder_kinds::is_namespace_of_platform(name));
        let mut projects =
            if all { placeholder_kinds::projects(look.controller.cache()) } else { BTreeSet::new() };
        // A project may have the name of a namespace.
        namespaces.retain(|name| self.namespaces.insert(name.clone()));
        projects.retain(|name| self.projects.insert(name.clone()));
        if namespaces.is_empty() && projects.is_empty() {
            return;
        }
        let given = |what: &str, names: &BTreeSet<String>, why: &str| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            (!names.is_empty()).then(|| format!("{what} that {why}: {}", names.join(", ")))
        };
        let told = [
            given("namespaces", &namespaces, "nothing in reach would have made are there all the same"),
            given("projects", &projects, "nothing in reach declares are taken to allow everything"),
        ];
        self.notices.extend(told.into_iter().flatten());
        look.stillness.reset_timer();
        let nothing = BTreeSet::new();
        for (at, (cluster, _)) in look.sites().iter().enumerate() {
            let install = bootstrap::Install { cluster, projects: &[], settings: None };
            // Projects are the engine's, which is in the first.
            let projects = if at == 0 { &projects } else { &nothing };
            if let Err(error) = install.stand_ins(&namespaces, projects).await {
                self.notices.push(format!("{error:#}"));
            }
        }
    }

    /// Applies the Namespaces that something waits for and that stand in files which no Application reads, as
    /// somebody does by hand.
    async fn apply_namespaces_by_hand(&mut self, look: &mut Look<'_>, missing: &BTreeSet<String>) {
        let by_hand = missing.iter().filter(|name| !self.namespaces.contains(*name));
        let objects: Vec<_> =
            by_hand.filter_map(|name| self.brought.namespace_by_hand(name).cloned()).collect();
        if objects.is_empty() {
            return;
        }
        let names: Vec<&str> = objects.iter().map(ObjectExt::name).collect();
        self.notices.push(format!(
            "namespaces of files that no Application reads are there, as somebody applies them by hand (--stand-ins never leaves them out): {}",
            names.join(", ")
        ));
        self.namespaces.extend(names.iter().map(|name| (*name).to_owned()));
        look.stillness.reset_timer();
        for (cluster, _) in look.sites() {
            let install = bootstrap::Install { cluster: &cluster, projects: &[], settings: None };
            if let Err(error) = install.objects(&objects).await {
                self.notices.push(format!("{error:#}"));
            }
        }
    }

    /// Puts in place what clusters have and the repository does not bring. Nothing else moves by now, so
    /// Applications of later waves, which may wait for just this, are no reason to wait for them.
    async fn stand_in_for_what_clusters_have(&mut self, look: &mut Look<'_>) {
        let expected = self.brought.expected_classes(look.rows);
        for (at, (cluster, cache)) in look.sites().into_iter().enumerate() {
            if self.presupposed.len() <= at {
                self.presupposed.push(Presupposed::default());
            }
            // What was put in place and did not help is no help the next time.
            let mut missing = placeholder_platform::missing(&cache).without(&expected);
            if at == 0 {
                missing.leave_out(&self.whole);
            }
            let found = self.presupposed[at].add(missing);
            if found.is_empty() {
                continue;
            }
            self.notices.extend(found.notices());
            look.stillness.reset_timer();
            if let Err(error) = found.provide(&cluster, &cache).await {
                self.notices.push(format!("{error:#}"));
            }
        }
    }

    /// Says once which Applications hold up nobody though they are out of reach.
    fn report_finished(&mut self, rows: &[Row]) {
        let out = rows.iter().filter(|row| row.is_out_of_reach).map(|row| row.title.as_str());
        let new: Vec<&str> = out.filter(|name| !self.passed.contains(*name)).collect();
        if new.is_empty() {
            return;
        }
        self.notices.push(format!(
            "the sources of {} cannot be had, so no wave waits for {} (--stand-ins never lets them wait)",
            some_of(&new),
            if new.len() == 1 { "it" } else { "them" },
        ));
        self.passed.extend(new.into_iter().map(str::to_owned));
    }
}

/// What is looked at.
struct Look<'a> {
    controller: &'a Controller,
    rows: &'a [Row],
    stillness: &'a mut Stillness,
}

impl Look<'_> {
    fn sites(&self) -> Vec<(Cluster, LiveCache)> {
        sites(self.controller)
    }
}
