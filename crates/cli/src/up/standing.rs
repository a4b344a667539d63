//! When something stands in for what is missing: once nothing else moves.

use std::collections::BTreeSet;

use tiphys_cluster::{Cluster, LiveCache};
use tiphys_model::names;
use tiphys_value::GroupKind;

use super::{
    Session, by_hand, install, issuers, presupposed, presupposed::Presupposed, rows::Row, some_of, stand_ins,
    waits,
};

/// The kinds of Argo CD's API.
const ARGO_KINDS: [&str; 3] = ["Application", "ApplicationSet", "AppProject"];

impl Session<'_> {
    /// Puts definitions in the place of those that are out of reach, once nothing else moves.
    pub(super) async fn stand_in(&mut self, rows: &[Row]) {
        self.stillness.look(rows);
        if self.args.stand_ins == stand_ins::When::Never
            || !self.stillness.is_settled()
            || !self.has_seen_all(rows)
        {
            return;
        }
        let unreachable = self.is_anything_out_of_reach(rows);
        self.tell_of_the_passed(rows);
        let always = self.args.stand_ins == stand_ins::When::Always;
        self.stand_in_for_namespaces_and_projects(rows, unreachable || always).await;
        self.stand_in_for_what_clusters_have().await;
        self.provide_argo_kinds(rows).await;
        if always {
            self.stand_in_for_what_people_make().await;
        }
        if unreachable {
            self.stand_in_for_operators().await;
            self.stand_in_for_issuers().await;
        }
        let mut kinds = stand_ins::missing(&self.controller.caches(), rows);
        kinds.retain(|kind, _| !self.stood_in.contains(kind));
        if self.args.stand_ins == stand_ins::When::Auto && !kinds.is_empty() {
            kinds = stand_ins::excused(kinds, self.controller.cache(), unreachable);
        }
        if kinds.is_empty() {
            return;
        }
        self.reporter.notice(&stand_ins::told(&kinds));
        self.stood_in.extend(kinds.keys().cloned());
        self.stillness.stir();
        for (cluster, _) in self.sites() {
            if let Err(error) = stand_ins::provide(&cluster, &kinds, &self.stood_in).await {
                self.reporter.notice(&format!("{error:#}"));
            }
        }
    }

    /// Plays the operators that something out of reach would have brought.
    async fn stand_in_for_operators(&mut self) {
        let mut kinds = stand_ins::unattended(&self.controller.caches());
        kinds.retain(|kind| !self.stood_in.contains(kind));
        if kinds.is_empty() {
            return;
        }
        self.reporter.notice(&stand_ins::told_of_operators(&kinds));
        self.stood_in.extend(kinds);
        self.stillness.stir();
        for (cluster, _) in self.sites() {
            if let Err(error) = stand_ins::provide(&cluster, &stand_ins::Kinds::new(), &self.stood_in).await {
                self.reporter.notice(&format!("{error:#}"));
            }
        }
    }

    /// Makes the Secrets and ConfigMaps that pods name and nothing brings.
    async fn stand_in_for_what_people_make(&mut self) {
        let home = self.controller.cache().clone();
        for (cluster, cache) in self.sites() {
            let missing = by_hand::missing(&cache, &home);
            if missing.is_empty() {
                continue;
            }
            self.stillness.stir();
            self.reporter.notice(&by_hand::told(&missing));
            if let Err(error) = by_hand::provide(&cluster, &missing).await {
                self.reporter.notice(&format!("{error:#}"));
            }
        }
    }

    /// Makes the issuers that certificates name and something out of reach would have made, once their kinds are served.
    async fn stand_in_for_issuers(&mut self) {
        let home = self.controller.cache().clone();
        for (at, (cluster, cache)) in self.sites().into_iter().enumerate() {
            let mut missing = issuers::missing(&cache, &home);
            missing.retain(|issuer| !self.stood_in_issuers.contains(&(at, issuer.clone())));
            let mut kinds = issuers::unserved(&missing, &cluster);
            missing.retain(|issuer| !kinds.contains_key(&issuer.group_kind()));
            kinds.retain(|kind, _| !self.stood_in.contains(kind));
            if kinds.is_empty() && missing.is_empty() {
                continue;
            }
            self.stillness.stir();
            if !kinds.is_empty() {
                self.reporter.notice(&stand_ins::told(&kinds));
                self.stood_in.extend(kinds.keys().cloned());
            }
            if !missing.is_empty() {
                self.reporter.notice(&issuers::told(&missing));
                self.stood_in_issuers.extend(missing.iter().map(|issuer| (at, issuer.clone())));
            }
            let defined = stand_ins::provide(&cluster, &kinds, &self.stood_in).await;
            let provided = match defined {
                Ok(()) => issuers::provide(&cluster, &missing).await,
                Err(error) => Err(error),
            };
            if let Err(error) = provided {
                self.reporter.notice(&format!("{error:#}"));
            }
        }
    }

    /// Gives the kinds of Argo CD's API to clusters beside the engine's own into which Applications bring objects of
    /// them: each has an Argo CD of its own then.
    async fn provide_argo_kinds(&mut self, rows: &[Row]) {
        let waited = rows.iter().flat_map(|row| &row.waits).filter_map(waits::missing_kind);
        let kinds: BTreeSet<&str> = waited
            .filter(|(group, kind)| *group == names::GROUP && ARGO_KINDS.contains(kind))
            .map(|(_, kind)| kind)
            .collect();
        for (at, (cluster, _)) in self.sites().into_iter().enumerate().skip(1) {
            let discovery = cluster.discovery();
            let is_without = |kind: &str| discovery.preferred(&GroupKind::new(names::GROUP, kind)).is_none();
            if !kinds.iter().any(|kind| is_without(kind)) || !self.has_argo_kinds.insert(at) {
                continue;
            }
            self.stillness.stir();
            self.reporter.notice(&format!(
                "Argo CD's kinds are there in the other clusters too, as Applications bring objects of them (--stand-ins never leaves them out): {}",
                kinds.iter().copied().collect::<Vec<_>>().join(", ")
            ));
            let install = install::Install { cluster: &cluster, projects: &[], settings: None };
            if let Err(error) = install.definitions().await {
                self.reporter.notice(&format!("{error:#}"));
            }
        }
    }

    /// Every cluster with its live state, the engine's own first.
    pub(super) fn sites(&self) -> Vec<(Cluster, LiveCache)> {
        let caches = self.controller.caches().into_iter();
        caches.map(|cache| (cache.cluster().clone(), cache)).collect()
    }

    /// `all` is whether those stand in that no platform has by itself.
    async fn stand_in_for_namespaces_and_projects(&mut self, rows: &[Row], all: bool) {
        let mut namespaces = stand_ins::namespaces(rows, all);
        let mut projects = if all { stand_ins::projects(self.controller.cache()) } else { BTreeSet::new() };
        // A project may have the name of a namespace.
        namespaces.retain(|name| self.stood_in_namespaces.insert(name.clone()));
        projects.retain(|name| self.stood_in_projects.insert(name.clone()));
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
        told.into_iter().flatten().for_each(|text| self.reporter.notice(&text));
        self.stillness.stir();
        let nothing = BTreeSet::new();
        for (at, (cluster, _)) in self.sites().iter().enumerate() {
            let install = install::Install { cluster, projects: &[], settings: None };
            // Projects are the engine's, which is in the first.
            let projects = if at == 0 { &projects } else { &nothing };
            if let Err(error) = install.stand_ins(&namespaces, projects).await {
                self.reporter.notice(&format!("{error:#}"));
            }
        }
    }

    /// Puts in place what clusters have and the repository does not bring. Nothing else moves by now, so Applications of
    /// later waves, which may wait for just this, are no reason to wait for them.
    async fn stand_in_for_what_clusters_have(&mut self) {
        for (at, (cluster, cache)) in self.sites().into_iter().enumerate() {
            if self.presupposed.len() <= at {
                self.presupposed.push(Presupposed::default());
            }
            // What was put in place and did not help is no help the next time.
            let missing = presupposed::missing(&cache).without(&self.rendered_classes);
            let found = self.presupposed[at].add(missing);
            if found.is_empty() {
                continue;
            }
            found.told().iter().for_each(|text| self.reporter.notice(text));
            self.stillness.stir();
            if let Err(error) = found.provide(&cluster, &cache).await {
                self.reporter.notice(&format!("{error:#}"));
            }
        }
    }

    /// Says once which Applications hold up nobody though they are out of reach.
    fn tell_of_the_passed(&mut self, rows: &[Row]) {
        let out = rows.iter().filter(|row| row.is_out_of_reach).map(|row| row.title.as_str());
        let new: Vec<&str> = out.filter(|name| !self.passed.contains(*name)).collect();
        if new.is_empty() {
            return;
        }
        self.reporter.notice(&format!(
            "the sources of {} cannot be had, so no wave waits for {} (--stand-ins never lets them wait)",
            some_of(&new),
            if new.len() == 1 { "it" } else { "them" },
        ));
        self.passed.extend(new.into_iter().map(str::to_owned));
    }
}
