//! What stands behind the embedded API server: controllers, nodes and storage, simulated.
//!
//! A [`Controller`] is a function: from a [`View`] of the cluster and one object's key to the
//! [`Write`]s that bring the cluster nearer to what the object asks for. It does no IO and reads no
//! clock, so the same state gives the same writes. The [`World`] decides, in one fixed order, which
//! controller looks at which object next; the [`Driver`] carries out the writes on an embedded API
//! server and reports the changes that follow, in real or virtual time.

mod controller;
mod controllers;
mod driver;
mod labels;
mod object;
mod view;
mod world;

pub use controller::{Context, Controller, Key, Outcome, Propagation, Write};
pub use driver::Driver;
pub use view::{Change, View};
pub use world::{Settings, Turn, World, initial_objects};
