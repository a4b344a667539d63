//! # A container that runs a shell which its image does not have
//!
//! Images that hold one program and nothing else have no shell, and small ones have `sh` but not `bash`. A
//! command, a probe or a hook that names one fails at once, whatever the script in it says. The rule goes by
//! a list of much used images.
//!
//! People see: `exec: "/bin/bash": stat /bin/bash: no such file or directory`, `exec: "sh": executable file
//! not found in $PATH`, `RunContainerError`, a probe that never succeeds.
//!
//! ## Bad
//! ```yaml
//! image: registry.k8s.io/kubectl:v1.33.0
//! command: [/bin/bash, -c, "kubectl get pods | wc -l"]
//! ```
//! ## Good
//! ```yaml
//! image: docker.io/alpine/k8s:1.33.0
//! command: [/bin/bash, -c, "kubectl get pods | wc -l"]
//! ```
//! ## When to suppress
//! Where a volume brings the shell.

use tiphys_diag::Severity;
use tiphys_value::{FieldPath, ObjectExt};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        images::{DOCKER, Image},
        pods::{self, Container, list},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E6-no-shell",
    incident: "E6",
    severity: Severity::Warning,
    title: "a container that runs a shell which its image does not have",
    page: page!("e6_no_shell.rs"),
    check,
};

/// Images that have no shell: registry, path (a folder where it ends in `/`), and a word of the tags that
/// have one nevertheless.
const WITHOUT_SHELL: [(&str, &str, &str); 17] = [
    ("registry.k8s.io", "kubectl", "-"),
    ("registry.k8s.io", "pause", "-"),
    ("registry.k8s.io", "coredns/coredns", "-"),
    ("registry.k8s.io", "external-dns/external-dns", "-"),
    ("registry.k8s.io", "metrics-server/metrics-server", "-"),
    ("gcr.io", "distroless/", "debug"),
    (DOCKER, "rancher/kubectl", "-"),
    ("cgr.dev", "chainguard/kubectl", "dev"),
    (DOCKER, "cloudflare/cloudflared", "-"),
    (DOCKER, "traefik/whoami", "-"),
    (DOCKER, "hashicorp/http-echo", "-"),
    (DOCKER, "hello-world", "-"),
    ("ghcr.io", "external-secrets/external-secrets", "ubi"),
    ("quay.io", "jetstack/cert-manager-controller", "-"),
    ("quay.io", "jetstack/cert-manager-webhook", "-"),
    ("quay.io", "jetstack/cert-manager-cainjector", "-"),
    ("quay.io", "jetstack/cert-manager-startupapicheck", "-"),
];
/// Images that have a shell, and not `bash`: path at Docker, and what their tags say.
const WITHOUT_BASH: [(&str, &str); 12] = [
    ("busybox", ""),
    ("alpine", ""),
    ("curlimages/curl", ""),
    ("alpine/curl", ""),
    ("mikefarah/yq", ""),
    ("eclipse-mosquitto", ""),
    ("nginx", "alpine"),
    ("redis", "alpine"),
    ("python", "alpine"),
    ("node", "alpine"),
    ("golang", "alpine"),
    ("docker", ""),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        if unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        let Some(pod) = pods::pod_of(object) else { continue };
        for container in pod.containers() {
            let Some(image) = Image::parse(container.image()) else { continue };
            for (field, program) in commands(&container) {
                if !lacks(&image, program) {
                    continue;
                }
                let diagnostic = RULE
                    .diagnostic(format!(
                        "container {} of {} runs {program}, which image {} does not have",
                        container.name(),
                        object.title(),
                        container.image()
                    ))
                    .at(context.survey.span(object, &field), "this cannot be run")
                    .see(context.survey.span(object, &container.path.key("image")), "the image")
                    .because("the image holds its program and little else: the container does not start, or its probe fails")
                    .help("run the image's own program, or take an image with that shell");
                once.add(program, RULE.finding(context, object, diagnostic).likely());
            }
        }
    }
    once.report(report);
}

/// The programs that a container is told to run, each with the place that says so.
fn commands<'a>(container: &Container<'a>) -> Vec<(FieldPath, &'a str)> {
    const PLACES: [&[&str]; 6] = [
        &[],
        &["livenessProbe", "exec"],
        &["readinessProbe", "exec"],
        &["startupProbe", "exec"],
        &["lifecycle", "postStart", "exec"],
        &["lifecycle", "preStop", "exec"],
    ];
    let value = container.value;
    let of_place = |place: &&[&str]| {
        let program = list(value.at(place)?, "command").first()?.as_str()?;
        let path = place.iter().fold(container.path.clone(), |path, step| path.key(*step));
        Some((path.key("command"), program))
    };
    PLACES.iter().filter_map(of_place).collect()
}

/// Whether an image is known not to have a shell.
fn lacks(image: &Image<'_>, program: &str) -> bool {
    let (folder, name) = program.rsplit_once('/').unwrap_or(("", program));
    if !matches!(folder, "" | "/bin" | "/usr/bin") || !matches!(name, "sh" | "bash" | "ash") {
        return false;
    }
    let tag = image.tag.unwrap_or_default();
    let has_none = WITHOUT_SHELL.iter().any(|(registry, path, but)| {
        let is_it = image.path == *path || path.ends_with('/') && image.path.starts_with(path);
        image.registry == *registry && is_it && (*but == "-" || !tag.contains(but))
    });
    let has_no_bash = image.registry == DOCKER
        && WITHOUT_BASH.iter().any(|(path, word)| image.path == *path && tag.contains(word));
    has_none || has_no_bash && name == "bash"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_told_by_name_and_tag() {
        let told = |image, program| lacks(&Image::parse(image).expect("an image"), program);
        assert!(told("registry.k8s.io/kubectl:v1.33.0", "/bin/sh"));
        assert!(told("gcr.io/distroless/static-debian12", "sh") && told("busybox:1.36", "bash"));
        assert!(told("docker.io/library/nginx:1.29-alpine", "/bin/bash"));
        for (image, program) in [
            ("gcr.io/distroless/static:debug", "sh"),
            ("busybox", "sh"),
            ("nginx:1.29", "bash"),
            ("registry.k8s.io/kubectl", "kubectl"),
            ("registry.k8s.io/kubectl", "/tools/sh"),
            ("docker.io/alpine/k8s:1.33.0", "bash"),
        ] {
            assert!(!told(image, program), "{image} {program}");
        }
    }
}
