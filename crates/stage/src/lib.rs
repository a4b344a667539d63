//! A cluster and the engine on it, headless: the ground of rehearsals and of the engine's own tests.
//!
//! A [`Site`] is a cluster that can be forked: the embedded API server, the world behind it, a clock and a
//! seed, without sockets. A [`Stage`] is a site with the engine at work on a repository. On the runtime of
//! [`virtual_runtime`] time is virtual: hours pass in milliseconds, and the same seed gives the same history.
//! A [`Recorder`] writes down what happens; [`symptoms`](symptoms::symptoms) and [`causes`](causes::causes)
//! say what is wrong at the end, and why.

pub mod causes;
mod circles;
mod claims_in_wait;
pub mod fault;
pub mod found;
mod ingress_servers;
pub mod mechanism;
pub mod object_state;
mod operator_products;
pub mod outage;
mod recorder;
mod refused_for_all;
pub mod request_faults;
mod site;
mod stage;
pub mod story;
mod story_builder;
pub mod symptoms;
mod unready_servers;

pub use recorder::{Record, Recorder};
pub use site::{Site, SiteError, SiteOptions, Still, virtual_runtime};
pub use stage::{Next, Stage, Watcher};
pub use story_builder::{Ending, applications_in};
