//! What counts of what the API server says of an object in a file that nothing renders. Most such files are
//! applied by hand, as they are; others are patches, forms, or bases that something completes first.

use tiphys_graph::{Object, Survey};
use tiphys_vfs::{base_name, parent};

use super::{
    kustomization_entries, placeholders,
    pods::{self, text},
};

/// How much of an object a file holds that nothing renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// All that is in it is meant so, but a kustomization beside or above it may add to it.
    Base,
    /// So little of it that it is a patch.
    Part,
    /// A file that says of itself that something is still to be filled in.
    Form,
}

impl Extent {
    /// Judges a file by what the API server would say of it.
    pub fn judge<'a>(survey: &Survey, object: &Object, mut refusals: impl Iterator<Item = &'a str>) -> Self {
        let file = object.rendered.location.file.as_ref();
        let is_form = || {
            let text = survey.files.text(file).unwrap_or_default();
            text.contains("#@") || placeholders::is_template(&text)
        };
        let is_called_form = placeholders::is_skeleton(file) || base_name(file).contains("template");
        let mut is_patch = || !has_its_pods(object) && refusals.any(lacks_a_section);
        if is_called_form || is_form() {
            return Self::Form;
        }
        if is_patch() {
            return Self::Part;
        }
        let mut above = std::iter::successors(parent(file), |folder| parent(folder));
        match above.any(|folder| kustomization_entries::of_folder(&survey.files, folder).next().is_some()) {
            true => Self::Base,
            false => Self::Whole,
        }
    }

    /// Whether what the API server says stands, however the file is used.
    pub fn keeps_refusal(self, message: &str) -> bool {
        if !message.contains(" is invalid: ") {
            // A word stands for a number until it is filled in.
            return self != Self::Form || !message.contains("cannot unmarshal string into");
        }
        // Two of one name are two, whatever comes on top.
        if message.contains("Duplicate value") {
            return true;
        }
        let may_be_added = ["Required value", "Not found: ", "does not match template", "empty selector"]
            .iter()
            .any(|refusal| message.contains(refusal));
        match self {
            Self::Whole => true,
            Self::Base => !may_be_added,
            Self::Part | Self::Form => false,
        }
    }
}

/// Whether a workload describes its pods in full: with labels, and with an image for each container.
fn has_its_pods(object: &Object) -> bool {
    let template = &object.value()["spec"]["template"];
    let has_labels = template["metadata"]["labels"].as_object().is_some_and(|labels| !labels.is_empty());
    let has_images = pods::pod_of(object).is_some_and(|pod| {
        pod.containers().next().is_some() && pod.containers().all(|it| !text(it.value, "image").is_empty())
    });
    has_labels && has_images
}

/// Whether a message says that a whole section is missing, as patches leave out what they do not change: a
/// field that is not inside of a list, or the image of a container, which a patch calls by its name alone.
fn lacks_a_section(message: &str) -> bool {
    let Some((_, refusal)) = message.split_once(" is invalid: ") else { return false };
    let field = refusal.split(": ").next().unwrap_or(refusal);
    let is_missing = refusal.contains(": Required value");
    let is_of_container = field.contains("ontainers[") && field.ends_with("].image");
    // A pod that is running has these; one that a file holds is made up for the test of a policy.
    let is_made_up = refusal.contains("spec.ephemeralContainers: Forbidden");
    is_made_up
        || is_missing && (!field.contains(']') || field.ends_with("[storage]") || is_of_container)
        || refusal.contains("does not match template")
        || refusal.contains("empty selector")
        || refusal.contains("`defaultBackend` or `rules` must be specified")
        || refusal.ends_with(": \"null\"")
}

#[cfg(test)]
mod tests {
    use super::lacks_a_section;

    #[test]
    fn what_a_patch_leaves_out_is_told_from_a_slip() {
        for refusal in [
            "Deployment.apps \"a\" is invalid: spec.selector: Required value",
            "Deployment.apps \"a\" is invalid: spec.template.spec.containers[0].image: Required value",
            "Service \"a\" is invalid: spec.ports: Required value",
            "HTTPRoute.x \"a\" is invalid: spec.hostnames[0]: Invalid value: \"null\": spec.hostnames[0] in body must be of type string: \"null\"",
        ] {
            assert!(lacks_a_section(refusal), "{refusal}");
        }
        for refusal in [
            "Ingress.networking.k8s.io \"a\" is invalid: spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
            "Service \"a\" is invalid: spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "strict decoding error: unknown field \"spec.replica\"",
        ] {
            assert!(!lacks_a_section(refusal), "{refusal}");
        }
    }
}
