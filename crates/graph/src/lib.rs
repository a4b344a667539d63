//! What everything beyond delivery stands on: what a repository says as a whole ([`Survey`]), and the
//! analyses over it: how objects depend on each other ([`edges`]), in which order they are applied
//! ([`order`]), and what waits for what ([`waits`]). Pure: the repository and whatever else is to be
//! read are passed in.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod bootstrap;
pub mod edges;
pub mod network;
pub mod order;
pub mod parallel;
pub mod rival_installs;
pub mod survey;
pub mod tools;
pub mod unused_folders;
pub mod waits;

pub use survey::{
    Adoption, App, AppId, Application, Declaration, Declarations, DeclaredId, Environment, EnvironmentId,
    Files, Input, Kept, LimitTogether, MAX_APPLICATIONS, NoSources, Notice, Object, ObjectId, ObjectScope,
    Options, Outcome, Owner, Revision, Root, Set, SetId, Survey, Unit, UnitId, UnitKind,
    UnreadableExpression, UnreadableFile, Unseen, UnsetVariable, environment_of, is_of_flux,
};
