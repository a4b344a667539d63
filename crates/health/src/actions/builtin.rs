//! The built-in actions: which kinds have which, and when they are offered. Names are Argo CD's, so that
//! scripts and habits carry over.

use std::collections::BTreeMap;

use serde_json::Value;
use tiphys_model::Timestamp;

use super::{Action, ActionError, Outcome, Param, object_edit::Edit};

/// Whether an action is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Offered,
    /// Listed, and said to do nothing now.
    Disabled,
    /// Not listed.
    Hidden,
}

/// What an action does to an object.
pub(super) type Run = fn(&mut Edit<'_>) -> Result<(), String>;

/// A built-in action of an object.
pub(super) struct BuiltinAction {
    pub name: &'static str,
    pub state: State,
    display_name: String,
    params: Vec<Param>,
    run: Run,
}

/// An action that is always offered.
pub(super) fn action(name: &'static str, run: Run) -> BuiltinAction {
    BuiltinAction { name, state: State::Offered, display_name: String::new(), params: Vec::new(), run }
}

impl BuiltinAction {
    /// Disables the action where it would do nothing.
    pub(super) fn disabled_if(mut self, is_disabled: bool) -> Self {
        if is_disabled {
            self.state = State::Disabled;
        }
        self
    }

    /// Hides the action where it makes no sense.
    pub(super) fn hidden_if(mut self, is_hidden: bool) -> Self {
        if is_hidden {
            self.state = State::Hidden;
        }
        self
    }

    /// Gives it a name for people.
    pub(super) fn shown_as(mut self, name: &str) -> Self {
        name.clone_into(&mut self.display_name);
        self
    }

    /// Gives it a parameter.
    pub(super) fn with(mut self, name: &str, default: Option<&str>) -> Self {
        self.params.push(Param { name: name.to_owned(), default: default.map(str::to_owned) });
        self
    }

    /// The action as it is listed.
    pub(super) fn to_action(&self) -> Action {
        Action {
            name: self.name.to_owned(),
            display_name: self.display_name.clone(),
            disabled: self.state == State::Disabled,
            params: self.params.clone(),
        }
    }

    /// Runs it.
    pub(super) fn run(
        &self,
        object: &Value,
        given: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Result<Vec<Outcome>, ActionError> {
        let mut params = given.clone();
        for param in &self.params {
            if let Some(default) = &param.default {
                params.entry(param.name.clone()).or_insert_with(|| default.clone());
            }
        }
        if let Some(other) = params.keys().find(|name| !self.params.iter().any(|param| param.name == **name))
        {
            return Err(ActionError::Unfit(format!("the action {} has no parameter {other:?}", self.name)));
        }
        let mut edit = Edit { object: object.clone(), params: &params, now, created: Vec::new() };
        (self.run)(&mut edit).map_err(|reason| ActionError::Unfit(format!("{}: {reason}", self.name)))?;
        Ok(match edit.created.is_empty() {
            true => vec![Outcome::Patch(edit.object)],
            false => edit.created.into_iter().map(Outcome::Create).collect(),
        })
    }
}
