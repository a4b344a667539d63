//! What stands behind the embedded API server: controllers, nodes and storage, simulated.
//!
//! A [`Controller`] is a function: from a [`View`] of the cluster and one object's key to the
//! [`Write`]s that bring the cluster nearer to what the object asks for. It does no IO and reads no
//! clock, so the same state gives the same writes. The [`World`] decides, in one fixed order, which
//! controller looks at which object next; who drives it (in real or virtual time) carries out the
//! writes and reports the changes that follow.

mod controller;
pub mod controllers;
mod labels;
mod object;
mod view;
mod world;

pub use controller::{Context, Controller, Key, Outcome, Propagation, Write};
pub use view::{Change, MapView, View};
pub use world::{Settings, Turn, World, initial_objects};
