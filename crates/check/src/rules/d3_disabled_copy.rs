//! # A manifest that was set aside is still applied
//!
//! A file that is called `web.yaml.disabled` is there so that nothing applies it. Where a file `web.yaml`
//! with the same content is beside it, and an Application applies that, the copy was set aside and the
//! original stayed.
//!
//! People see: what was switched off goes on running.
//!
//! ## Bad
//! ```text
//! apps/web.yaml
//! apps/web.yaml.disabled
//! ```
//! ## Good
//! ```text
//! apps/web.yaml.disabled
//! ```
//! ## When to suppress
//! Where the copy is kept for later.

use tiphys_diag::{Severity, Span};

use crate::{Context, Finding, Report, Rule};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D3-disabled-copy",
    incident: "D3",
    severity: Severity::Warning,
    title: "a manifest that was set aside is still applied",
    page: page!("d3_disabled_copy.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let (survey, files) = (context.survey, &context.survey.files);
    for path in files.ending(&[".yaml.disabled", ".yml.disabled", ".yaml.off", ".yml.off"]) {
        let Some((original, _)) = path.rsplit_once('.') else { continue };
        let read = || survey.apps.iter().find(|app| app.read.contains(original));
        let declares = || survey.apps.iter().find(|app| app.declared.location.file.as_ref() == original);
        let Some(app) = read().or_else(declares).filter(|_| files.contains(original)) else { continue };
        let (Some(aside), Some(applied)) = (files.text(path), files.text(original)) else { continue };
        let mut diagnostic = RULE
            .diagnostic(format!("{original} is applied, and {path} beside it says that it is switched off"))
            .at(
                Span::point(std::sync::Arc::from(original), 1, 1),
                format!("Application {} has it", app.name()),
            )
            .see(Span::point(path.clone(), 1, 1), "the copy that nothing applies")
            .because("the name of a copy does not switch off the file that it was made from")
            .help(format!("delete {original}, or the copy"));
        if significant(&aside) != significant(&applied) {
            diagnostic.severity = Severity::Info;
        }
        report.add(Finding::new(RULE.incident, diagnostic).app(app.name()).likely());
    }
}

/// The lines of a text without comments and blanks.
fn significant(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}
