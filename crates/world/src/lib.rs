//! What stands behind the embedded API server: controllers, nodes and storage, simulated.
//!
//! A [`Controller`] is a function: from a [`View`] of the cluster and one object's key to the
//! [`Write`]s that bring the cluster nearer to what the object asks for. It does no IO and reads no
//! clock, so the same state gives the same writes. The [`World`] decides, in one fixed order, which
//! controller looks at which object next; the [`Driver`] carries out the writes on an embedded API
//! server and reports the changes that follow, in real or virtual time. What no controller of
//! Kubernetes decides (registries, programs, operators, the network) is data: [`Behaviours`].

pub mod behaviour;
mod bootstrap;
mod cluster_view;
mod controller;
mod controllers;
mod driver;
mod event;
mod labels;
mod object;
mod settings;
mod virtual_time;
mod webhooks;
mod world;

pub use behaviour::{Behaviours, Cause};
pub use bootstrap::{ZONE, initial_objects};
pub use cluster_view::{Change, View};
pub use controller::{Awaited, Context, Controller, Key, Outcome, Propagation, Write};
pub use controllers::{cron_job::job_of_cron_job, kubelet::missing_configuration};
pub use driver::Driver;
pub use event::{Event, Reporter};
pub use object::is_job_finished;
pub use settings::{Settings, Start};
pub use virtual_time::VirtualClock;
pub use world::{Turn, World};
