//! The order of an environment in the forms that people and programs read.

use std::fmt::Write as _;

use tiphys_diag::sanitize;
use tiphys_value::{ObjectExt, Value, json};

use super::{Drift, Plan, Row};
use crate::{AppId, Declaration, Outcome, Set, Survey};

/// A plan with what it is about.
pub struct PlanView<'a> {
    /// The repository.
    pub survey: &'a Survey,
    /// The order.
    pub plan: &'a Plan,
    /// Show the waves that would be right beside those that are.
    pub fix: bool,
}

impl PlanView<'_> {
    /// A tree with waves, then what is needed of each other, then what no order can satisfy.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let name = &self.survey.environments[self.plan.environment.0].name;
        if !name.is_empty() {
            line(&mut text, &format!("environment {name}"));
        }
        for row in &self.plan.rows {
            line(&mut text, &format!("{}{}", "  ".repeat(row.depth), self.row(row)));
        }
        for (name, why) in self.sets_without_applications() {
            line(&mut text, &format!("{name}  (ApplicationSet that yields nothing: {why})"));
        }
        if !self.plan.dependencies.is_empty() {
            line(&mut text, "\nneeds:");
        }
        for dependency in &self.plan.dependencies {
            let (from, to) = (self.name(dependency.from), self.name(dependency.to));
            line(&mut text, &format!("  {from} needs {to}: {}", dependency.because));
        }
        for circle in &self.plan.circles {
            line(&mut text, "\nno order is right for these:");
            for dependency in &circle.circle {
                let (from, to) = (self.name(dependency.from), self.name(dependency.to));
                line(&mut text, &format!("  {from} needs {to}: {}", dependency.because));
            }
        }
        text
    }

    /// The ApplicationSets of the environment that yield nothing, each with why.
    fn sets_without_applications(&self) -> Vec<(String, String)> {
        let environment = self.plan.environment;
        let is_of = |id: &AppId| self.survey.app(*id).environment == environment;
        let sets = self.survey.sets.iter().filter(|set| set.environments.contains(&environment));
        let empty = sets.filter(|set| !set.apps.iter().any(is_of));
        let why = |set: &Set| set.fault.clone().or_else(|| set.partly.clone());
        let told = |set: &Set| why(set).unwrap_or_else(|| "its generators find nothing".to_owned());
        empty.map(|set| (set.declared.value.name().to_owned(), told(set))).collect()
    }

    fn row(&self, row: &Row) -> String {
        let name = self.name(row.app);
        let at = match (row.step, self.survey.app(row.app).declaration) {
            (Some(step), _) => step.to_string(),
            (None, Declaration::Set(set)) => {
                format!("ApplicationSet {}", self.survey.sets[set.0].declared.value.name())
            }
            (None, _) => "root".to_owned(),
        };
        match row.proposed.filter(|_| self.fix) {
            Some(wave) => format!("{name}  ({at} -> wave {wave})"),
            None => format!("{name}  ({at})"),
        }
    }

    /// The committed form: a mapping from names to waves, which `--expect` and the rule G7 compare with.
    pub fn waves(&self) -> String {
        let mut text = String::from("waves:\n");
        for row in self.plan.rows.iter().filter(|row| row.step.is_some()) {
            let wave = row.proposed.filter(|_| self.fix).unwrap_or(self.survey.app(row.app).wave());
            line(&mut text, &format!("  {}: {wave}", self.name(row.app)));
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let apps = self.plan.rows.iter().map(|row| {
            let mut shown = json!({
                "name": self.name(row.app), "namespace": self.survey.app(row.app).declared_id().id.0,
                "digest": self.survey.digest(self.survey.app(row.app)), "depth": row.depth,
                "wave": row.step.map(|step| step.wave), "proposedWave": row.proposed,
            });
            // It stands for one in each cluster, and only the installation knows those.
            if self.survey.is_symbolic(self.survey.app(row.app)) {
                shown["anyCluster"] = true.into();
            }
            if matches!(self.survey.app(row.app).outcome, Outcome::Duplicate(_)) {
                shown["duplicate"] = true.into();
            }
            shown
        });
        let needs = |dependency: &super::Dependency| json!({"from": self.name(dependency.from), "to": self.name(dependency.to), "because": dependency.because});
        let circles = self.plan.circles.iter().map(|it| it.circle.iter().map(needs).collect::<Vec<_>>());
        json!({
            // What Flux applies is read as the Applications that render the same.
            "engine": if self.survey.is_of_flux { "Flux" } else { "Argo CD" },
            "environment": self.survey.environments[self.plan.environment.0].name,
            "applications": apps.collect::<Vec<_>>(),
            "needs": self.plan.dependencies.iter().map(needs).collect::<Vec<_>>(),
            "circles": circles.collect::<Vec<_>>(),
            "setsWithoutApplications": self.sets_without_applications().into_iter()
                .map(|(name, why)| json!({"name": name, "why": why})).collect::<Vec<_>>(),
        })
    }

    /// For Graphviz: who renders whom, solid; who needs whom, dashed.
    pub fn dot(&self) -> String {
        let mut text = String::from("digraph applications {\n  rankdir=LR;\n  node [shape=box];\n");
        for row in &self.plan.rows {
            line(&mut text, &format!("  a{} [label={}];", row.app.0, quoted(&self.row(row))));
        }
        for (above, below) in self.above() {
            line(&mut text, &format!("  a{} -> a{};", above.0, below.0));
        }
        for dependency in &self.plan.dependencies {
            let (from, to) = (dependency.from.0, dependency.to.0);
            line(
                &mut text,
                &format!("  a{from} -> a{to} [style=dashed, tooltip={}];", quoted(&dependency.because)),
            );
        }
        text + "}\n"
    }

    /// For Mermaid, as code hosts show it in Markdown.
    pub fn mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        for row in &self.plan.rows {
            line(&mut text, &format!("  a{}[{}]", row.app.0, quoted(&self.row(row)).replace('<', "#lt;")));
        }
        for (above, below) in self.above() {
            line(&mut text, &format!("  a{} --> a{}", above.0, below.0));
        }
        for dependency in &self.plan.dependencies {
            line(&mut text, &format!("  a{} -.->|needs| a{}", dependency.from.0, dependency.to.0));
        }
        text
    }

    /// Every Application with the one above it.
    fn above(&self) -> Vec<(AppId, AppId)> {
        let mut way: Vec<AppId> = Vec::new();
        let mut found = Vec::new();
        for row in &self.plan.rows {
            way.truncate(row.depth);
            found.extend(way.last().map(|above| (*above, row.app)));
            way.push(row.app);
        }
        found
    }

    fn name(&self, app: AppId) -> &str {
        self.survey.app(app).name()
    }
}

impl Drift {
    /// The difference in words.
    pub fn text(&self) -> String {
        match self {
            Self::Wave { app, expected, found } => {
                format!("{app}: expected in wave {expected}, is in wave {found}")
            }
            Self::Missing { app } => format!("{app}: expected, and not in the repository"),
        }
    }
}

fn line(text: &mut String, content: &str) {
    writeln!(text, "{content}").expect("a string takes all");
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", sanitize::line(text).replace('\\', "\\\\").replace('"', "'"))
}
