//! What a finding does, and to whom: what goes wrong, in which Applications, and whether anything leads
//! there. The order of the findings and the verdict rest on it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use tiphys_graph::{App, AppId, Owner, Survey, Unit, UnitKind};
use tiphys_value::{ObjectExt, Value};
use tiphys_vfs::is_below;

use crate::Finding;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The manifests cannot be produced.
    CannotRender,
    /// The API server, a webhook or a project refuses them.
    CannotApply,
    /// An operation or a deletion never ends.
    NeverEnds,
    /// What runs is taken away.
    Removes,
    /// Pods do not start.
    CannotStart,
    /// What runs cannot be reached, or cannot reach what it needs.
    Unreachable,
    /// Two write one thing in turn.
    Fights,
    /// A pipeline, playbook or build around the cluster fails.
    Tools,
    /// It works, but not as it is meant.
    NotAsMeant,
}

/// Rules whose findings leave things working, though not as somebody meant them.
const NOT_AS_MEANT: [&str; 27] = [
    "A2-eviction-blocked",
    "B5-defaulted-items",
    "B5-dropped-section",
    "B5-ignores-nothing",
    "C2-binding-no-effect",
    "C2-empty-series",
    "C2-exported",
    "C2-misplaced-setting",
    "C2-option-value",
    "C2-rbac-no-effect",
    "C2-unknown-option",
    "D2-duplicate-key",
    "D2-lost-context",
    "D2-misplaced-values",
    "D2-misspelt-values",
    "D2-no-effect",
    "D2-project-entry",
    "D2-unread-values",
    "D2-unset-variable",
    "D3-incomplete-registration",
    "D3-left-out",
    "D4-odd-name",
    "E4-foreign-image",
    "E7-config-without-rollout",
    "G3-orphaned-cloud-resources",
    "G5-drifting-ids",
    "G7-order-drift",
];
/// Rules of the family of rendering whose findings are about what is rendered.
const REFUSED: [&str; 2] = ["D2-duplicate-name", "D2-project-forbids"];

/// Rules about what Argo CD fails on, or fights over, where Tiphys goes on: see `docs/differences.md`.
const OF_ARGO_CD: [&str; 10] = [
    "A1-self-wait",
    "B3-two-owners",
    "B5-defaulted-items",
    "C1-chart-with-large-crd",
    "C1-last-applied-too-long",
    "C2-exported",
    "C3-webhook-before-backend",
    "C5-cr-before-chart",
    "C5-cr-before-crd",
    "C5-cr-before-operator",
];

/// Whether what a finding tells of holds for Argo CD, and not for Tiphys.
pub fn is_of_argo_cd_alone(finding: &Finding) -> bool {
    OF_ARGO_CD.contains(&finding.diagnostic.rule.as_str())
}

impl Effect {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 9] = [
        Self::CannotRender,
        Self::CannotApply,
        Self::NeverEnds,
        Self::Removes,
        Self::CannotStart,
        Self::Unreachable,
        Self::Fights,
        Self::Tools,
        Self::NotAsMeant,
    ];

    /// That of a finding.
    pub fn of_finding(finding: &Finding) -> Self {
        let rule = finding.diagnostic.rule.as_str();
        if NOT_AS_MEANT.contains(&rule) {
            return Self::NotAsMeant;
        }
        if REFUSED.contains(&rule) {
            return Self::CannotApply;
        }
        // A manifest inside a text is for who takes it from there.
        if rule == "C2-inline-manifest" {
            return Self::Tools;
        }
        match finding.incident.as_bytes() {
            [b'A', ..] => Self::NeverEnds,
            [b'B', ..] => Self::Fights,
            [b'C', ..] => Self::CannotApply,
            [b'D', ..] => Self::CannotRender,
            [b'E', b'1', ..] => Self::Removes,
            [b'E', ..] => Self::CannotStart,
            [b'F', ..] => Self::Unreachable,
            _ => Self::Tools,
        }
    }

    /// In the words of a verdict.
    pub fn words(self) -> &'static str {
        match self {
            Self::CannotRender => "cannot render",
            Self::CannotApply => "cannot be applied",
            Self::NeverEnds => "never ends",
            Self::Removes => "is taken away",
            Self::CannotStart => "cannot start",
            Self::Unreachable => "is unreachable",
            Self::Fights => "has two owners",
            Self::Tools => "fails around it",
            Self::NotAsMeant => "not as meant",
        }
    }
}

/// What leads to the place of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// A chart or kustomization that no Application reaches.
    Nothing,
    /// A manifest that no Application renders: somebody may apply it by hand.
    ByHand,
    /// A pipeline, playbook or build.
    Tools,
    /// An Application.
    Application,
}

/// What one finding does, and to whom.
#[derive(Clone, Debug)]
pub struct Impact {
    /// What goes wrong.
    pub effect: Effect,
    /// What leads there.
    pub reach: Reach,
    /// The Applications that it hits.
    pub apps: BTreeSet<AppId>,
    /// Where it hits none: what else it hits, by name. It is of Flux, or of another state of the repository.
    pub others: BTreeSet<String>,
}

impl Impact {
    /// How many it hits.
    pub fn count(&self) -> usize {
        self.apps.len() + self.others.len()
    }
}

/// Finds out what findings do in one repository.
pub struct Impacts<'a> {
    survey: &'a Survey,
    by_name: HashMap<&'a str, Vec<&'a App>>,
    by_file: HashMap<&'a str, Vec<&'a App>>,
    /// The Applications right below each.
    below: BTreeMap<AppId, Vec<AppId>>,
    is_run_by_applications: bool,
    /// Of the Kustomizations and releases of Flux those that wait for each.
    waiting: BTreeMap<FluxId, Vec<AppId>>,
}

/// Kind, namespace and name of a Kustomization or a release of Flux.
type FluxId = [String; 3];

fn flux_id(app: &App) -> FluxId {
    let value = &app.declared.value;
    [value.kind(), value.namespace(), value.name()].map(str::to_owned)
}

/// Those of Flux that wait for each: by what each says that it depends on, which is of its own kind.
fn waiting(survey: &Survey) -> BTreeMap<FluxId, Vec<AppId>> {
    let mut found: BTreeMap<FluxId, Vec<AppId>> = BTreeMap::new();
    for app in survey.flux.iter().flat_map(|flux| &flux.apps) {
        let [kind, own, _] = flux_id(app);
        let needed = app.declared.value.at(&["spec", "dependsOn"]).and_then(Value::as_array);
        for needed in needed.into_iter().flatten() {
            let namespace = needed.str_at(&["namespace"]).unwrap_or(&own).to_owned();
            let name = needed.str_at(&["name"]).unwrap_or_default().to_owned();
            found.entry([kind.clone(), namespace, name]).or_default().push(app.id);
        }
    }
    found
}

impl<'a> Impacts<'a> {
    /// Knows who reads which file.
    pub fn new(survey: &'a Survey) -> Self {
        let mut impacts = Self {
            survey,
            by_name: HashMap::new(),
            by_file: HashMap::new(),
            below: BTreeMap::new(),
            is_run_by_applications: is_run_by_applications(survey),
            waiting: waiting(survey),
        };
        for app in &survey.apps {
            impacts.by_name.entry(app.name()).or_default().push(app);
            for file in app.read.iter() {
                impacts.by_file.entry(file).or_default().push(app);
            }
            if let Some(above) = app.above {
                impacts.below.entry(above).or_default().push(app.id);
            }
        }
        impacts
    }

    /// What a finding does.
    pub fn of_finding(&self, finding: &Finding) -> Impact {
        let effect = Effect::of_finding(finding);
        let apps = self.apps(finding, effect);
        if !apps.is_empty() {
            return Impact { effect, reach: Reach::Application, apps, others: BTreeSet::new() };
        }
        let mut others = self.of_flux(finding, effect);
        let reach = match &finding.app {
            Some(name) => {
                others.insert(name.clone());
                Reach::Application
            }
            None => self.reach(finding),
        };
        Impact { effect, reach, apps, others }
    }

    /// The Kustomizations and releases of Flux that a finding hits: that which it is about, or those that
    /// read its file. Flux applies all of a Kustomization or nothing, and what waits for it waits on.
    fn of_flux(&self, finding: &Finding, effect: Effect) -> BTreeSet<String> {
        let Some(flux) = self.survey.flux.as_deref() else { return BTreeSet::new() };
        let object = finding.object.as_deref().unwrap_or_default();
        let is_about = |app: &&App| {
            let [kind, namespace, name] = flux_id(app);
            object == format!("{kind}/{name} in {namespace}") || object == format!("{kind}/{name}")
        };
        let file = finding.diagnostic.primary.as_ref().map(|label| label.span.file.as_ref());
        let reads = |app: &&App| file.is_some_and(|file| app.read.contains(file));
        let mut open: Vec<AppId> = flux.apps.iter().filter(is_about).map(|app| app.id).collect();
        if open.is_empty() {
            open = flux.apps.iter().filter(reads).map(|app| app.id).collect();
        }
        let stops = matches!(effect, Effect::CannotRender | Effect::CannotApply | Effect::NeverEnds);
        let mut hit: BTreeSet<AppId> = open.iter().copied().collect();
        while let Some(id) = open.pop().filter(|_| stops) {
            let waiting = self.waiting.get(&flux_id(flux.app(id))).map(Vec::as_slice).unwrap_or_default();
            open.extend(waiting.iter().copied().filter(|id| hit.insert(*id)));
        }
        hit.into_iter().map(|id| flux.app(id).name().to_owned()).collect()
    }

    /// The Applications that a finding hits: those that it names, others that render from its file, and what
    /// one that cannot be rendered or never ends brings in turn.
    fn apps(&self, finding: &Finding, effect: Effect) -> BTreeSet<AppId> {
        let file = finding.diagnostic.primary.as_ref().map(|label| label.span.file.as_ref());
        let readers = file.and_then(|file| self.by_file.get(file)).map(Vec::as_slice).unwrap_or_default();
        let Some(name) = &finding.app else { return readers.iter().map(|app| app.id).collect() };
        let named = self.by_name.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
        // Of Applications of one name in several environments, those that render from the file.
        let of_file: Vec<&&App> = named.iter().filter(|app| self.is_of_file(app, file)).collect();
        let named: Vec<&&App> = if of_file.is_empty() { named.iter().collect() } else { of_file };
        let mut apps: BTreeSet<AppId> = named.iter().map(|app| app.id).collect();
        let above: BTreeSet<AppId> = named.iter().flat_map(|app| self.ancestors(app)).collect();
        apps.extend(readers.iter().map(|app| app.id).filter(|id| !above.contains(id)));
        if matches!(effect, Effect::CannotRender | Effect::NeverEnds) {
            let mut open: Vec<AppId> = named.iter().map(|app| app.id).collect();
            while let Some(id) = open.pop() {
                let below = self.below.get(&id).map(Vec::as_slice).unwrap_or_default();
                open.extend(below.iter().filter(|id| apps.insert(**id)));
            }
        }
        apps
    }

    fn is_of_file(&self, app: &App, file: Option<&str>) -> bool {
        file.is_some_and(|file| app.read.contains(file) || app.declared.location.file.as_ref() == file)
    }

    fn ancestors(&self, app: &App) -> Vec<AppId> {
        let above = |id: &AppId| self.survey.app(*id).above;
        std::iter::successors(app.above, above).take(self.survey.apps.len()).collect()
    }

    /// What leads to a finding that is about no Application.
    fn reach(&self, finding: &Finding) -> Reach {
        let Some(label) = &finding.diagnostic.primary else { return Reach::Application };
        let file = label.span.file.as_ref();
        match unreached(self.survey, file) {
            // Where Applications do not run the repository, people apply its kustomizations.
            Some(UnitKind::Kustomization) if !self.is_run_by_applications => return Reach::ByHand,
            Some(_) => return Reach::Nothing,
            None => {}
        }
        let survey = self.survey;
        let of_flux = survey.flux.iter().flat_map(|flux| &flux.apps);
        let roots = survey.roots.iter().map(|root| &root.declared);
        let declared = roots.chain(survey.sets.iter().map(|set| &set.declared));
        if of_flux.into_iter().any(|app| app.read.contains(file))
            || declared.into_iter().any(|it| it.location.file.as_ref() == file)
            || finding.diagnostic.rule == "D2-cannot-render" && self.declares_application(file)
        {
            return Reach::Application;
        }
        let is_around = finding.incident.starts_with('G') || finding.incident == "E5";
        if is_around { Reach::Tools } else { Reach::ByHand }
    }

    /// Whether a manifest that cannot be read would be an Application or an ApplicationSet.
    fn declares_application(&self, file: &str) -> bool {
        let text = self.survey.files.text(file);
        text.is_some_and(|text| text.lines().any(|line| line.starts_with("kind: Application")))
    }

    /// An Application with its environment, where there are several: `payments (dev)`.
    pub fn title(&self, app: &App) -> String {
        let environment = &self.survey.environments[app.environment.0].name;
        match environment.is_empty() || self.survey.environments.len() == 1 {
            true => app.name().to_owned(),
            false => format!("{} ({})", app.name(), tiphys_vfs::base_name(environment)),
        }
    }

    /// Applications as people are told of them.
    pub fn titles(&self, apps: &BTreeSet<AppId>) -> BTreeSet<String> {
        apps.iter().map(|id| self.title(self.survey.app(*id))).collect()
    }

    /// The environments of Applications, by name.
    pub fn environments(&self, apps: &BTreeSet<AppId>) -> BTreeSet<&'a str> {
        let names = apps.iter().map(|id| &self.survey.environments[self.survey.app(*id).environment.0].name);
        names.map(String::as_str).filter(|name| !name.is_empty()).collect()
    }
}

/// Whether a file lies in a chart or kustomization that no Application reaches, and in which of the two.
fn unreached(survey: &Survey, file: &str) -> Option<UnitKind> {
    let holds = |unit: &&Unit| {
        unit.kind != UnitKind::Manifest && (unit.path.is_empty() || is_below(file, &unit.path))
    };
    let kinds = survey.units.iter().filter(holds).map(|unit| unit.kind);
    // A chart inside a kustomization is a chart: it stands before that in the order of kinds.
    let kind = kinds.min()?;
    let mut clusters = std::iter::once(survey).chain(survey.flux.as_deref()).flat_map(|survey| &survey.apps);
    (!clusters.any(|app| app.read.contains(file))).then_some(kind)
}

/// Whether Applications render most of a repository, so that what none reaches is not what it is about.
pub fn is_run_by_applications(survey: &Survey) -> bool {
    let (of_apps, of_units): (Vec<_>, Vec<_>) =
        survey.objects.iter().partition(|object| matches!(object.owner, Owner::App(_)));
    let of_flux = survey.flux.as_ref().map_or(0, |flux| flux.objects.len());
    of_apps.len() + of_flux > of_units.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    #[test]
    fn rules_that_are_named_exist() {
        for id in NOT_AS_MEANT.iter().chain(&REFUSED).chain(&OF_ARGO_CD) {
            assert!(rules::by_id(id).is_some(), "{id}");
        }
    }
}
