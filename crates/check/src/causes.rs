//! Findings by cause: what has one reason is one entry, and those that break most stand first.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use tiphys_diag::{Severity, Span};
use tiphys_graph::{AppId, Survey};

use crate::{
    Confidence, Finding,
    impact::{Effect, Impacts, Reach},
};

/// Findings with one reason.
#[derive(Clone, Debug)]
pub struct CauseGroup {
    /// Positions of the findings; the first stands for all.
    pub findings: Vec<usize>,
    /// How bad it is,
    pub severity: Severity,
    /// and how sure.
    pub confidence: Confidence,
    /// What goes wrong.
    pub effect: Effect,
    /// What leads there.
    pub reach: Reach,
    /// The Applications that it hits,
    pub apps: BTreeSet<AppId>,
    /// and the same as people are told: `payments (dev)`.
    pub titles: BTreeSet<String>,
    /// The environments of these.
    pub environments: BTreeSet<String>,
}

/// Findings in the order of their causes, those that break most first, and these causes. What repeats one in
/// the same file comes at the end, so that the first few are of as many causes.
pub fn ordered(survey: &Survey, findings: Vec<Finding>) -> (Vec<Finding>, Vec<CauseGroup>) {
    let mut causes = groups(survey, &findings);
    let repeats = repeats(&causes, &findings);
    let mut findings: Vec<Option<Finding>> = findings.into_iter().map(Some).collect();
    let mut sorted = Vec::with_capacity(findings.len());
    let mut places = vec![0; findings.len()];
    for is_repeat in [false, true] {
        for at in
            causes.iter().flat_map(|cause| &cause.findings).filter(|at| repeats.contains(*at) == is_repeat)
        {
            places[*at] = sorted.len();
            sorted.extend(findings[*at].take());
        }
    }
    for at in causes.iter_mut().flat_map(|cause| &mut cause.findings) {
        *at = places[*at];
    }
    (sorted, causes)
}

/// The findings that come after another one of their cause in the same file.
fn repeats(causes: &[CauseGroup], findings: &[Finding]) -> BTreeSet<usize> {
    let file = |at: usize| findings[at].diagnostic.primary.as_ref().map(|label| label.span.file.as_ref());
    let mut found = BTreeSet::new();
    for cause in causes {
        let mut files = BTreeSet::new();
        found.extend(cause.findings.iter().copied().filter(|at| !files.insert(file(*at))));
    }
    found
}

fn groups(survey: &Survey, findings: &[Finding]) -> Vec<CauseGroup> {
    let impacts = Impacts::new(survey);
    let groups = same_cause(findings).into_iter().map(|members| group(members, findings, &impacts));
    by_weight(groups.collect(), findings)
}

fn group(members: Vec<usize>, findings: &[Finding], impacts: &Impacts<'_>) -> CauseGroup {
    let mut apps: BTreeSet<AppId> = BTreeSet::new();
    let mut titles: BTreeSet<String> = BTreeSet::new();
    // Thousands of findings may hit thousands of Applications each: what each hits is only added up.
    let weighed = members.into_iter().map(|at| {
        let mut impact = impacts.of_finding(&findings[at]);
        let points = points(&findings[at], impact.effect, impact.reach, impact.count());
        apps.append(&mut impact.apps);
        titles.append(&mut impact.others);
        (Reverse(points), at, impact.effect, impact.reach)
    });
    let mut weighed: Vec<_> = weighed.collect();
    weighed.sort_by_key(|(points, at, ..)| (*points, *at));
    let (_, first, effect, reach) = weighed[0];
    titles.extend(impacts.titles(&apps));
    CauseGroup {
        severity: findings[first].diagnostic.severity,
        confidence: findings[first].confidence,
        effect,
        reach,
        titles,
        environments: impacts.environments(&apps).into_iter().map(str::to_owned).collect(),
        apps,
        findings: weighed.into_iter().map(|(_, at, ..)| at).collect(),
    }
}

/// How much a finding weighs, in points: how bad and how sure it is, whether anything leads there, what
/// breaks, and in how many Applications.
fn points(finding: &Finding, effect: Effect, reach: Reach, apps: usize) -> i64 {
    const MOST_FOR_APPLICATIONS: i64 = 8;
    let severity = match finding.diagnostic.severity {
        Severity::Error => 100,
        Severity::Warning => 60,
        Severity::Info => 0,
    };
    let reach = match reach {
        Reach::Application => 0,
        Reach::Tools => -8,
        Reach::ByHand => -12,
        Reach::Nothing => -50,
    };
    let certainty = if finding.confidence == Confidence::Certain { 0 } else { -12 };
    // What is not applied, or waits for ever, and would deploy others takes all of these along.
    let stops = matches!(effect, Effect::CannotApply | Effect::NeverEnds);
    let along = if stops && deploys_others(finding) { 4 } else { 0 };
    let effect = match effect {
        Effect::CannotRender | Effect::Removes => 8,
        Effect::CannotApply | Effect::NeverEnds | Effect::CannotStart => 6,
        Effect::Unreachable => 5,
        Effect::Tools => 3,
        Effect::Fights => 0,
        // What breaks stands before what works, however sure that is.
        Effect::NotAsMeant => -26,
    };
    let apps = 2 * i64::from((apps as u64 + 1).ilog2());
    severity + reach + certainty + effect + along + apps.min(MOST_FOR_APPLICATIONS)
}

/// Whether a finding is about an object that deploys others.
fn deploys_others(finding: &Finding) -> bool {
    const KINDS: [&str; 4] = ["Application", "ApplicationSet", "HelmRelease", "Kustomization"];
    let title = finding.object.as_deref().unwrap_or_default();
    title.split_once('/').is_some_and(|(kind, _)| KINDS.contains(&kind))
}

/// Sorts causes by what they weigh. What a rule finds again and again is lived with: all its causes weigh
/// less the more there are, and each further one less again, so that the first entries are of several kinds.
fn by_weight(groups: Vec<CauseGroup>, findings: &[Finding]) -> Vec<CauseGroup> {
    const LESS_EACH_TIME: i64 = 5;
    const LEAST: i64 = 30;
    const LESS_EACH_DOUBLING: i64 = 4;
    let mut counts: HashMap<&str, u64> = HashMap::new();
    groups.iter().for_each(|group| *counts.entry(rule_of(group, findings)).or_default() += 1);
    let weigh = |group: &CauseGroup| {
        let lived_with = LESS_EACH_DOUBLING * i64::from(counts[rule_of(group, findings)].ilog2());
        points(&findings[group.findings[0]], group.effect, group.reach, group.titles.len()) - lived_with
    };
    let mut weighed: Vec<(i64, CauseGroup)> =
        groups.into_iter().map(|group| (weigh(&group), group)).collect();
    weighed.sort_by_key(|(weight, group)| (Reverse(*weight), group.findings[0]));
    let mut times: HashMap<&str, i64> = HashMap::new();
    for (weight, group) in &mut weighed {
        let before = times.entry(rule_of(group, findings)).or_default();
        *weight -= (*before * LESS_EACH_TIME).min(LEAST);
        *before += 1;
    }
    weighed.sort_by_key(|(weight, group)| (Reverse(*weight), group.findings[0]));
    weighed.into_iter().map(|(_, group)| group).collect()
}

/// The rule of a cause.
fn rule_of<'f>(group: &CauseGroup, findings: &'f [Finding]) -> &'f str {
    findings[group.findings[0]].diagnostic.rule.as_str()
}

/// The findings that have one cause: of one rule, and of one line, of the same words but for the names of
/// the object and of the Application, or explained by the same other places.
fn same_cause(findings: &[Finding]) -> Vec<Vec<usize>> {
    let mut group_of: Vec<usize> = (0..findings.len()).collect();
    let mut first: HashMap<(&str, Severity, String), usize> = HashMap::new();
    for (at, finding) in findings.iter().enumerate() {
        let diagnostic = &finding.diagnostic;
        let place = diagnostic.primary.as_ref().map(|label| line_of(&label.span));
        for key in place.into_iter().chain([without_names(finding)]).chain(explained_by(finding)) {
            let known = *first.entry((&diagnostic.rule, diagnostic.severity, key)).or_insert(at);
            let (own, other) = (root(&group_of, at), root(&group_of, known));
            group_of[own.max(other)] = own.min(other);
        }
    }
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for at in 0..findings.len() {
        members.entry(root(&group_of, at)).or_default().push(at);
    }
    let mut all: Vec<Vec<usize>> = members.into_values().collect();
    all.sort();
    all
}

fn root(group_of: &[usize], mut at: usize) -> usize {
    while group_of[at] != at {
        at = group_of[at];
    }
    at
}

/// The other places that explain a finding, if there are any: pods that one label of their namespace forbids,
/// ports that one workload does not have.
fn explained_by(finding: &Finding) -> Option<String> {
    let related = &finding.diagnostic.related;
    let places: Vec<String> = related.iter().map(|label| line_of(&label.span)).collect();
    (!places.is_empty()).then(|| format!("see {}", places.join(" ")))
}

fn line_of(span: &Span) -> String {
    format!("{}:{}", span.file, span.start.line)
}

/// The message without the names of what it is about, and without positions in lists.
fn without_names(finding: &Finding) -> String {
    let object = finding.object.as_deref().unwrap_or_default();
    let title = object.split(" in ").next().unwrap_or_default();
    let name = title.split_once('/').map_or(title, |(_, name)| name);
    let app = finding.app.as_deref().unwrap_or_default();
    let mut names = [object, title, name, app];
    names.sort_by_key(|name| Reverse(name.len()));
    let mut text = finding.diagnostic.message.clone();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        text = without_word(&text, name);
    }
    without_positions(&text)
}

/// A text with `[]` in the place of each `[3]`.
fn without_positions(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('[') {
        let (before, inner) = rest.split_at(at + 1);
        out.push_str(before);
        rest = inner.trim_start_matches(|c: char| c.is_ascii_digit());
        if !rest.starts_with(']') {
            out.push_str(&inner[..inner.len() - rest.len()]);
        }
    }
    out + rest
}

/// A text from which a word is taken out, where it stands alone.
fn without_word(text: &str, word: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        out.push_str(before);
        let is_alone = !out.ends_with(is_part) && !after.starts_with(is_part);
        out.push_str(if is_alone { "\u{b7}" } else { word });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use tiphys_diag::Diagnostic;

    use super::*;

    fn finding(rule: &str, message: &str, object: &str, line: u32) -> Finding {
        let diagnostic = Diagnostic::error(rule, message).at(Span::point("a.yaml", line, 1), "");
        Finding::new("C2", diagnostic).object(object)
    }

    #[test]
    fn one_line_and_one_sentence_are_one_cause() {
        let all = [
            finding("C2-invalid", "Service/web in shop has no port", "Service/web in shop", 1),
            finding("C2-invalid", "Service/api in shop has no port", "Service/api in shop", 2),
            finding("C2-invalid", "Service/api in shop has no name", "Service/api in shop", 3),
            finding("C2-invalid", "Service/db in shop has no selector", "Service/db in shop", 3),
            finding("C2-removed-api", "Service/web in shop has no port", "Service/web in shop", 1),
        ];
        assert_eq!(same_cause(&all), [vec![0, 1], vec![2, 3], vec![4]]);
        let items = [
            finding("C2-invalid", "spec.env[0].value: Invalid value", "Pod/web", 1),
            finding("C2-invalid", "spec.env[12].value: Invalid value", "Pod/web", 2),
            finding("C2-invalid", "spec.env[a1].value: Invalid value", "Pod/web", 3),
        ];
        assert_eq!(same_cause(&items), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn what_one_place_explains_is_one_cause() {
        let explained = |message: &str, object: &str, line: u32, by: u32| {
            let mut finding = finding("E6-unknown-port", message, object, line);
            finding.diagnostic = finding.diagnostic.see(Span::point("pods.yaml", by, 1), "selected");
            finding
        };
        let all = [
            explained("Service/web sends to port http", "Service/web", 1, 7),
            explained("Service/api sends to port grpc", "Service/api", 2, 7),
            explained("Service/db sends to port sql", "Service/db", 3, 9),
        ];
        assert_eq!(same_cause(&all), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn words_are_left_out_where_they_stand_alone() {
        assert_eq!(without_word("web of web-2 (web)", "web"), "\u{b7} of web-2 (\u{b7})");
    }

    #[test]
    fn what_a_rule_finds_often_does_not_stand_before_all_else() {
        let survey =
            Survey::read(&tiphys_graph::Input::alone(std::sync::Arc::new(tiphys_vfs::MemTree::default())));
        let mut all: Vec<Finding> = (0..5)
            .map(|at| finding("C2-invalid", &format!("field {at} is wrong"), "Service/web", at))
            .collect();
        all.push(finding("C2-removed-api", "it is gone", "Service/web", 9));
        let (order, causes) = ordered(&survey, all);
        assert_eq!(causes.iter().map(|it| it.findings[0]).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        let rules: Vec<&str> = order.iter().map(|it| it.diagnostic.rule.as_str()).collect();
        assert_eq!(rules[..2], ["C2-removed-api", "C2-invalid"]);
    }
}
