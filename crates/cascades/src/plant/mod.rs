//! Faults that are put in, and what doctor has to say of each.

mod admit;
mod config;
mod edge;
mod engine;
mod flux;
mod gitops;
mod image;
mod planted;
mod platform;
mod run;
mod scene;
mod schedule;
mod service;

pub use planted::{Expected, Planted};
pub use scene::Scene;
use scene::{container, delivered_folder, mount, place, pods_of};

impl Scene<'_> {
    /// Every fault that can be put into it.
    #[must_use]
    pub fn faults(&self) -> Vec<Planted> {
        let mut found = vec![Planted::new("healthy", "nothing", &[])];
        for plant in [
            image::plant,
            run::plant,
            config::plant,
            admit::plant,
            schedule::plant,
            service::plant,
            platform::plant,
            gitops::plant,
            edge::plant,
            engine::plant,
            flux::plant,
        ] {
            plant(self, &mut found);
        }
        found
    }
}
