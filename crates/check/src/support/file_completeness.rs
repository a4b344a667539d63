//! What counts of what the API server says of an object in a file that nothing renders. Most such files are
//! applied by hand, as they are; others are patches, forms, or bases that something completes first.

use tiphys_graph::{Object, Survey};
use tiphys_schema::{ErrorKind, FieldError, FieldRule, JsonType};
use tiphys_vfs::{base_name, parent};

use super::{
    kustomization_entries, placeholders,
    pods::{self, text},
    refusal::RefusalCause,
};

/// How much of an object a file holds that nothing renders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
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
    pub(crate) fn judge<'a>(
        survey: &Survey,
        object: &Object,
        mut refusals: impl Iterator<Item = &'a RefusalCause>,
    ) -> Self {
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
    pub(crate) fn keeps_refusal(self, cause: &RefusalCause) -> bool {
        let Some(error) = cause.field_error() else {
            // A word stands for a number until it is filled in.
            let is_word = cause.type_mismatch().is_some_and(|it| it.found == "string");
            return self != Self::Form || !is_word;
        };
        // Two of one name are two, whatever comes on top.
        if error.kind == ErrorKind::Duplicate {
            return true;
        }
        let may_be_added = matches!(error.kind, ErrorKind::Required | ErrorKind::NotFound)
            || matches!(error.rule, Some(FieldRule::SelectorMatchesTemplate | FieldRule::SelectorNotEmpty));
        match self {
            Self::Whole => true,
            Self::Base => !may_be_added,
            Self::Part | Self::Form => false,
        }
    }
}

/// Whether a workload describes its pods in full: with an image for each container and, unless it selects
/// none, with labels.
fn has_its_pods(object: &Object) -> bool {
    let Some(pod) = pods::pod_of(object) else { return false };
    let selects_none = object.key.group == "batch";
    let has_labels = selects_none || pod.labels().next().is_some();
    let mut containers = pod.containers().peekable();
    has_labels
        && containers.peek().is_some()
        && containers.all(|container| !text(container.value, "image").is_empty())
}

/// Whether a whole section is missing, as patches leave out what they do not change: a field that is not
/// inside of a list, or the image of a container, which a patch calls by its name alone.
fn lacks_a_section(cause: &RefusalCause) -> bool {
    let Some(FieldError { kind, field, rule, .. }) = cause.field_error() else { return false };
    let is_of_container = field.contains("ontainers[") && field.ends_with("].image");
    // A pod that is running has these; one that a file holds is made up for the test of a policy.
    let is_made_up = *kind == ErrorKind::Forbidden && field.ends_with("spec.ephemeralContainers");
    let is_left_out = *kind == ErrorKind::Required
        && (!field.contains(']') || field.ends_with("[storage]") || is_of_container);
    let is_of_sections = match rule {
        Some(FieldRule::SelectorMatchesTemplate | FieldRule::SelectorNotEmpty | FieldRule::HasBackend) => {
            true
        }
        Some(FieldRule::JsonType { found, .. }) => *found == JsonType::Null,
        _ => false,
    };
    is_made_up || is_left_out || is_of_sections
}

#[cfg(test)]
mod tests {
    use tiphys_schema::{FieldError, FieldRule, JsonType, Path};

    use super::{RefusalCause, lacks_a_section};

    #[test]
    fn what_a_patch_leaves_out_is_told_from_a_slip() {
        let required = |field: &str| RefusalCause::Invalid(FieldError::required(&Path::new(field), ""));
        let null = FieldRule::JsonType { found: JsonType::Null, wanted: JsonType::String };
        let null = FieldError::invalid(&Path::new("spec.hostnames[0]"), "null", "").by_rule(null);
        for cause in [
            required("spec.selector"),
            required("spec.template.spec.containers[0].image"),
            required("spec.ports"),
            RefusalCause::Invalid(null),
        ] {
            assert!(lacks_a_section(&cause), "{cause:?}");
        }
        let port = FieldError::invalid(&Path::new("spec.ports[0].port"), 70_000, "must be a port");
        for cause in [
            required("spec.rules[0].http.paths[0].pathType"),
            RefusalCause::Invalid(port),
            RefusalCause::UnknownField("spec.replica".into()),
        ] {
            assert!(!lacks_a_section(&cause), "{cause:?}");
        }
    }
}
