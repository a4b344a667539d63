//! What is told where an object names another that is not there, and one is that is similarly named.

use tiphys_graph::Object;
use tiphys_value::FieldPath;

use crate::{Context, Finding, Rule};
use tiphys_diag::similar_names;

/// A name that leads nowhere, and what it may mean.
pub(crate) struct Misnamed<'a> {
    /// The kind of what is named.
    pub kind: &'a str,
    /// The name.
    pub name: &'a str,
    /// Where it stands in the object that says it.
    pub path: &'a FieldPath,
    /// What is similarly named.
    pub meant: &'a Object,
}

impl Misnamed<'_> {
    /// The finding: `lack` completes "names Kind/name, which …", and `why` says what comes of it.
    pub(crate) fn finding(
        &self,
        rule: &Rule,
        context: &Context<'_>,
        by: &Object,
        lack: &str,
        why: &str,
    ) -> Finding {
        let Self { kind, name, path, meant } = self;
        let is_near = similar_names::nearest_slip(name, std::iter::once(meant.key.name.as_str())).is_some();
        let why_meant = if is_near { "is nearly called so" } else { "is what nothing names" };
        let diagnostic = rule
            .diagnostic(format!("{} names {kind}/{name}, which {lack}", by.title()))
            .at(context.survey.span(by, path), "named here")
            .see(context.survey.start(meant), format!("{} {why_meant}", meant.key.name))
            .because(why);
        rule.finding(context, by, diagnostic).likely().perhaps(name, Some(&meant.key.name))
    }
}
