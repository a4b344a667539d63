//! What several rules need: pods of workloads, sync options of objects, saying a thing once.

pub mod chart_definitions;
pub mod chart_uses;
pub mod charts;
pub mod checkout;
pub mod cloud;
pub mod cluster;
pub mod crds;
pub mod declared;
pub mod fields;
pub mod flux;
pub(crate) mod gitlab;
pub mod image_option;
pub mod images;
pub mod kustomizations;
pub mod once;
pub mod parts;
pub mod placeholders;
pub mod pod_security;
pub mod pods;
pub mod promql;
pub mod references;
pub mod selectors;
pub mod set_aside;
pub mod shipped;
pub mod similar;
pub mod workflow;
