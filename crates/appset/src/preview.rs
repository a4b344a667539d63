//! What a set would do to the Applications that there are, for people.

use serde_json::Value;
use tiphys_model::{Application, Cascade, HealthCode, ResourceStatus};
use tiphys_value::{ObjectExt, ResourceKey};

use crate::{Brake, GenerateError, Generated, Inputs, Plan, Policy, generate, plan};

/// What an ApplicationSet would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The Applications that it yields.
    pub generated: Vec<Generated>,
    /// The changes. Deletions are listed even where the brake would hold them; `held` says so.
    pub plan: Plan,
    /// What goes with each deleted Application.
    pub deleted: Vec<Deleted>,
}

/// An Application that would be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Name of the Application.
    pub application: String,
    /// The objects that are deleted with it: none if it has no finalizer for that.
    pub objects: Vec<ResourceKey>,
}

/// Previews a set. `existing` are the Applications of its namespace with their status.
///
/// # Errors
/// A generator or the template fails.
pub fn preview(set: &Value, existing: &[Value], inputs: &dyn Inputs) -> Result<Preview, GenerateError> {
    let generated = generate(set, inputs)?;
    let policy = Policy::from_set(set).unwrap_or(Policy::CreateOnly);
    let mut all = plan(set, &generated, existing, policy, Brake::Off);
    all.held = plan(set, &generated, existing, policy, Brake::On).held;
    let named = |name: &String| existing.iter().find(|app| app.name() == name);
    let deleted = all.delete.iter().filter_map(named).map(taken_along).collect();
    Ok(Preview { generated, plan: all, deleted })
}

fn taken_along(object: &Value) -> Deleted {
    let application = object.name().to_owned();
    let Ok(app) = Application::from_value(object) else {
        return Deleted { application, objects: Vec::new() };
    };
    let cascades = app.cascade() != Cascade::Orphan;
    let resources = app.status.resources.iter().filter(|resource| cascades && is_taken(resource));
    let objects = resources
        .map(|resource| {
            ResourceKey::new(&resource.group, &resource.kind, &resource.namespace, &resource.name)
        })
        .collect();
    Deleted { application, objects }
}

/// Whether an object goes with its Application: definitions stay, and what is not there cannot go. What has
/// no sync status is a hook, or was never applied.
fn is_taken(resource: &ResourceStatus) -> bool {
    let is_there = resource.health.as_ref().is_none_or(|health| health.status != HealthCode::Missing);
    let is_definition =
        resource.group == "apiextensions.k8s.io" && resource.kind == "CustomResourceDefinition";
    is_there && !is_definition && !resource.hook && resource.status.is_some()
}
