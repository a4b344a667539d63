//! # A webhook refuses objects before its backend answers
//!
//! An admission webhook with `failurePolicy: Fail` (the default) is in force, and the pods that answer it
//! come later, or cannot come at all because the webhook is asked about them too. Until they are Ready the
//! API server refuses every object that the webhook is asked about.
//!
//! People see: `Internal error occurred: failed calling webhook "mservice.elbv2.k8s.aws": … connect:
//! connection refused`, `no endpoints available for service`, `x509: certificate signed by unknown
//! authority`.
//!
//! ## Bad
//! ```yaml
//! kind: ValidatingWebhookConfiguration   # wave 0
//! webhooks:
//!   - name: check.example.com
//!     failurePolicy: Fail
//!     rules: [{apiGroups: ["*"], apiVersions: ["*"], resources: [pods], operations: [CREATE]}]
//! # asked about the pods of its own backend: once they are gone, they cannot come back
//! ```
//! ## Good
//! The webhook leaves its own namespace out (`namespaceSelector`), and comes in a later wave than its
//! backend.
//!
//! ## When to suppress
//! When the backend runs outside of the cluster, or is installed by other means before the first sync.

use tiphys_diag::Severity;
use tiphys_graph::waits::{Blocked, blocked, retries};
use tiphys_value::FieldPath;

use crate::{Context, Report, Rule, rule_helpers};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C3-webhook-before-backend",
    incident: "C3",
    severity: Severity::Error,
    title: "a fail-closed webhook is asked about objects before its backend can answer",
    page: page!("c3_webhook_before_backend.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let analyses = context.analyses();
    for blocked in blocked(context.survey, &analyses.edges, &analyses.order) {
        if blocked.meeting.is_none() {
            add_own(context, report, &blocked);
        } else {
            add_others(context, report, &blocked);
        }
    }
}

fn entry(context: &Context<'_>, blocked: &Blocked) -> (String, tiphys_diag::Span) {
    let configuration = context.survey.object(blocked.configuration);
    let field = FieldPath::default().key("webhooks").index(blocked.at);
    let name = field.key("name").get(configuration.value()).and_then(|name| name.as_str());
    (name.unwrap_or_default().to_owned(), context.survey.span(configuration, &field.key("rules")))
}

fn add_own(context: &Context<'_>, report: &mut Report, blocked: &Blocked) {
    let backend = context.survey.object(blocked.backend);
    let (name, span) = entry(context, blocked);
    let message = format!(
        "webhook {name} is {} its own backend {}: `failed calling webhook \"{name}\": … connection refused`",
        if blocked.stalls { "in force before, and asked about," } else { "asked about the pods of" },
        backend.title()
    );
    let why = if blocked.stalls {
        "the webhook is applied in an earlier wave than the only thing that can answer it, which the API server then refuses"
    } else {
        "when all its pods are gone at once (an upgrade of the nodes, an eviction), no new one is admitted, and nothing else either"
    };
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(span, "matches its backend, and fails closed")
        .see(context.survey.start(backend), "answers the webhook")
        .because(why)
        .help(format!(
            "leave the namespace out: `namespaceSelector: {{matchExpressions: [{{key: kubernetes.io/metadata.name, operator: NotIn, values: [{}]}}]}}`",
            backend.key.namespace
        ));
    if !blocked.stalls {
        diagnostic.severity = Severity::Warning;
    }
    report.add(RULE.finding(context, context.survey.object(blocked.configuration), diagnostic));
}

fn add_others(context: &Context<'_>, report: &mut Report, blocked: &Blocked) {
    let survey = context.survey;
    let (object, backend) = (survey.object(blocked.object), survey.object(blocked.backend));
    let (Some(meeting), Some(app)) = (blocked.meeting, survey.app_of(object)) else { return };
    let retries = retries(app);
    // A failed attempt or two while the backend starts.
    if blocked.same_step && retries != 0 {
        return;
    }
    let (name, span) = entry(context, blocked);
    let (early, late) = (meeting.first_step, meeting.second_step);
    let (early, late) = (rule_helpers::step(early, late), rule_helpers::step(late, early));
    let order = if blocked.same_step {
        format!("in the same {early} as its backend {}", backend.title())
    } else {
        format!("in {early}, before its backend {} in {late}", backend.title())
    };
    let message = format!(
        "webhook {name} is asked about {}, which is synced {order}: `failed calling webhook \"{name}\"`",
        object.title()
    );
    let others = match blocked.others {
        0 => "refused until the backend answers".to_owned(),
        more => format!("refused until the backend answers, as are {more} more objects"),
    };
    let (first, second) = (survey.object(meeting.first), survey.object(meeting.second));
    let mut diagnostic = RULE
        .diagnostic(message)
        .at(survey.start(object), others)
        .see(span, "matches it, and fails closed")
        .see(rule_helpers::wave(context, first), format!("{} is applied in {early}", first.title()))
        .see(rule_helpers::wave(context, second), format!("{} is applied in {late}", second.title()))
        .because(if blocked.stalls {
            "the operation fails at the refused object before it comes to the backend, at every attempt"
        } else {
            "the API server refuses what a fail-closed webhook cannot be asked about"
        })
        .help("apply the webhook's backend in an earlier wave, and the webhook after it");
    if !blocked.stalls {
        diagnostic.severity = Severity::Warning;
    }
    report.add(RULE.finding(context, object, diagnostic));
}
