//! What a rule is.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use tiphys_diag::{Diagnostic, Severity};
use tiphys_graph::{
    Object, ObjectScope, Survey,
    edges::Edges,
    network::{flows, networks},
    order::Order,
    waits::{HealthFacts, Settings, Unmet, unmet},
};
use tiphys_network::{Flow, Network};

use crate::{
    Finding,
    support::{
        chart_uses::{self, ChartUse},
        cluster::{self, Cluster},
        crds::Definitions,
        known_charts::KnownChart,
    },
};

/// One rule. Each stands in a file of its own under `rules/`; the module comment of that file is its
/// page in the documentation.
pub struct Rule {
    /// Stable name, such as `A1-self-wait`: incident, then what it finds.
    pub id: &'static str,
    /// The incident of its kind, such as `A1`.
    pub incident: &'static str,
    /// How bad its worst finding is.
    pub severity: Severity,
    /// One line: what it finds.
    pub title: &'static str,
    /// The module comment of its file, with the marks of a comment.
    pub page: &'static str,
    /// Looks for it.
    pub check: fn(&Context<'_>, &mut Report),
}

impl Rule {
    /// A fault of this rule, of its severity.
    pub fn diagnostic(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: self.severity, ..Diagnostic::error(self.id, message) }
    }

    /// A finding of this rule about an object.
    pub fn finding(&self, context: &Context<'_>, object: &Object, diagnostic: Diagnostic) -> Finding {
        let mut finding = Finding::new(self.incident, diagnostic).object(object.title());
        finding.app = context.survey.app_of(object).map(|app| app.name().to_owned());
        finding
    }

    /// The module comment of its file: Markdown.
    pub fn documentation(&self) -> String {
        let text: Vec<&str> = self
            .page
            .lines()
            .map(|line| line.strip_prefix("//! ").unwrap_or_else(|| line.trim_start_matches("//!")))
            .collect();
        text.join("\n")
    }
}

/// What a rule is told.
pub struct Context<'a> {
    /// The repository.
    pub survey: &'a Survey,
    /// The repository before a change, where a change is judged (`--diff`).
    pub base: Option<&'a Survey>,
    analyses: OnceLock<Analyses<'a>>,
    chart_uses: OnceLock<Vec<ChartUse>>,
    clusters: OnceLock<Vec<Cluster<'a>>>,
    unreached: OnceLock<Vec<Cluster<'a>>>,
    definitions: OnceLock<Definitions<'a>>,
    networks: OnceLock<Vec<(Network, Vec<Flow>)>>,
}

/// What several rules look at, made once and only if one asks.
pub struct Analyses<'a> {
    /// How objects depend on each other.
    pub edges: Edges<'a>,
    /// The order in which they are applied.
    pub order: Order<'a>,
    /// The settings of Argo CD that stand in the repository.
    pub settings: Settings,
    /// What its health checks say.
    pub health: HealthFacts,
    /// What is not there when it is needed.
    pub unmet: Vec<Unmet>,
}

impl<'a> Context<'a> {
    /// What rules are told of a repository, and of the same repository before a change.
    pub fn new(survey: &'a Survey, base: Option<&'a Survey>) -> Self {
        Self {
            survey,
            base,
            analyses: OnceLock::new(),
            chart_uses: OnceLock::new(),
            clusters: OnceLock::new(),
            unreached: OnceLock::new(),
            definitions: OnceLock::new(),
            networks: OnceLock::new(),
        }
    }

    /// The charts that are not in the repository, with what they are given.
    pub(crate) fn chart_uses(&self) -> &[ChartUse] {
        self.chart_uses.get_or_init(|| chart_uses::all(self))
    }

    /// The clusters of all environments, as their Applications fill them.
    pub(crate) fn clusters(&self) -> &[Cluster<'a>] {
        self.clusters.get_or_init(|| cluster::all(self.survey))
    }

    /// What neither an Application nor Flux reaches and releases a known chart, as clusters of which only a
    /// part is seen.
    pub(crate) fn unreached_clusters(&self) -> &[Cluster<'a>] {
        self.unreached.get_or_init(|| {
            let flux = self.survey.flux.as_deref();
            let objects = flux.iter().flat_map(|flux| &flux.objects);
            let applied: HashSet<&str> = objects.map(|it| it.rendered.location.file.as_ref()).collect();
            let known = self.chart_uses().iter().filter(|it| KnownChart::of_use(it).is_some());
            let scopes = known.filter_map(|it| it.release.as_ref()).map(|release| &release.scope);
            let units: HashSet<&ObjectScope> = scopes
                .filter(|scope| matches!(scope, ObjectScope::Unit(_)))
                .filter(|scope| {
                    let mut files = self.survey.objects_in(scope).map(|it| &it.rendered.location.file);
                    !files.any(|file| applied.contains(file.as_ref()))
                })
                .collect();
            cluster::of_units(self.survey, &units)
        })
    }

    /// The definitions of custom resources, whose schemas are read once.
    pub(crate) fn definitions(&self) -> &Definitions<'a> {
        self.definitions.get_or_init(|| Definitions::from_survey(self.survey))
    }

    /// The networks that policies restrict, each with the connections that are needed in it.
    pub fn networks(&self) -> &[(Network, Vec<Flow>)] {
        self.networks.get_or_init(|| {
            let networks = networks(self.survey).into_iter();
            networks
                .map(|network| {
                    let flows = flows(self.survey, &network);
                    (network, flows)
                })
                .collect()
        })
    }

    /// What several rules look at.
    pub fn analyses(&self) -> &Analyses<'a> {
        self.analyses.get_or_init(|| {
            let (edges, order) = (Edges::from_survey(self.survey), Order::from_survey(self.survey));
            let settings = Settings::from_survey(self.survey);
            let health = HealthFacts::from_survey(self.survey, &settings);
            let unmet = unmet(self.survey, &edges, &order, &health);
            Analyses { edges, order, settings, health, unmet }
        })
    }
}

/// What a rule reports.
#[derive(Default)]
pub struct Report {
    findings: Vec<Finding>,
    /// How many stand in each file.
    counts: HashMap<Arc<str>, usize>,
}

impl Report {
    /// How many findings of one rule are kept of one file: many more than are told.
    const MOST: usize = 1_000;

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        if let Some(label) = &finding.diagnostic.primary {
            let count = self.counts.entry(label.span.file.clone()).or_default();
            *count += 1;
            if *count > Self::MOST {
                return;
            }
        }
        self.findings.push(finding);
    }

    /// What was found.
    pub fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}
