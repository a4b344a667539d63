//! Tests of what the crate offers, in one binary: a module for each subject.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod app;
mod browser;
mod chart;
mod check;
mod common;
mod controller;
mod docs;
mod doctor;
mod functions;
mod git_credentials;
mod health;
mod hostile_repositories;
mod incidents;
mod jsonnet;
mod kubernetes_version;
#[cfg(unix)]
mod local_clusters;
mod migrate;
mod one_reading;
mod rehearse;
mod rehearse_change;
mod rehearse_hidden;
mod rehearse_lost;
mod rehearse_page;
mod rehearse_world;
mod render_helm;
mod render_kustomize;
mod render_live;
#[cfg(unix)]
mod replicas;
mod revisions;
mod secrets;
mod stdout;
mod twin;
mod up;
mod up_bad_input;
mod up_missing_platform;
mod up_overlays;
mod up_rendered_apps;
mod up_sets;
mod up_unhealthy_causes;
mod why;
