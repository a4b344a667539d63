//! # A project forbids what its Application needs
//!
//! An AppProject lists the repositories, destinations and kinds that its Applications may use. What is
//! not listed is refused: nothing of the Application is synced (a repository or destination), or the
//! operation fails (a kind, or an object in a namespace that is no destination).
//!
//! People see: `InvalidSpecError: application repo … is not permitted in project 'team'`, `application
//! destination server '…' and namespace '…' do not match any of the allowed destinations in project 'team'`,
//! `resource :Namespace is not permitted in project team`, `namespace kube-system is not permitted in project
//! 'team'`, `Application referencing project team which does
//! not exist` (of a project that a change removes, with `--diff`, or of a name that cannot be right).
//!
//! ## Bad
//! ```yaml
//! kind: AppProject
//! spec: {destinations: [{server: "*", namespace: shop}]}
//! # its Application: destination: {namespace: shop-staging}
//! ```
//! ## Good
//! ```yaml
//! spec: {destinations: [{server: "*", namespace: "shop*"}]}
//! ```
//! ## When to suppress
//! Where the project in the cluster is not the one in the repository.

use std::collections::{BTreeMap, BTreeSet};

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{
    App, Object, Survey,
    survey::{UNTOLD, is_namespaced},
};
use tiphys_model::{AppProject, Destination, hook::is_ignored, names, repository};
use tiphys_schema::names::dns1123_subdomain;
use tiphys_value::ObjectExt;

use crate::{
    Context, Finding, Report, Rule,
    support::{chart_cluster_kinds, dedup::Once, field_paths::keys, placeholders, sync_options::mentions},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-project-forbids",
    incident: "D2",
    severity: Severity::Error,
    title: "an AppProject forbids the source, the destination or a kind of its Application",
    page: page!("d2_project_forbids.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    // What a global project allows, its members inherit; which they are, only the engine's settings say.
    let inherits = mentions(context.survey, "globalProjects");
    let repositories: Vec<Repository<'_>> = context.survey.objects.iter().filter_map(repository).collect();
    for app in &context.survey.apps {
        removed(context, app, &mut once);
        if !misspelt(context, app, &mut once) {
            undeclared(context, app, &mut once);
        }
        let Some((object, project)) = project(context, app) else { continue };
        let mut judged = Judged { survey: context.survey, app, object, project };
        if judged.add_own_repositories(&repositories) {
            judged.sources(&mut once);
        }
        judged.destination(&mut once);
        if !inherits {
            judged.kinds(&mut once);
            judged.kinds_of_charts(context, &mut once);
            judged.namespaces(context, &mut once);
        }
    }
    once.report(report);
}

/// The project of an Application, if the repository has exactly one of that name for its environment.
fn project<'a>(context: &Context<'a>, app: &App) -> Option<(&'a Object, AppProject)> {
    let name = app.application.project();
    let all = projects(context.survey).filter(|it| it.key.name == name);
    let all: Vec<&Object> = all.collect();
    let own: Vec<&Object> =
        all.iter().copied().filter(|object| object.environment == Some(app.environment)).collect();
    let chosen = match (own.as_slice(), all.as_slice()) {
        ([one], _) => *one,
        // The default project exists without a manifest; whose settings a stray one holds is not told.
        ([], [one]) if name != "default" => *one,
        _ => return None,
    };
    Some((chosen, AppProject::from_value(chosen.value()).ok()?))
}

/// The projects of a repository.
fn projects(survey: &Survey) -> impl Iterator<Item = &Object> {
    survey.of_kind(names::GROUP, "AppProject")
}

/// A project that a change takes away while an Application is still in it.
fn removed(context: &Context<'_>, app: &App, once: &mut Once) {
    let name = app.application.project();
    let has = |survey: &Survey| projects(survey).any(|it| it.key.name == name);
    if name == "default" || !context.base.is_some_and(has) || has(context.survey) {
        return;
    }
    let mut diagnostic = RULE
        .diagnostic(format!("Application referencing project {name} which does not exist"))
        .at(context.survey.app_span(app, &keys(&["spec", "project"])), "the change removes this project")
        .because("the engine does nothing for an Application whose project is not there")
        .help(format!("keep the project, or move Application {} to another one first", app.name()));
    // Who deletes the project in the cluster is not told, nor what was not seen.
    diagnostic.severity = Severity::Warning;
    once.add(name, Finding::new(RULE.incident, diagnostic).app(app.name()));
}

/// A project whose name no object can have, or that is nearly that of the one that always exists. Whether it
/// is told.
fn misspelt(context: &Context<'_>, app: &App, once: &mut Once) -> bool {
    let name = app.application.project();
    let is_there = projects(context.survey).any(|it| it.key.name == name);
    let is_slip = similar_names::nearest_slip(name, ["default"].into_iter()).is_some();
    let is_no_name = !dns1123_subdomain(name).is_empty();
    // A template of another tool's, or a form.
    let is_open =
        placeholders::is_in(name) || name.contains(['$', '%', '<', '@']) || name.to_uppercase() == name;
    if name == "default" || is_there || is_open || !(is_slip || is_no_name) {
        return false;
    }
    let mut diagnostic = RULE
        .diagnostic(format!("Application referencing project {name} which does not exist"))
        .at(context.survey.app_span(app, &keys(&["spec", "project"])), "no project can be meant by this")
        .because("the engine does nothing for an Application whose project is not there");
    diagnostic.severity = Severity::Warning;
    let finding = Finding::new(RULE.incident, diagnostic).app(app.name()).likely();
    once.add(name, finding.perhaps(name, is_slip.then_some("default")));
    true
}

/// How many projects have to be declared in the repository, for each that is not.
const ENOUGH_DECLARED: usize = 6;

/// A project that nothing declares, where the repository declares every other one that its Applications are
/// in, or nearly so, and no file speaks of this one otherwise.
fn undeclared(context: &Context<'_>, app: &App, once: &mut Once) {
    let (survey, name) = (context.survey, app.application.project());
    let declared: BTreeSet<&str> = projects(survey).map(|it| it.key.name.as_str()).collect();
    let is_open = |name: &str| placeholders::is_in(name) || name.contains(['$', '%', '<', '@']);
    if name.is_empty() || name == "default" || is_open(name) || declared.contains(name) {
        return;
    }
    let others: BTreeSet<&str> = survey
        .apps
        .iter()
        .map(|it| it.application.project())
        .filter(|it| *it != name && !it.is_empty() && *it != "default")
        .collect();
    let undeclared = others.iter().filter(|it| !declared.contains(*it)).count();
    let is_only = !others.is_empty() && ENOUGH_DECLARED * undeclared <= others.len() - undeclared;
    if !is_only || declared.iter().any(|it| is_open(it)) || is_named_elsewhere(survey, name) {
        return;
    }
    let near = similar_names::nearest_slip(name, declared.iter().copied());
    let mut diagnostic = RULE
        .diagnostic(format!("Application referencing project {name} which does not exist"))
        .at(survey.app_span(app, &keys(&["spec", "project"])), "nothing declares this project")
        .because("the engine does nothing for an Application whose project is not there")
        .help(format!("the projects of this repository are {}", Vec::from_iter(declared).join(", ")));
    diagnostic.severity = Severity::Warning;
    once.add_by(
        name.to_owned(),
        Finding::new(RULE.incident, diagnostic).app(app.name()).likely().perhaps(name, near),
    );
}

/// Whether a file speaks of a project in other words than an Application that is in it: values that declare
/// projects, Terraform, a script.
fn is_named_elsewhere(survey: &Survey, name: &str) -> bool {
    const SHORTEST: usize = 3;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let says = |line: &str| {
        let said = line.trim().trim_start_matches("- ").trim_start_matches(['"', '\'']);
        line.split(|c: char| !is_part(c)).any(|word| word == name) && !said.starts_with("project")
    };
    let declares = |text: &str| {
        text.contains(name)
            && (text.contains("AppProject") || text.contains("projects:") || text.contains("argocd_project"))
            && text.lines().any(says)
    };
    name.len() < SHORTEST || survey.files.any_text(declares)
}

/// A Secret that tells the engine of a repository, or what makes one.
struct Repository<'a> {
    project: Option<&'a str>,
    url: Option<&'a str>,
    /// Whether the project can be read here, if it has one.
    is_plain: bool,
}

fn repository(object: &Object) -> Option<Repository<'_>> {
    const IS_REPOSITORY: &str = "\"argocd.argoproj.io/secret-type\":\"repository\"";
    let text = object.key.kind.ends_with("Secret").then(|| object.value().to_string())?;
    if !text.contains(IS_REPOSITORY) {
        return None;
    }
    let field = |field: &str| object.value().str_at(&["stringData", field]);
    let is_read = object.key.kind == "Secret" && object.value()["data"]["project"].is_null();
    let is_plain = is_read || !(text.contains("\"project\"") || text.contains("\"dataFrom\""));
    Some(Repository { project: field("project"), url: field("url"), is_plain })
}

struct Judged<'a> {
    survey: &'a Survey,
    app: &'a App,
    object: &'a Object,
    project: AppProject,
}

impl Judged<'_> {
    /// Adds the repositories whose Secrets say that they are the project's, which it may use whatever it
    /// lists (Argo CD docs, "Project scoped Repositories and Clusters"). Whether all of them can be read
    /// here.
    fn add_own_repositories(&mut self, repositories: &[Repository<'_>]) -> bool {
        let own = repositories.iter().filter(|it| it.project == Some(&self.project.metadata.name));
        self.project.spec.source_repos.extend(own.filter_map(|it| it.url.map(str::to_owned)));
        repositories.iter().all(|it| it.is_plain)
    }

    fn sources(&self, once: &mut Once) {
        for source in self.app.application.spec.effective_sources() {
            // What has no address is a part of an Application, or a template, and is completed by another
            // tool.
            let url = &source.repo_url;
            let is_open = url.is_empty() || placeholders::is_in(url) || url.contains('$');
            if is_open || self.project.permits_source(url) {
                continue;
            }
            let text = format!("application repo {} is not permitted", source.repo_url);
            let help = self.by_another_address(url).map(|permitted| {
                format!("{permitted}, which is permitted, is the same repository, but another address: list this one too")
            });
            self.report(&text, &["spec", "sourceRepos"], &["spec", "source", "repoURL"], help, once);
        }
    }

    /// The address by which the project permits a repository that goes by another one here, such as HTTPS and
    /// SSH.
    fn by_another_address(&self, url: &str) -> Option<&String> {
        let wanted = repository::normalize(url);
        self.project.spec.source_repos.iter().find(|permitted| repository::normalize(permitted) == wanted)
    }

    /// Whether it is not known where an Application goes, or which projects are meant for that.
    fn has_open_destination(&self) -> bool {
        let destination = &self.app.application.spec.destination;
        let is_open = [&destination.namespace, &destination.server, &destination.name];
        let is_open = is_open.iter().any(|text| placeholders::is_in(text) || text.ends_with(UNTOLD));
        // Which projects are meant for a cluster that only the installation knows is not known either.
        is_open || self.survey.is_symbolic(self.app)
    }

    fn permits(&self, destination: &Destination) -> bool {
        self.spellings(destination).iter().any(|it| self.project.permits_destination(it))
    }

    fn destination(&self, once: &mut Once) {
        let destination = &self.app.application.spec.destination;
        if self.has_open_destination() || self.permits(destination) {
            return;
        }
        let text = format!(
            "application destination server '{}' and namespace '{}' do not match any of the allowed destinations",
            self.app.cluster(),
            destination.namespace
        );
        self.report(&text, &["spec", "destinations"], &["spec", "destination"], None, once);
    }

    /// The engine knows name and address of a cluster; the repository tells both only of its own.
    fn spellings(&self, destination: &Destination) -> Vec<Destination> {
        let mut both = destination.clone();
        if self.app.cluster() == names::IN_CLUSTER_SERVER {
            both.server = names::IN_CLUSTER_SERVER.into();
            both.name = names::IN_CLUSTER_NAME.into();
            return vec![both];
        }
        // Of another cluster the missing half is taken for whatever the project allows.
        let allowed = self.project.spec.destinations.iter();
        let mut all: Vec<Destination> = allowed
            .map(|rule| Destination {
                server: if both.server.is_empty() { rule.server.clone() } else { both.server.clone() },
                name: if both.name.is_empty() { rule.name.clone() } else { both.name.clone() },
                ..both.clone()
            })
            .collect();
        all.push(both.clone());
        all
    }

    fn kinds(&self, once: &mut Once) {
        let mut refused: BTreeMap<String, &Object> = BTreeMap::new();
        // What is never applied, such as the tests of a chart, is not asked about.
        let applied = self.survey.objects_of(self.app.id).filter(|object| !is_ignored(object.value()));
        for object in applied {
            let gvk = object.value().gvk();
            let Some(namespaced) = is_namespaced(&gvk) else { continue };
            if !self.project.permits_kind(&gvk.group, &gvk.kind, object.value().name(), namespaced) {
                refused.entry(format!("{}:{}", gvk.group, gvk.kind)).or_insert(object);
            }
        }
        let Some(first) = refused.values().next() else { return };
        let kinds: Vec<&str> = refused.keys().map(String::as_str).collect();
        let text = format!("resource {} is not permitted", kinds.join(", "));
        let namespaced = is_namespaced(&first.value().gvk()) == Some(true);
        let list = if namespaced { "namespaceResourceWhitelist" } else { "clusterResourceWhitelist" };
        let diagnostic = self
            .diagnostic(&text, &["spec", list])
            .at(self.survey.start(first), format!("{} renders it", self.app.name()));
        let finding = Finding::new(RULE.incident, diagnostic).app(self.app.name()).object(first.title());
        // What the project lacks is one line, however many of its Applications need it.
        once.add_by(format!("{} {text}", self.survey.start(self.object)), finding);
    }

    /// What the charts of an Application that is not rendered are known to bring.
    fn kinds_of_charts(&self, context: &Context<'_>, once: &mut Once) {
        if self.app.is_rendered() {
            return;
        }
        for used in context.chart_uses().iter().filter(|it| it.app == Some(self.app.id)) {
            let brought = chart_cluster_kinds::brought_by(&used.chart, &used.values);
            let is_refused =
                |(group, kind): &(&str, &str)| !self.project.permits_kind(group, kind, "", false);
            let refused: Vec<String> = brought
                .into_iter()
                .filter(is_refused)
                .map(|(group, kind)| format!("{group}:{kind}"))
                .collect();
            if refused.is_empty() {
                continue;
            }
            let text = format!("resource {} is not permitted", refused.join(", "));
            let diagnostic = self
                .diagnostic(&text, &["spec", "clusterResourceWhitelist"])
                .at(used.span.clone(), format!("chart {} brings it", used.chart))
                .because("this goes by what the chart brings with its default values: it is out of reach");
            let finding = Finding::new(RULE.incident, diagnostic).app(self.app.name()).likely();
            once.add_by(format!("{} {text}", self.survey.start(self.object)), finding);
        }
    }

    /// Objects in other namespaces than the Application's own, which have to be destinations of the project,
    /// too.
    fn namespaces(&self, context: &Context<'_>, once: &mut Once) {
        let own = &self.app.application.spec.destination;
        if self.has_open_destination() || !self.permits(own) {
            return;
        }
        let is_refused = |namespace: &str| {
            let there = Destination { namespace: namespace.to_owned(), ..own.clone() };
            !namespace.is_empty() && !placeholders::is_in(namespace) && !self.permits(&there)
        };
        let mut refused: BTreeMap<&str, &Object> = BTreeMap::new();
        let applied = self.survey.objects_of(self.app.id).filter(|object| !is_ignored(object.value()));
        for object in applied.filter(|it| is_namespaced(&it.value().gvk()) == Some(true)) {
            refused.entry(object.key.namespace.as_str()).or_insert(object);
        }
        refused.retain(|namespace, _| is_refused(namespace));
        for (namespace, object) in refused {
            let text = format!("namespace {namespace} is not permitted");
            let diagnostic = self
                .diagnostic(&text, &["spec", "destinations"])
                .at(self.survey.start(object), format!("{} renders it into {namespace}", self.app.name()));
            let finding = Finding::new(RULE.incident, diagnostic).app(self.app.name()).object(object.title());
            once.add_by(format!("{} {text}", self.survey.start(self.object)), finding);
        }
        if self.app.is_rendered() {
            return;
        }
        for used in context.chart_uses().iter().filter(|it| it.app == Some(self.app.id)) {
            let brought = chart_cluster_kinds::namespaces_of(&used.chart, &used.values);
            for namespace in brought.into_iter().filter(|it| is_refused(it)) {
                let text = format!("namespace {namespace} is not permitted");
                let diagnostic = self
                    .diagnostic(&text, &["spec", "destinations"])
                    .at(used.span.clone(), format!("chart {} renders objects into {namespace}", used.chart))
                    .because(
                        "this goes by what the chart brings with its default values: it is out of reach",
                    );
                let finding = Finding::new(RULE.incident, diagnostic).app(self.app.name()).likely();
                once.add_by(format!("{} {text}", self.survey.start(self.object)), finding);
            }
        }
    }

    fn diagnostic(&self, text: &str, list: &[&str]) -> crate::Diagnostic {
        let project = self.project.metadata.name.as_str();
        RULE.diagnostic(format!("{text} in project {project}"))
            .see(self.survey.span(self.object, &keys(list)), "the project is declared here")
            .because("the engine refuses whatever the project does not allow")
            .help(format!("allow it in the project, or move Application {} to another one", self.app.name()))
    }

    fn report(&self, text: &str, list: &[&str], field: &[&str], help: Option<String>, once: &mut Once) {
        let span = self.survey.app_span(self.app, &keys(field));
        let mut diagnostic = self.diagnostic(text, list).at(span, "asked for here");
        diagnostic.help.extend(help);
        let finding = Finding::new(RULE.incident, diagnostic).app(self.app.name());
        once.add_by(format!("{} {text}", self.survey.start(self.object)), finding);
    }
}
