//! Actions on live objects: what users ask for beside a sync (restart, pause, promote …). Those of
//! `argocd-cm` are Lua and run as Argo CD runs them (Argo CD docs, "Resource Actions"), the built-in ones are
//! ours. Pure: an action says what is to be written, and somebody else writes it.

mod action;
mod argo;
mod builtin;
mod flux;
mod numa;
mod object_edit;
mod operators;
mod script;
mod workloads;

use std::collections::BTreeMap;

pub use action::{Action, ActionError, Outcome, Param};
use builtin::State;
use serde_json::Value;
use tiphys_model::{Clock, settings::Customizations};
use tiphys_value::ObjectExt;

/// The actions that there are: those of `argocd-cm` before the built-in ones.
#[derive(Clone, Debug)]
pub struct Actions {
    customizations: Customizations,
    clock: Clock,
}

impl Actions {
    /// Actions with those of `argocd-cm`.
    pub fn new(customizations: Customizations, clock: Clock) -> Self {
        Self { customizations, clock }
    }

    /// What a live object offers, by name. Actions of `argocd-cm` for its kind stand in place of the built-in
    /// ones, unless they ask to be merged with these.
    ///
    /// # Errors
    /// A script of `argocd-cm` fails.
    pub fn list(&self, object: &Value) -> Result<Vec<Action>, ActionError> {
        let mut all = BTreeMap::new();
        let own = self.customizations.actions_of(&object.gvk());
        if let Some(own) = own {
            for action in script::discover(own, object, &self.clock)? {
                all.insert(action.name.clone(), action);
            }
        }
        if own.is_none_or(|own| own.merge_builtin_actions) {
            for known in builtin_actions_of(object) {
                if known.state != State::Hidden {
                    all.entry(known.name.to_owned()).or_insert_with(|| known.to_action());
                }
            }
        }
        Ok(all.into_values().collect())
    }

    /// Runs an action of a live object, also one that is not offered just now: it then mostly asks for
    /// nothing.
    ///
    /// # Errors
    /// There is no such action, its script fails, or the object or a parameter is not what it needs.
    pub fn run(
        &self,
        object: &Value,
        name: &str,
        params: &BTreeMap<String, String>,
    ) -> Result<Vec<Outcome>, ActionError> {
        let own = self.customizations.actions_of(&object.gvk());
        let defined = own.into_iter().flat_map(|own| &own.definitions).find(|action| action.name == name);
        if let Some(defined) = defined {
            return script::run(defined, object, params, &self.clock);
        }
        let known = builtin_actions_of(object);
        match known.iter().find(|action| action.name == name) {
            Some(action) => action.run(object, params, self.clock.now()),
            None => Err(self.unknown(object, name, &known)),
        }
    }

    fn unknown(&self, object: &Value, name: &str, known: &[builtin::BuiltinAction]) -> ActionError {
        let own = self.customizations.actions_of(&object.gvk());
        let mut names: Vec<&str> = known.iter().map(|action| action.name).collect();
        names.extend(own.into_iter().flat_map(|own| &own.definitions).map(|action| action.name.as_str()));
        names.sort_unstable();
        let known = if names.is_empty() { String::new() } else { format!("; there is {}", names.join(", ")) };
        ActionError::Unknown { kind: object.kind().to_owned(), name: name.to_owned(), known }
    }
}

/// The built-in actions of an object's kind.
fn builtin_actions_of(object: &Value) -> Vec<builtin::BuiltinAction> {
    let gvk = object.gvk();
    match gvk.group.as_str() {
        "apps" | "batch" => workloads::actions_of(&gvk.kind, object),
        "argoproj.io" | "promoter.argoproj.io" => argo::actions_of(&gvk.kind, object),
        "numaflow.numaproj.io" | "numaplane.numaproj.io" => numa::actions_of(&gvk.kind, object),
        group if group.ends_with(".toolkit.fluxcd.io") => flux::actions_of(&gvk.kind, object),
        group => operators::actions_of(group, &gvk.kind, object),
    }
}

#[cfg(test)]
mod tests;
