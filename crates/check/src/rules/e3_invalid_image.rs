//! # A name that no image can have
//!
//! The API server takes any text for an image. The node takes it apart, and a digest without its `@`, an
//! upper-case letter in a repository or two colons make it no name at all: the pod waits for ever. Names put
//! together from a repository and a tag of a chart's values go wrong in the same way.
//!
//! People see: `InvalidImageName`, `Failed to apply default image tag "…": couldn't parse image name: invalid
//! reference format`, `repository name must be lowercase`.
//!
//! ## Bad
//! ```yaml
//! tag: 10.11.8sha256:93227545077893cc9516f28b3adb733b67bc4691f41b6167428a2a0e3220b81c
//! ```
//! ## Good
//! ```yaml
//! tag: 10.11.8@sha256:93227545077893cc9516f28b3adb733b67bc4691f41b6167428a2a0e3220b81c
//! ```
//! ## When to suppress
//! Where something rewrites the name before the node sees it.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_value::{Location, ObjectExt};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        placeholders,
        pods::{self, Pod},
        unrendered_files, unused_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E3-invalid-image",
    incident: "E3",
    severity: Severity::Error,
    title: "a name that no image can have",
    page: page!("e3_invalid_image.rs"),
    check,
};

/// What the reference of an image looks like.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    let host = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?";
    let step = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let rest = r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?";
    Regex::new(&format!("^(?:{host}/)?{step}(?:/{step})*{rest}$")).expect("the expression is right")
});

/// A line that gives an image or tag with a digest in it.
static WITH_DIGEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"^[ \t]*(?:- )?"?(?:image|tag|newTag)"?:[ \t]+["']?([^ \t"'#]*)sha256:[0-9a-f]{64}(?-u:\b)"#)
        .expect("the expression is right")
});

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    written(context, &mut once);
    for object in &context.survey.objects {
        let is_part = unrendered_files::is_from_unused_chart(context.survey, object)
            || unrendered_files::may_be_a_patch(context.survey, object);
        let pod = pods::pod_of(object).or_else(|| pods::knative_pod_of(object));
        let Some(pod) = pod.filter(|_| !is_part) else { continue };
        for container in pod.containers() {
            let image = container.image();
            if has_empty_digest(image) {
                let diagnostic = RULE
                    .diagnostic(format!("the digest of {image:?} of {} is a placeholder", object.title()))
                    .at(context.survey.span(object, &container.path.key("image")), "no image has this digest")
                    .because("a digest is a checksum; the registry answers `manifest unknown`, and the pod waits with ErrImagePull");
                once.add(image, RULE.finding(context, object, diagnostic));
                continue;
            }
            // Without a digest's mark it is told where it is written.
            let is_told = image.contains("sha256:") && !image.contains("@sha256:");
            let is_right = REFERENCE.is_match(image) || is_filled_in(image) || is_triggered(&pod, image);
            if image.is_empty() || is_told || is_right {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!("{image:?} of {} is no name of an image: {}", object.title(), invalid_reason(image)))
                .at(context.survey.span(object, &container.path.key("image")), "")
                .because("the API server takes any text, and the node none that is no name: the pod waits with InvalidImageName");
            once.add(image, RULE.finding(context, object, diagnostic));
        }
    }
    once.report(report);
}

/// Whether a digest is one character over and over, which no checksum is.
fn has_empty_digest(image: &str) -> bool {
    const SHORTEST: usize = 32;
    let digest = image.rsplit_once("@sha256:").map(|(_, digest)| digest.as_bytes()).unwrap_or_default();
    digest.len() >= SHORTEST && digest.iter().all(|it| *it == digest[0])
}

/// Whether an empty name is filled in from an image stream (OpenShift docs, "Triggering updates on image
/// stream changes").
fn is_triggered(pod: &Pod<'_>, image: &str) -> bool {
    const TRIGGERS: &str = "image.openshift.io/triggers";
    image.trim().is_empty() && pod.object.value().annotation(TRIGGERS).is_some()
}

/// How a line begins that was copied from a page of a registry, instead of the name in it.
const COMMAND: &str = "docker pull ";

/// Whether a name waits to be filled in: `${IMAGE}`, `YOUR_ORG/web`, `REGISTRY/web`, or a sentence that says
/// what to put there.
fn is_filled_in(image: &str) -> bool {
    let is_shouted = |word: &str| {
        word.len() >= 4
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    // The address of a page is none, whatever it is filled in with.
    if image.contains("@http") {
        return false;
    }
    placeholders::is_in(image)
        || !image.is_ascii()
        || (image.split_whitespace().count() > 2 && !image.starts_with(COMMAND))
        || image.contains(['$', '%', '<', '>', '{', '}', '*', '[', '('])
        || image.split(['/', ':', '.', '-', '@']).any(is_shouted)
}

/// What is wrong with a name.
fn invalid_reason(image: &str) -> &'static str {
    let name = image.rsplit_once('/').map_or(image, |(path, _)| path);
    if image.trim() != image || image.contains(char::is_whitespace) {
        "it holds a blank"
    } else if image.starts_with("http://") || image.starts_with("https://") || image.contains("://") {
        "it is an address with a scheme"
    } else if name.chars().any(|c| c.is_ascii_uppercase()) || image.to_lowercase() != image {
        "a repository is written in lower case"
    } else {
        "it is not `registry/repository:tag@digest`"
    }
}

/// Images and tags whose digest has lost its `@`, wherever they are written.
fn written(context: &Context<'_>, once: &mut Once) {
    let files = &context.survey.files;
    for path in files.ending(&[".yaml", ".yml"]) {
        let Some(text) = files.text(path).filter(|text| text.contains("sha256:")) else { continue };
        if placeholders::is_skeleton(path) || unused_files::is_git_ignored(files, path) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let Some(found) = WITH_DIGEST.captures(line) else { continue };
            let before = &found[1];
            if before.is_empty() || before.ends_with('@') || is_filled_in(before) {
                continue;
            }
            let line = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let diagnostic = RULE
                .diagnostic(format!("{before}sha256:… is no name of an image: a digest comes after an @"))
                .at(files.span(&Location::new(path.clone(), line, 0)), "")
                .because("the API server takes any text, and the node none that is no name: the pod waits with InvalidImageName")
                .help(format!("write {}@sha256:…", before.trim_end_matches(':')));
            once.add(before, Finding::new(RULE.incident, diagnostic));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{REFERENCE, WITH_DIGEST, is_filled_in};

    #[test]
    fn names_of_images_are_known() {
        let digest = "sha256:93227545077893cc9516f28b3adb733b67bc4691f41b6167428a2a0e3220b81c";
        for name in
            ["nginx", "a/b", "host:5000/a/b:v1", "[::1]:5000/a", "GHCR.io/a:B_2", "a__b/c-d.e", "localhost/x"]
        {
            assert!(REFERENCE.is_match(name), "{name}");
            assert!(REFERENCE.is_match(&format!("{name}@{digest}")), "{name}");
        }
        for name in ["a/B", "a:b:c", "https://a/b", "a b", "a/", "/a", "a@sha256:0", "a:-x", "-a"] {
            assert!(!REFERENCE.is_match(name), "{name}");
        }
    }

    #[test]
    fn what_is_to_be_filled_in_is_left_alone() {
        for name in [
            "ACCOUNT_ID.dkr.REGION.example.com/web",
            "REGISTRY/web:1",
            "web:${TAG}",
            "[image]",
            "put your image here",
            "주소를",
        ] {
            assert!(is_filled_in(name), "{name}");
        }
        assert!(!is_filled_in("ghcr.io/Shop/web:1.0-RC1") && !is_filled_in("web 1.0"));
    }

    #[test]
    fn only_images_and_tags_are_read() {
        let digest = "sha256:93227545077893cc9516f28b3adb733b67bc4691f41b6167428a2a0e3220b81c";
        assert_eq!(&WITH_DIGEST.captures(&format!("  tag: 1.0{digest}")).unwrap()[1], "1.0");
        assert_eq!(&WITH_DIGEST.captures(&format!("- image: \"a:1@{digest}\"")).unwrap()[1], "a:1@");
        assert!(WITH_DIGEST.captures(&format!("checksum: file:{digest}")).is_none());
    }
}
