//! # A Kustomization or HelmRelease of Flux that cannot be built
//!
//! Flux adds `spec.components`, `spec.patches` and the like to what the folder holds, and builds it. A
//! component that is not there, or a file that a generator names and that was renamed, ends the build:
//! nothing of the Kustomization is applied, and what waits for it waits on. The paths of `spec.components`
//! count from `spec.path`, not from the file that names them.
//!
//! With `postBuild`, Flux reads each `${…}` of what it builds, in scripts and programs too. It knows less of
//! them than bash: `${NAME-other}`, `${LIST[@]}` and JavaScript's `${a.b}` end the build.
//!
//! People see: `kustomize build failed: accumulating components: …: no such file or directory`, `Ready:
//! False`, `post build failed for 'web': envsubst error: … missing closing brace`, `dependency … is not
//! ready`.
//!
//! ## Bad
//! ```yaml
//! path: ./apps/shop/web
//! components: [../../components/backup]        # from apps/shop/web, this is apps/components/backup
//! ```
//! ## Good
//! ```yaml
//! path: ./apps/shop/web
//! components: [../../../components/backup]
//! ```
//! ## When to suppress
//! Where something writes files into the folder before Flux reads it.

use tiphys_diag::{Severity, Span};
use tiphys_graph::{App, Object, Outcome, Survey, UnreadableExpression, is_of_flux};
use tiphys_render::{Cause, RenderError};
use tiphys_value::Value;
use tiphys_vfs::join;

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths::keys, pods::list, render_fault::RenderFault, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-flux-build",
    incident: "D2",
    severity: Severity::Error,
    title: "a Kustomization or HelmRelease of Flux that cannot be built",
    page: page!("d2_flux_build.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    if let Some(flux) = context.survey.flux.as_deref() {
        unreadable_expressions(flux, &mut once);
    }
    if !context.survey.is_of_flux {
        return once.report(report);
    }
    for app in &context.survey.apps {
        if let Outcome::Failed(error) = &app.outcome
            && matches!(error.cause(), Cause::Other | Cause::Missing)
            && !is_made_later(context, error)
            && let Some(object) = declared(context, app)
        {
            // What a Kustomization builds for another one fails in both, at one place.
            let place = error.place().map(|at| format!("{}:{}", at.file, at.line));
            once.add_by(
                place.unwrap_or_else(|| error.headline().to_owned()),
                finding(context, app, object, error),
            );
        }
    }
    once.report(report);
}

/// Expressions in what Kustomizations build that end the build, each once.
fn unreadable_expressions(flux: &Survey, once: &mut Once) {
    for expression in &flux.unreadable_expressions {
        let (holder, app) = (flux.object(expression.object), flux.app(expression.app));
        let place = &holder.rendered.location;
        let key = format!("{}:{} {:?}", place.file, place.line, expression.field);
        once.add_by(key, unreadable(flux, expression, holder, app));
    }
}

fn unreadable(flux: &Survey, expression: &UnreadableExpression, holder: &Object, app: &App) -> Finding {
    let (text, title) = (&expression.text, format!("Kustomization/{}", app.name()));
    let holder_title = format!("{}/{}", holder.key.kind, holder.key.name);
    let diagnostic = RULE
        .diagnostic(format!("{title} cannot be built: {holder_title} holds {text}, which Flux cannot read"))
        .at(flux.span(holder, &expression.field), format!("{text} is in here"))
        .see(flux.app_span(app, &keys(&["spec", "postBuild"])), "this substitutes variables")
        .because("Flux reads each ${…} of what it builds, and knows less of them than bash: it applies nothing of it")
        .help(format!("write ${text}, so that it is left as it is"))
        .help("or give the object the label kustomize.toolkit.fluxcd.io/substitute: disabled");
    Finding::new(RULE.incident, diagnostic).app(app.name()).object(holder_title).likely()
}

/// Whether what is missing is a file that Git is told to ignore: something makes it before it is read.
fn is_made_later(context: &Context<'_>, error: &RenderError) -> bool {
    error.missing_path().is_some_and(|path| unused_files::is_git_ignored(&context.survey.files, path))
}

/// The object of Flux that an Application stands for.
fn declared<'a>(context: &Context<'a>, app: &App) -> Option<&'a Object> {
    let is_it = |it: &&Object| {
        it.key.name == app.name() && it.rendered.location == app.declared.location && is_of_flux(it.value())
    };
    context.survey.objects.iter().find(is_it)
}

fn finding(context: &Context<'_>, app: &App, object: &Object, error: &RenderError) -> Finding {
    let fault = RenderFault::from_error(context, error, Some(app));
    let mut diagnostic = RULE.diagnostic(format!("{} cannot be built: {}", object.title(), fault.text));
    diagnostic.related = fault.related;
    diagnostic.help = fault.help;
    let own = component(context, object).unwrap_or_else(|| context.survey.start(object));
    diagnostic = match fault.span {
        Some(span) => diagnostic.at(span, fault.label).see(own, "this builds it"),
        None => diagnostic.at(own, "this cannot be built"),
    };
    diagnostic = diagnostic.because("Flux applies nothing of it, and what depends on it waits");
    RULE.finding(context, object, diagnostic).likely()
}

/// The entry of `spec.components` that leads nowhere, if one does.
fn component(context: &Context<'_>, object: &Object) -> Option<Span> {
    let folder = context.survey.flux_sources.folder(object.value())?;
    let mut entries =
        list(&object.value()["spec"], "components").iter().filter_map(Value::as_str).enumerate();
    let leads_nowhere = |entry: &str| {
        let path = join(&folder, entry).unwrap_or_default();
        !entry.contains("://") && !context.survey.files.has_folder(&path)
    };
    let (at, _) = entries.find(|(_, entry)| leads_nowhere(entry))?;
    Some(context.survey.span(object, &keys(&["spec", "components"]).index(at)))
}
