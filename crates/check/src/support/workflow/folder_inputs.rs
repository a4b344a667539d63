//! Inputs of the repository's own actions and workflows that are folders: their commands run in them.

use std::collections::BTreeSet;

use tiphys_graph::tools::pipelines;
use tiphys_yaml::Node;

/// The inputs that the steps of a composite action take for their working directory.
pub(crate) fn of_action(root: &Node) -> BTreeSet<&str> {
    let steps = root.get("runs").map(pipelines::steps).unwrap_or_default();
    steps.into_iter().filter_map(|step| folder_input(step, None)).collect()
}

/// The inputs that the steps of a called workflow's job take for their working directory, each with the
/// position of the first step that does.
pub(crate) fn of_job<'n>(root: &'n Node, job: &'n Node) -> Vec<(&'n str, usize)> {
    let default = |owner: &'n Node| owner.get("defaults")?.get("run")?.get("working-directory");
    let default = default(job).or_else(|| default(root));
    let mut found: Vec<(&str, usize)> = Vec::new();
    for (at, step) in pipelines::steps(job).into_iter().enumerate() {
        if let Some(input) = folder_input(step, default)
            && found.iter().all(|(known, _)| *known != input)
        {
            found.push((input, at));
        }
    }
    found
}

/// The input in which a step's commands run.
fn folder_input<'n>(step: &'n Node, default: Option<&'n Node>) -> Option<&'n str> {
    step.get("run")?;
    input_name(step.get("working-directory").or(default)?.as_str()?)
}

/// The input that a text is, and nothing besides.
fn input_name(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("${{")?.strip_suffix("}}")?.trim();
    let name = inner.strip_prefix("inputs.")?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    (is_name && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::input_name;

    #[test]
    fn an_input_alone_is_a_folder() {
        assert_eq!(input_name("${{ inputs.terraform-dir }}"), Some("terraform-dir"));
        for other in ["${{ inputs.a || 'b' }}", "infra/${{ inputs.a }}", "${{ matrix.a }}", "infra"] {
            assert_eq!(input_name(other), None, "{other}");
        }
    }
}
