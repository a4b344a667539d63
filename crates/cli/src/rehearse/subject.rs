//! What is rehearsed: the state before, and the one that is played.

use std::{future::Future, path::Path};

use tiphys_stage::{
    fault::{Targets, Timed},
    virtual_runtime,
};

use tiphys_source::RepoId;

use super::{
    args::Args,
    earlier_installs::EarlierInstall,
    found::Found,
    play::{Played, Rules, WorldKnowledge, ZONES, bring_up, go_on, stand_still},
};
use crate::up::plan::{Plan, Request, prepare};

/// The state before.
enum Base {
    /// Nothing: what is played is brought up.
    Empty,
    /// Another state of the repository, which is brought up first, and what it tells of the world.
    Plan(Box<(Plan, WorldKnowledge)>),
    /// A cluster as it was found.
    Found(Found),
}

/// What is rehearsed.
pub(super) struct Subject {
    base: Base,
    /// The state that is played in the end.
    pub plan: Plan,
    /// What it tells of the world.
    pub known: WorldKnowledge,
    /// What other tools have put into a cluster that is brought up.
    installed: Vec<EarlierInstall>,
    /// What the two states are called.
    pub names: (String, String),
}

impl Subject {
    /// Reads what is asked for.
    ///
    /// # Errors
    /// A state cannot be read.
    pub(super) fn open(args: &Args, rules: Rules) -> anyhow::Result<Self> {
        let request = Request {
            place: &args.place,
            revision: args.revision.as_deref(),
            path: args.path.as_deref(),
            environment: args.environment.as_deref(),
            respect_revisions: false,
            respect_destinations: false,
            clusters: args.clusters.as_deref(),
            offline: args.offline,
            most_applications: MOST,
            origins: true,
        };
        let present = if Path::new(&args.place).exists() { "the files as they are" } else { "HEAD" };
        let Some(range) = &args.diff else {
            let plan = prepare(&request)?;
            let known = WorldKnowledge::from_plan(&plan, rules);
            let Some(dump) = &args.from else {
                let installed = EarlierInstall::all_of(&plan);
                return Ok(Self { base: Base::Empty, plan, known, installed, names: Default::default() });
            };
            let found = Found::read(dump, &plan)?;
            let head = args.revision.clone().unwrap_or_else(|| present.to_owned());
            let names = (dump.display().to_string(), head);
            // The dump says what is there.
            return Ok(Self { base: Base::Found(found), plan, known, installed: Vec::new(), names });
        };
        let base = range.before(&args.place)?;
        let before = prepare(&Request { revision: Some(&base), ..request })?;
        let plan = prepare(&Request { revision: range.new.as_deref(), ..request })?;
        let head = range.new.clone().unwrap_or_else(|| present.to_owned());
        let known = WorldKnowledge::from_plan(&plan, rules);
        let before_known = WorldKnowledge::from_plan(&before, rules);
        // What tools install of what a change adds was there before it, too.
        let installed = [&before, &plan].into_iter().flat_map(EarlierInstall::all_of).collect();
        let base_plan = Base::Plan(Box::new((before, before_known)));
        Ok(Self { base: base_plan, plan, known, installed, names: (base, head) })
    }

    /// The plan of the state before, if it is one of the repository.
    pub(super) fn before(&self) -> Option<&Plan> {
        self.before_with_known().map(|(plan, _)| plan)
    }

    fn before_with_known(&self) -> Option<(&Plan, &WorldKnowledge)> {
        match &self.base {
            Base::Plan(before) => Some((&before.0, &before.1)),
            Base::Empty | Base::Found(_) => None,
        }
    }

    /// The cluster that was found, if that is the state before.
    pub(super) fn found(&self) -> Option<&Found> {
        match &self.base {
            Base::Found(found) => Some(found),
            Base::Empty | Base::Plan(_) => None,
        }
    }

    /// What is to be told of how the states were understood.
    pub(super) fn notices(&self) -> Vec<String> {
        let found = match &self.base {
            Base::Found(found) => found.notices.as_slice(),
            _ => &[],
        };
        found.iter().chain(&self.plan.notices).cloned().collect()
    }

    /// The state before a change; `None` if there is none, and all is brought up from nothing.
    ///
    /// # Errors
    /// A cluster cannot be set up.
    pub(super) fn base(&self, rules: Rules) -> anyhow::Result<Option<Played>> {
        let base = match &self.base {
            Base::Empty => return Ok(None),
            Base::Plan(before) => {
                let (plan, known) = &**before;
                let rules = Rules { only_end: true, ..rules };
                on_virtual_time(bring_up((plan, known), &self.installed, rules, Vec::new()))?
            }
            Base::Found(found) => on_virtual_time(stand_still(found, &self.plan, &self.known, rules))?,
        };
        Ok(Some(base))
    }

    /// Brings it up, and plays the change if there is one. Returns both ends, that of the change last.
    ///
    /// # Errors
    /// A cluster cannot be set up.
    pub(super) fn play(&self, rules: Rules, faults: &[Timed]) -> anyhow::Result<(Option<Played>, Played)> {
        let brought = self.base(rules)?;
        let played = self.replay(brought.as_ref(), rules, faults)?;
        Ok((brought, played))
    }

    /// Plays the change on a state that was brought up, or brings up anew if there is no change.
    ///
    /// # Errors
    /// A cluster cannot be set up.
    pub(super) fn replay(
        &self,
        brought: Option<&Played>,
        rules: Rules,
        faults: &[Timed],
    ) -> anyhow::Result<Played> {
        match brought {
            Some(brought) => on_virtual_time(go_on(
                brought,
                self.before_with_known(),
                (&self.plan, &self.known),
                rules,
                faults.to_vec(),
            )),
            None => {
                on_virtual_time(bring_up((&self.plan, &self.known), &self.installed, rules, faults.to_vec()))
            }
        }
    }
}

/// How many Applications are played at most: more take minutes.
const MOST: usize = 2000;

/// How much stack a play has: on one thread, the engine's looks hold the renderer, which follows templates,
/// overlays and imports as deep as repositories nest them.
const STACK: usize = 64 << 20;

/// Does it on a runtime whose time is virtual.
pub(super) fn on_virtual_time<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = virtual_runtime()?;
    stacker::grow(STACK, || runtime.block_on(work))
}

/// What may fail of what was played.
pub(super) fn targets(brought: Option<&Played>, played: &Played, plan: &Plan) -> Targets {
    let mut all = Targets::default();
    for end in brought.into_iter().chain([played]) {
        all.extend(Targets::from_snapshot(&end.home.server().snapshot()));
        for (_, beside) in &end.beside {
            all.extend(Targets::from_snapshot(&beside.server().snapshot()));
        }
    }
    all.add_hosts(source_hosts(plan));
    all
}

/// What may fail, as far as it is known before anything is played: what was brought up before, what Git has,
/// and the nodes that every cluster begins with. Operators and autoscalers make more.
pub(super) fn known_targets(brought: Option<&Played>, plan: &Plan) -> Targets {
    let mut all = Targets::from_objects(plan.rendered().map(|object| &object.value));
    match brought {
        Some(brought) => all.extend(Targets::from_snapshot(&brought.home.server().snapshot())),
        None => all.add_first_nodes(&tiphys_world::Settings::default(), &ZONES),
    }
    all.add_hosts(source_hosts(plan));
    all
}

/// The hosts of Git and of charts that Applications name.
pub(super) fn source_hosts(plan: &Plan) -> impl Iterator<Item = String> {
    let sources = plan.survey.apps.iter().flat_map(|app| app.application.spec.effective_sources());
    // As Argo CD has it, an address without scheme is one of a registry.
    let address = |url: &str| {
        if url.contains("://") || url.contains('@') { url.to_owned() } else { format!("oci://{url}") }
    };
    let hosts = sources.filter_map(move |source| RepoId::parse(&address(&source.repo_url)));
    hosts.map(|id| id.host().to_owned()).filter(|host| host.contains('.'))
}
