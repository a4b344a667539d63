//! The verdict: what breaks, in which Applications, the causes that hit most, and what was not seen.

use std::collections::BTreeSet;

use tiphys_diag::sanitize::line;
use tiphys_graph::{Outcome, survey::Notice};
use tiphys_value::ObjectExt;

use super::{ReportContents, count_text, is_certain_error, summary::shortened};
use crate::{
    Finding,
    causes::CauseGroup,
    impact::{Effect, Reach, is_of_argo_cd_alone},
};

/// How many causes are named.
const CAUSES: usize = 3;
/// How many effects are told.
const EFFECTS: usize = 5;

impl ReportContents<'_> {
    /// The first lines: how much was found, what breaks, what hits most, what was not seen.
    pub(super) fn verdict_lines(&self) -> Vec<String> {
        let groups = self.groups();
        let mut lines = vec![self.headline(&groups)];
        let effects = Effect::ALL.iter().filter(|it| !matches!(it, Effect::Fights | Effect::NotAsMeant));
        lines.extend(effects.filter_map(|effect| effect_line(*effect, &groups)).take(EFFECTS));
        if groups.len() > 1 {
            let first = groups.iter().take(CAUSES).enumerate();
            lines.extend(first.map(|(at, group)| format!("{}. {}", at + 1, self.cause_line(group))));
        }
        lines.extend(self.unseen_line().map(|what| format!("not seen: {what}")));
        lines
    }

    /// How much was found, where.
    pub(super) fn headline(&self, groups: &[&CauseGroup]) -> String {
        let total = groups.iter().map(|group| group.findings.len()).sum::<usize>();
        let looked_at = self.surveyed_line();
        if total == 0 {
            return format!("nothing found in {looked_at}");
        }
        let of = if groups.len() == total {
            String::new()
        } else {
            format!(" of {}", count_text(groups.len(), "cause"))
        };
        format!("{}{of} in {looked_at}", count_text(total, "finding"))
    }

    /// A cause in one line: rule, place, message, and whom it hits.
    pub(super) fn cause_line(&self, group: &CauseGroup) -> String {
        let diagnostic = &self.checked.findings[group.findings[0]].diagnostic;
        let place = diagnostic
            .primary
            .as_ref()
            .map(|label| format!("{}:{}: ", label.span.file, label.span.start.line));
        let also = group.findings.len() - 1;
        let also = if also == 0 { String::new() } else { format!(" (+{also})") };
        let hits = match group.titles.len() {
            0 | 1 => String::new(),
            count => format!(" [hits {count} Applications]"),
        };
        let text = format!(
            "{} {} {}{}{also}{hits}",
            diagnostic.severity,
            diagnostic.rule,
            place.unwrap_or_default(),
            diagnostic.message
        );
        line(&text).into_owned()
    }

    /// What was not seen, in one line: how much for which reason, by name.
    pub(super) fn unseen_line(&self) -> Option<String> {
        let survey = self.survey;
        let mut parts = Vec::new();
        let mut part = |names: BTreeSet<String>, one: &str, many: &str| {
            let all: Vec<&str> = names.iter().map(String::as_str).collect();
            match all.len() {
                0 => {}
                1 => parts.push(format!("{one} ({})", all[0])),
                count => parts.push(format!("{count} {many} ({})", shortened(&all))),
            }
        };
        let sources = survey.unseen.iter().map(|unseen| unseen.what.clone()).collect();
        part(sources, "a source out of reach", "sources out of reach");
        let sets = |of: &dyn Fn(&tiphys_graph::Set) -> bool| -> BTreeSet<String> {
            let sets = survey.sets.iter().filter(|set| of(set));
            sets.map(|set| set.declared.value.name().to_owned()).collect()
        };
        part(
            sets(&|set| set.symbolic),
            "an ApplicationSet whose clusters or parameters are placeholders",
            "ApplicationSets whose clusters or parameters are placeholders",
        );
        part(
            sets(&|set| !set.symbolic && set.apps.is_empty()),
            "an ApplicationSet that yields nothing here",
            "ApplicationSets that yield nothing here",
        );
        let apps = |of: &dyn Fn(&tiphys_graph::App) -> bool| -> BTreeSet<String> {
            survey.apps.iter().filter(|app| of(app)).map(|app| app.name().to_owned()).collect()
        };
        part(
            apps(&|app| matches!(app.outcome, Outcome::Unseen(_))),
            "an Application that is not rendered, or only in part",
            "Applications that are not rendered, or only in part",
        );
        part(
            apps(&|app| matches!(app.outcome, Outcome::Duplicate(_))),
            "an Application taken for another of its name",
            "Applications taken for others of their names",
        );
        let notices =
            |names: &dyn Fn(&Notice) -> Vec<String>| survey.notices.iter().flat_map(names).collect();
        let examples = |notice: &Notice| match notice {
            Notice::ExampleClusters(names) => names.clone(),
            _ => Vec::new(),
        };
        part(notices(&examples), "an example of a cluster", "examples of clusters");
        let further = |notice: &Notice| match notice {
            Notice::FurtherApplications(count) => vec![format!("{count} of them")],
            _ => Vec::new(),
        };
        part(
            notices(&further),
            "more Applications than are looked at",
            "times more Applications than are looked at",
        );
        let unread = |notice: &Notice| match notice {
            Notice::FurtherManifests { count, first } => vec![format!("{count} from {first} on")],
            _ => Vec::new(),
        };
        part(
            notices(&unread),
            "more manifest files than are read",
            "times more manifest files than are read",
        );
        let charts = |notice: &Notice| match notice {
            Notice::Chart(folder) => vec![folder.clone()],
            Notice::OnlyUnits(folders) => folders.clone(),
            _ => Vec::new(),
        };
        part(
            notices(&charts),
            "other values of a chart that declares Applications",
            "other values of charts that declare Applications",
        );
        let unnamed = |notice: &Notice| match notice {
            Notice::NoName { kind, name, .. } => vec![format!("{kind} {name:?}")],
            Notice::Template { kind, name, .. } => vec![format!("{kind} {name}")],
            _ => Vec::new(),
        };
        part(notices(&unnamed), "what has still to be filled in", "objects that have still to be filled in");
        let text = parts.join("; ");
        (!text.is_empty()).then(|| line(&text).into_owned())
    }

    /// Which of the findings hold for Argo CD alone, if any do.
    pub(super) fn argo_cd_line(&self) -> Option<String> {
        let groups = self.groups();
        let firsts = groups.iter().map(|group| &self.checked.findings[group.findings[0]]);
        let of_argo_cd: Vec<&Finding> = firsts.filter(|finding| is_of_argo_cd_alone(finding)).collect();
        let rules: BTreeSet<&str> = of_argo_cd.iter().map(|it| it.diagnostic.rule.as_str()).collect();
        let rules: Vec<&str> = rules.into_iter().collect();
        let is_told = !self.view.is_argo_cd && !of_argo_cd.is_empty();
        is_told.then(|| {
            format!(
                "all of this is judged by Argo CD's rules; Tiphys goes on at {} of it ({}): docs/differences.md",
                count_text(of_argo_cd.len(), "cause"),
                shortened(&rules)
            )
        })
    }

    /// How many findings are left out because no Application reaches them, if any are.
    pub(super) fn unreached_line(&self) -> Option<String> {
        let groups = self.all_groups();
        let left_out: Vec<&CauseGroup> = groups.into_iter().filter(|group| self.is_left_out(group)).collect();
        let places: BTreeSet<&str> = left_out
            .iter()
            .filter_map(|group| self.checked.findings[group.findings[0]].diagnostic.primary.as_ref())
            .map(|label| tiphys_vfs::parent(&label.span.file).unwrap_or_default())
            .map(tiphys_vfs::shown_path)
            .collect();
        let places: Vec<&str> = places.into_iter().collect();
        let count = left_out.iter().map(|group| group.findings.len()).sum::<usize>();
        let text = format!(
            "{} where no Application leads, in {}; --all shows them",
            count_text(count, "more finding"),
            shortened(&places)
        );
        (count > 0).then(|| line(&text).into_owned())
    }
}

/// `cannot render: payments (dev), orders (prod); perhaps web`.
fn effect_line(effect: Effect, groups: &[&CauseGroup]) -> Option<String> {
    let mut of_apps = [BTreeSet::new(), BTreeSet::new()];
    for group in groups.iter().filter(|group| group.effect == effect && group.reach == Reach::Application) {
        let is_sure = is_certain_error(group.severity, group.confidence);
        of_apps[usize::from(!is_sure)].extend(group.titles.iter().map(String::as_str));
    }
    let [sure, mut perhaps] = of_apps;
    perhaps.retain(|title| !sure.contains(title));
    let named = |titles: BTreeSet<&str>| shortened(&titles.into_iter().collect::<Vec<_>>());
    let text = match (sure.is_empty(), perhaps.is_empty()) {
        (true, true) => return None,
        (false, true) => named(sure),
        (true, false) => format!("perhaps {}", named(perhaps)),
        (false, false) => format!("{}; perhaps {}", named(sure), named(perhaps)),
    };
    Some(line(&format!("{}: {text}", effect.words())).into_owned())
}
