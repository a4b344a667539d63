//! Tests of what the crate offers, in one binary: a module for each subject.

mod bad_input;
mod bootstrap_commands;
mod charts_out_of_reach;
mod common;
mod false_positives;
mod fixes;
mod incidents;
mod names_beside_others;
mod outputs;
mod pages;
mod refused_at_run_time;
mod sarif;
mod silent_faults;
mod tool_refusals;
mod unnoticed_slips;
mod unset_names;
mod unused_files;
