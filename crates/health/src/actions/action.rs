//! An action, what it asks for, and why it cannot be run.

use serde_json::Value;

use crate::lua::LuaError;

/// An action that an object offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Name, as `argocd-cm` and commands have it.
    pub name: String,
    /// Name for people; may be empty.
    pub display_name: String,
    /// It would do nothing now.
    pub disabled: bool,
    /// Parameters that it takes.
    pub params: Vec<Param>,
}

/// A parameter of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name.
    pub name: String,
    /// Value if none is given.
    pub default: Option<String>,
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// An object as it should become: the difference to the live one is to be merged into that.
    Patch(Value),
    /// An object to create.
    Create(Value),
}

impl Outcome {
    /// The object.
    pub fn object(&self) -> &Value {
        match self {
            Self::Patch(object) | Self::Create(object) => object,
        }
    }
}

/// An action that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The kind has no action of this name.
    #[error("{kind} has no action {name:?}{known}")]
    Unknown {
        /// The kind.
        kind: String,
        /// What was asked for.
        name: String,
        /// Those there are, or nothing.
        known: String,
    },
    /// The action of `argocd-cm` failed.
    #[error("{script} of the actions of {kind} in argocd-cm: {error}")]
    Script {
        /// The kind.
        kind: String,
        /// Name of the action, or `discovery.lua`.
        script: String,
        /// Why.
        error: LuaError,
    },
    /// The object or a parameter is not what the action needs.
    #[error("{0}")]
    Unfit(String),
}
