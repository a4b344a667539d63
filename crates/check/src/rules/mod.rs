//! All rules, by incident family. To add one: a file whose module comment says what happens, the message
//! that people will search for, why, a bad and a good example, how to mend it and when to suppress it;
//! a `pub const RULE`; a line here; a folder under `tests/incidents/`.

mod a1_parent_wait;
mod a1_self_wait;
mod a1_wave_order;
mod a2_finalizer_without_controller;
mod b1_other_tool;
mod b2_installed_twice;
mod b3_two_owners;
mod b4_copied_tracking_label;
mod c1_chart_with_large_crd;
mod c3_webhook_before_backend;
mod c5_cr_before_crd;
mod c5_crd_twice;
mod e1_platform_pruned;
mod e5_entrypoint_module;
mod f1_dns_blocked;
mod f1_egress_blocked;
mod f1_webhook_blocked;
mod f2_probes_blocked;
mod g1_workflow_syntax;
mod g2_play_as_tasks;
mod g4_security_group_cycle;
mod g6_node_build;
mod g7_order_drift;
mod reach;

use crate::Rule;

/// Every rule, in the order of the ids.
pub const ALL: &[&Rule] = &[
    &a1_parent_wait::RULE,
    &a1_self_wait::RULE,
    &a1_wave_order::RULE,
    &a2_finalizer_without_controller::RULE,
    &b1_other_tool::RULE,
    &b2_installed_twice::RULE,
    &b3_two_owners::RULE,
    &b4_copied_tracking_label::RULE,
    &c1_chart_with_large_crd::RULE,
    &c3_webhook_before_backend::RULE,
    &c5_cr_before_crd::RULE,
    &c5_crd_twice::RULE,
    &e1_platform_pruned::RULE,
    &e5_entrypoint_module::RULE,
    &f1_dns_blocked::RULE,
    &f1_egress_blocked::RULE,
    &f1_webhook_blocked::RULE,
    &f2_probes_blocked::RULE,
    &g1_workflow_syntax::RULE,
    &g2_play_as_tasks::RULE,
    &g4_security_group_cycle::RULE,
    &g6_node_build::RULE,
    &g7_order_drift::RULE,
];

/// The rule of an id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|rule| rule.id == id)
}
