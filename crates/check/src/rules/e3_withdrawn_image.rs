//! # An image that is no longer there
//!
//! Publishers withdraw images and shut registries down. What runs goes on until its node is replaced or its
//! cache is cleaned; then the pod waits in `ImagePullBackOff`. Charts keep the withdrawn image as their
//! default.
//!
//! People see: `Failed to pull image "docker.io/bitnami/rabbitmq:4.1.3-debian-12-r1": … not found`.
//!
//! Besides, tags that move (`latest`, or none) are told as info: two nodes may run two versions, and nothing
//! in Git says which.
//!
//! ## Bad
//! ```yaml
//! image: docker.io/bitnami/rabbitmq:4.1.3-debian-12-r1
//! ```
//! ## Good
//! ```yaml
//! image: docker.io/rabbitmq:4.1.3-management      # with a chart or operator that is made for it
//! ```
//! ## When to suppress
//! Where the container runtime pulls through a mirror that still has it.

use std::sync::LazyLock;

use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner};
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        images::Image,
        pods::{self, Container, Pod},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E3-withdrawn-image",
    incident: "E3",
    severity: Severity::Error,
    title: "an image that its publisher withdrew, or whose tag moves",
    page: page!("e3_withdrawn_image.rs"),
    check,
};

/// What became of the images of a publisher.
pub(super) struct Withdrawal {
    prefix: &'static str,
    /// `None` for an exception.
    severity: Option<Severity>,
    kept_tag: &'static str,
    what: &'static str,
    instead: &'static str,
}

static WITHDRAWN: LazyLock<Vec<Withdrawal>> = LazyLock::new(|| {
    let lines = include_str!("../../data/withdrawn-images.txt").lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(read).collect()
});

fn read(line: &'static str) -> Option<Withdrawal> {
    let (head, instead) = line.split_once(" | ")?;
    let mut parts = head.splitn(4, ' ');
    let prefix = parts.next()?.trim_end_matches('*');
    let severity = match parts.next()? {
        "error" => Some(Severity::Error),
        "warning" => Some(Severity::Warning),
        "info" => Some(Severity::Info),
        _ => None,
    };
    Some(Withdrawal { prefix, severity, kept_tag: parts.next()?, what: parts.next()?, instead })
}

/// A part of a registry, and whether what is in it can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Images with registry and tag in full; `*` stands for anything.
    pub pattern: String,
    /// Whether they can be pulled.
    pub is_served: bool,
}

/// The images that can no longer be pulled, for whoever plays registries: of several that fit the first one
/// counts.
pub fn withdrawn_images() -> Vec<Supply> {
    let mut all = Vec::new();
    for withdrawal in WITHDRAWN.iter() {
        let Withdrawal { prefix, severity, kept_tag, .. } = withdrawal;
        let mut add = |pattern, is_served| all.push(Supply { pattern, is_served });
        match severity {
            None => add(format!("{prefix}*"), true),
            Some(Severity::Error) => {
                // What a digest stands for may outlive its tags for a while.
                add(format!("{prefix}*@*"), true);
                if *kept_tag != "-" {
                    add(format!("{prefix}*:{kept_tag}"), true);
                }
                add(format!("{prefix}*"), false);
            }
            Some(_) => {}
        }
    }
    all
}

/// What to use in place of an image that can no longer be pulled.
pub fn replacement_of_withdrawn(image: &str) -> Option<&'static str> {
    let (found, severity) = withdrawn(&Image::parse(image)?)?;
    (severity == Severity::Error).then_some(found.instead)
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        if unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        let Some(pod) = pods::pod_of(object) else {
            of_operator(context, object, &mut once);
            continue;
        };
        for container in pod.containers() {
            let Some(image) = Image::parse(container.image()) else { continue };
            if let Some((withdrawal, severity)) = withdrawn(&image) {
                let path = container.path.key("image");
                let finding =
                    withdrawn_finding(context, object, &path, container.image(), withdrawal, severity);
                once.add(container.image(), finding);
            } else if moves(&image) && matches!(object.owner, Owner::App(_)) {
                once.add(container.image(), moving(context, &pod, &container));
            }
        }
    }
    once.report(report);
}

/// The image that a custom resource tells its operator to run.
fn of_operator(context: &Context<'_>, object: &Object, once: &mut Once) {
    if !object.key.group.contains('.') || !matches!(object.owner, Owner::App(_)) {
        return;
    }
    for field in ["image", "imageName"] {
        let path = keys(&["spec", field]);
        let Some(name) = path.get(object.value()).and_then(Value::as_str) else { continue };
        let Some((why, severity)) = Image::parse(name).and_then(|image| withdrawn(&image)) else { continue };
        if severity == Severity::Error {
            once.add(name, withdrawn_finding(context, object, &path, name, why, severity));
        }
    }
}

/// What became of an image, and how bad it is.
pub(super) fn withdrawn(image: &Image<'_>) -> Option<(&'static Withdrawal, Severity)> {
    let name = format!("{}/{}", image.registry, image.path);
    let found = WITHDRAWN.iter().find(|it| name.starts_with(it.prefix))?;
    let is_kept = image.tag.unwrap_or("latest") == found.kept_tag;
    // What a digest stands for may outlive its tags for a while.
    let severity = found.severity.map(|it| if image.has_digest { it.min(Severity::Info) } else { it });
    severity.filter(|_| !is_kept || image.has_digest).map(|severity| (found, severity))
}

/// Whether a tag stands for other images as time goes by.
fn moves(image: &Image<'_>) -> bool {
    !image.has_digest && matches!(image.tag, None | Some("latest"))
}

fn withdrawn_finding(
    context: &Context<'_>,
    object: &Object,
    path: &FieldPath,
    image: &str,
    why: &Withdrawal,
    severity: Severity,
) -> Finding {
    let span = context.survey.value_span(object, path);
    let mut diagnostic = RULE
        .diagnostic(format!("image {image} of {}: {}", object.title(), why.what))
        .at(span, "named here")
        .because(
            "a node that does not have the image yet cannot pull it, and the pod stays in ImagePullBackOff",
        )
        .help(format!("instead: {}", why.instead));
    diagnostic.severity = severity;
    if severity == Severity::Info {
        diagnostic.mechanism =
            "what is pulled from there stays as it was: no fixes of security faults arrive".into();
    } else if let Owner::Unit(_) = object.owner {
        diagnostic.severity = severity.min(Severity::Warning);
    }
    RULE.finding(context, object, diagnostic)
}

fn moving(context: &Context<'_>, pod: &Pod<'_>, container: &Container<'_>) -> Finding {
    let span = context.survey.value_span(pod.object, &container.path.key("image"));
    let mut diagnostic = RULE
        .diagnostic(format!("image {} of {} has a tag that moves", container.image(), pod.object.title()))
        .at(span, "named here")
        .because("what runs depends on when each node pulled it; a new image comes without a commit, and cannot be taken back by one")
        .help("name a version, or add the digest");
    diagnostic.severity = Severity::Info;
    RULE.finding(context, pod.object, diagnostic)
}
