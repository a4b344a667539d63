//! All rules, by incident family. To add one: a file whose module comment says what happens, the message
//! that people will search for, why, a bad and a good example, how to mend it and when to suppress it;
//! a `pub const RULE`; a line here; a folder under `tests/incidents/`.

#[macro_use]
mod page;

mod a1_chart_secret;
mod a1_circle;
mod a1_flux_dependency;
mod a1_health_script;
mod a1_own_project;
mod a1_parent_wait;
mod a1_self_wait;
mod a1_wave_order;
mod a2_eviction_blocked;
mod a2_finalizer_without_controller;
mod a2_unknown_finalizer;
mod alertmanager_receivers;
mod ambiguous_kinds;
mod b1_other_tool;
mod b2_installed_twice;
mod b3_repeated_object;
mod b3_two_owners;
mod b4_copied_tracking_label;
mod b5_defaulted_items;
mod b5_dropped_section;
mod b5_endless_job;
mod b5_ignores_nothing;
mod b5_placeholder_secret;
mod b5_random_values;
mod b5_replicas_fight;
mod b5_two_autoscalers;
mod b5_weights_fight;
mod c1_chart_with_large_crd;
mod c1_last_applied_too_long;
mod c2_admission_refused;
mod c2_argocd_policy;
mod c2_binding_no_effect;
mod c2_certificate_refused;
mod c2_cilium_refused;
mod c2_collector_config;
mod c2_empty_series;
mod c2_escaped_template;
mod c2_exported;
mod c2_grafana_refused;
mod c2_ignore_expression;
mod c2_inline_manifest;
mod c2_invalid;
mod c2_item_twice;
mod c2_limit_range;
mod c2_misplaced_setting;
mod c2_misspelt_group;
mod c2_nearly_boolean;
mod c2_node_labels;
mod c2_node_port;
mod c2_option_value;
mod c2_pod_security;
mod c2_policy_refused;
mod c2_prometheus_refused;
mod c2_quota;
mod c2_rbac_no_effect;
mod c2_refused_annotation;
mod c2_release_name;
mod c2_removed_api;
mod c2_route_rule;
mod c2_schedule;
mod c2_security_context;
mod c2_shared_address;
mod c2_store_namespace;
mod c2_template_key;
mod c2_template_syntax;
mod c2_undefined_name;
mod c2_unknown_option;
mod c2_unserved_version;
mod c2_values_manifest;
mod c2_workflow_input;
mod c3_conversion_webhook;
mod c3_no_backend;
mod c3_webhook_before_backend;
mod c4_immutable;
mod c5_command_order;
mod c5_cr_before_chart;
mod c5_cr_before_crd;
mod c5_cr_before_operator;
mod c5_crd_twice;
mod c5_flux_namespace;
mod c5_no_definition;
mod c5_no_namespace;
mod component_variables;
mod d1_load_restriction;
mod d2_app_template;
mod d2_appset_fault;
mod d2_broken_action;
mod d2_broken_text;
mod d2_cannot_render;
mod d2_chart_address;
mod d2_chart_name;
mod d2_copied_application;
mod d2_default_true;
mod d2_duplicate_key;
mod d2_duplicate_name;
mod d2_emptied_list;
mod d2_enable_helm;
mod d2_flux_build;
mod d2_flux_encrypted;
mod d2_flux_path;
mod d2_flux_self;
mod d2_left_placeholder;
mod d2_lost_context;
mod d2_lost_list;
mod d2_misplaced_values;
mod d2_missing_chart;
mod d2_missing_file;
mod d2_missing_template;
mod d2_misspelt_values;
mod d2_moved_value;
mod d2_no_effect;
mod d2_oci_address;
mod d2_oci_chart;
mod d2_odd_branch;
mod d2_other_branch;
mod d2_page_address;
mod d2_project_entry;
mod d2_project_forbids;
mod d2_quoted_alias;
mod d2_renders_nothing;
mod d2_revision;
mod d2_scalar_values;
mod d2_set_template;
mod d2_template_indent;
mod d2_unknown_chart;
mod d2_unread_values;
mod d2_unregistered;
mod d2_unset_value;
mod d2_unset_variable;
mod d2_unwatched;
mod d2_value_file;
mod d2_values_path;
mod d3_disabled_copy;
mod d3_incomplete_registration;
mod d3_left_out;
mod d3_needed_file;
mod d4_odd_name;
mod e1_contents_pruned;
mod e1_platform_pruned;
mod e2_claim_unfit;
mod e2_cloud_identity;
mod e2_dangling_reference;
mod e2_database_user;
mod e2_flux_namespace;
mod e2_hook_order;
mod e2_issuer_secret;
mod e2_maker_named;
mod e2_missing_key;
mod e2_misspelt_name;
mod e2_no_certificate;
mod e2_no_driver;
mod e2_no_event;
mod e2_no_node;
mod e2_no_pull_secret;
mod e2_no_request;
mod e2_no_resource;
mod e2_no_store;
mod e2_sealed_name;
mod e2_unknown_class;
mod e2_values_reference;
mod e2_values_volume;
mod e3_invalid_image;
mod e3_open_version;
mod e3_withdrawn_chart;
mod e3_withdrawn_image;
mod e4_foreign_image;
mod e5_copy_missing;
mod e5_entrypoint_module;
mod e5_import_missing;
mod e5_program_missing;
mod e5_stage_missing;
mod e6_command_args_clash;
mod e6_forbidden_command;
mod e6_no_shell;
mod e6_probe_variable;
mod e6_root_refused;
mod e6_service_variable;
mod e6_unexpanded_variable;
mod e6_unknown_port;
mod e7_config_without_rollout;
mod f1_dns_blocked;
mod f1_egress_blocked;
mod f1_ingress_blocked;
mod f1_narrowed_policy;
mod f1_other_namespace;
mod f1_webhook_blocked;
mod f2_probes_blocked;
mod f3_eks_nodes;
mod f3_node_port;
mod f3_security_group_ports;
mod f4_cross_namespace;
mod f4_endpoints;
mod f4_feature_off;
mod f4_no_backend;
mod f4_no_middleware;
mod f4_operated_host;
mod f4_redirect_loop;
mod f4_rollout_target;
mod f4_route_refused;
mod f4_rule_without_backend;
mod f4_tunnel_redirect;
mod f4_unheard;
mod f4_unknown_host;
mod f4_unscraped;
mod f4_wrong_address;
mod f4_wrong_protocol;
mod flux_namespaces;
mod g1_chart_alias;
mod g1_command_target;
mod g1_missing_path;
mod g1_other_branch;
mod g1_path_filter;
mod g1_script_syntax;
mod g1_workflow_refused;
mod g1_workflow_syntax;
mod g2_ansible_refused;
mod g2_keyword_values;
mod g2_lost_item;
mod g2_missing_file;
mod g2_module_arguments;
mod g2_play_as_tasks;
mod g2_unknown_result;
mod g3_orphaned_cloud_resources;
mod g4_manifest_before_definition;
mod g4_secret_namespace;
mod g4_security_group_cycle;
mod g4_terraform_names;
mod g4_terraform_refused;
mod g4_terraform_syntax;
mod g4_terraform_values;
mod g5_drifting_ids;
mod g5_drifting_lists;
mod g6_go_version;
mod g6_missing_manifest;
mod g6_missing_script;
mod g6_node_build;
mod g7_order_drift;
mod reach;
mod terraform_arguments;
mod unread_chart_values;
mod workflow_calls;

pub use c2_policy_refused::{PolicyRefusal, policy_refusals};
pub use e3_withdrawn_image::{Supply, replacement_of_withdrawn, withdrawn_images};
pub use e6_command_args_clash::is_given_itself;
pub use f2_probes_blocked::takes_nodes_for_strangers;

use crate::Rule;

/// Every rule, in the order of the ids.
pub const ALL: &[&Rule] = &[
    &a1_chart_secret::RULE,
    &a1_circle::RULE,
    &a1_flux_dependency::RULE,
    &a1_health_script::RULE,
    &a1_own_project::RULE,
    &a1_parent_wait::RULE,
    &a1_self_wait::RULE,
    &a1_wave_order::RULE,
    &a2_eviction_blocked::RULE,
    &a2_finalizer_without_controller::RULE,
    &a2_unknown_finalizer::RULE,
    &b1_other_tool::RULE,
    &b2_installed_twice::RULE,
    &b3_repeated_object::RULE,
    &b3_two_owners::RULE,
    &b4_copied_tracking_label::RULE,
    &b5_defaulted_items::RULE,
    &b5_dropped_section::RULE,
    &b5_endless_job::RULE,
    &b5_ignores_nothing::RULE,
    &b5_placeholder_secret::RULE,
    &b5_random_values::RULE,
    &b5_replicas_fight::RULE,
    &b5_two_autoscalers::RULE,
    &b5_weights_fight::RULE,
    &c1_chart_with_large_crd::RULE,
    &c1_last_applied_too_long::RULE,
    &c2_admission_refused::RULE,
    &c2_argocd_policy::RULE,
    &c2_binding_no_effect::RULE,
    &c2_certificate_refused::RULE,
    &c2_cilium_refused::RULE,
    &c2_collector_config::RULE,
    &c2_empty_series::RULE,
    &c2_escaped_template::RULE,
    &c2_exported::RULE,
    &c2_grafana_refused::RULE,
    &c2_ignore_expression::RULE,
    &c2_inline_manifest::RULE,
    &c2_invalid::RULE,
    &c2_item_twice::RULE,
    &c2_limit_range::RULE,
    &c2_misplaced_setting::RULE,
    &c2_misspelt_group::RULE,
    &c2_nearly_boolean::RULE,
    &c2_node_labels::RULE,
    &c2_node_port::RULE,
    &c2_option_value::RULE,
    &c2_pod_security::RULE,
    &c2_policy_refused::RULE,
    &c2_prometheus_refused::RULE,
    &c2_quota::RULE,
    &c2_rbac_no_effect::RULE,
    &c2_refused_annotation::RULE,
    &c2_release_name::RULE,
    &c2_removed_api::RULE,
    &c2_route_rule::RULE,
    &c2_schedule::RULE,
    &c2_security_context::RULE,
    &c2_shared_address::RULE,
    &c2_store_namespace::RULE,
    &c2_template_key::RULE,
    &c2_template_syntax::RULE,
    &c2_undefined_name::RULE,
    &c2_unknown_option::RULE,
    &c2_unserved_version::RULE,
    &c2_values_manifest::RULE,
    &c2_workflow_input::RULE,
    &c3_conversion_webhook::RULE,
    &c3_no_backend::RULE,
    &c3_webhook_before_backend::RULE,
    &c4_immutable::RULE,
    &c5_command_order::RULE,
    &c5_cr_before_chart::RULE,
    &c5_cr_before_crd::RULE,
    &c5_cr_before_operator::RULE,
    &c5_crd_twice::RULE,
    &c5_flux_namespace::RULE,
    &c5_no_definition::RULE,
    &c5_no_namespace::RULE,
    &d1_load_restriction::RULE,
    &d2_app_template::RULE,
    &d2_appset_fault::RULE,
    &d2_broken_action::RULE,
    &d2_broken_text::RULE,
    &d2_cannot_render::RULE,
    &d2_chart_address::RULE,
    &d2_chart_name::RULE,
    &d2_copied_application::RULE,
    &d2_default_true::RULE,
    &d2_duplicate_key::RULE,
    &d2_duplicate_name::RULE,
    &d2_emptied_list::RULE,
    &d2_enable_helm::RULE,
    &d2_flux_build::RULE,
    &d2_flux_encrypted::RULE,
    &d2_flux_path::RULE,
    &d2_flux_self::RULE,
    &d2_left_placeholder::RULE,
    &d2_lost_context::RULE,
    &d2_lost_list::RULE,
    &d2_missing_chart::RULE,
    &d2_missing_file::RULE,
    &d2_missing_template::RULE,
    &d2_misplaced_values::RULE,
    &d2_misspelt_values::RULE,
    &d2_moved_value::RULE,
    &d2_no_effect::RULE,
    &d2_oci_address::RULE,
    &d2_oci_chart::RULE,
    &d2_odd_branch::RULE,
    &d2_other_branch::RULE,
    &d2_page_address::RULE,
    &d2_project_entry::RULE,
    &d2_project_forbids::RULE,
    &d2_quoted_alias::RULE,
    &d2_renders_nothing::RULE,
    &d2_revision::RULE,
    &d2_scalar_values::RULE,
    &d2_set_template::RULE,
    &d2_template_indent::RULE,
    &d2_unknown_chart::RULE,
    &d2_unread_values::RULE,
    &d2_unregistered::RULE,
    &d2_unset_value::RULE,
    &d2_unset_variable::RULE,
    &d2_unwatched::RULE,
    &d2_value_file::RULE,
    &d2_values_path::RULE,
    &d3_disabled_copy::RULE,
    &d3_incomplete_registration::RULE,
    &d3_left_out::RULE,
    &d3_needed_file::RULE,
    &d4_odd_name::RULE,
    &e1_contents_pruned::RULE,
    &e1_platform_pruned::RULE,
    &e2_claim_unfit::RULE,
    &e2_cloud_identity::RULE,
    &e2_database_user::RULE,
    &e2_dangling_reference::RULE,
    &e2_flux_namespace::RULE,
    &e2_hook_order::RULE,
    &e2_issuer_secret::RULE,
    &e2_maker_named::RULE,
    &e2_missing_key::RULE,
    &e2_misspelt_name::RULE,
    &e2_no_certificate::RULE,
    &e2_no_driver::RULE,
    &e2_no_event::RULE,
    &e2_no_node::RULE,
    &e2_no_pull_secret::RULE,
    &e2_no_request::RULE,
    &e2_no_resource::RULE,
    &e2_no_store::RULE,
    &e2_sealed_name::RULE,
    &e2_unknown_class::RULE,
    &e2_values_reference::RULE,
    &e2_values_volume::RULE,
    &e3_invalid_image::RULE,
    &e3_open_version::RULE,
    &e3_withdrawn_chart::RULE,
    &e3_withdrawn_image::RULE,
    &e4_foreign_image::RULE,
    &e5_copy_missing::RULE,
    &e5_entrypoint_module::RULE,
    &e5_import_missing::RULE,
    &e5_program_missing::RULE,
    &e5_stage_missing::RULE,
    &e6_command_args_clash::RULE,
    &e6_forbidden_command::RULE,
    &e6_no_shell::RULE,
    &e6_probe_variable::RULE,
    &e6_root_refused::RULE,
    &e6_service_variable::RULE,
    &e6_unexpanded_variable::RULE,
    &e6_unknown_port::RULE,
    &e7_config_without_rollout::RULE,
    &f1_dns_blocked::RULE,
    &f1_egress_blocked::RULE,
    &f1_ingress_blocked::RULE,
    &f1_narrowed_policy::RULE,
    &f1_other_namespace::RULE,
    &f1_webhook_blocked::RULE,
    &f2_probes_blocked::RULE,
    &f3_eks_nodes::RULE,
    &f3_node_port::RULE,
    &f3_security_group_ports::RULE,
    &f4_cross_namespace::RULE,
    &f4_endpoints::RULE,
    &f4_feature_off::RULE,
    &f4_no_backend::RULE,
    &f4_no_middleware::RULE,
    &f4_operated_host::RULE,
    &f4_redirect_loop::RULE,
    &f4_rollout_target::RULE,
    &f4_route_refused::RULE,
    &f4_rule_without_backend::RULE,
    &f4_tunnel_redirect::RULE,
    &f4_unheard::RULE,
    &f4_unknown_host::RULE,
    &f4_unscraped::RULE,
    &f4_wrong_address::RULE,
    &f4_wrong_protocol::RULE,
    &g1_chart_alias::RULE,
    &g1_command_target::RULE,
    &g1_missing_path::RULE,
    &g1_other_branch::RULE,
    &g1_path_filter::RULE,
    &g1_script_syntax::RULE,
    &g1_workflow_refused::RULE,
    &g1_workflow_syntax::RULE,
    &g2_ansible_refused::RULE,
    &g2_keyword_values::RULE,
    &g2_lost_item::RULE,
    &g2_missing_file::RULE,
    &g2_module_arguments::RULE,
    &g2_play_as_tasks::RULE,
    &g2_unknown_result::RULE,
    &g3_orphaned_cloud_resources::RULE,
    &g4_security_group_cycle::RULE,
    &g4_manifest_before_definition::RULE,
    &g4_secret_namespace::RULE,
    &g4_terraform_names::RULE,
    &g4_terraform_refused::RULE,
    &g4_terraform_syntax::RULE,
    &g4_terraform_values::RULE,
    &g5_drifting_ids::RULE,
    &g5_drifting_lists::RULE,
    &g6_go_version::RULE,
    &g6_missing_manifest::RULE,
    &g6_missing_script::RULE,
    &g6_node_build::RULE,
    &g7_order_drift::RULE,
];

/// The rules that judge a cluster as a whole, and nothing of how Argo CD fills it: they are asked of the
/// clusters of Flux, too.
pub(crate) const OF_CLUSTERS: &[&Rule] = &[
    &a2_eviction_blocked::RULE,
    &b3_two_owners::RULE,
    &b5_two_autoscalers::RULE,
    &c2_limit_range::RULE,
    &c2_node_port::RULE,
    &c2_pod_security::RULE,
    &c2_policy_refused::RULE,
    &c2_quota::RULE,
    &c2_refused_annotation::RULE,
    &c2_shared_address::RULE,
    &c3_no_backend::RULE,
    &c5_no_definition::RULE,
    &d2_flux_build::RULE,
    &d4_odd_name::RULE,
    &e2_claim_unfit::RULE,
    &e2_dangling_reference::RULE,
    &e2_hook_order::RULE,
    &e2_missing_key::RULE,
    &e2_no_certificate::RULE,
    &e2_no_driver::RULE,
    &e2_no_node::RULE,
    &e2_no_pull_secret::RULE,
    &e2_no_request::RULE,
    &e2_no_resource::RULE,
    &e2_unknown_class::RULE,
    &e6_root_refused::RULE,
    &e6_service_variable::RULE,
    &e6_unexpanded_variable::RULE,
    &e6_unknown_port::RULE,
    &f1_dns_blocked::RULE,
    &f1_egress_blocked::RULE,
    &f1_ingress_blocked::RULE,
    &f1_narrowed_policy::RULE,
    &f1_other_namespace::RULE,
    &f1_webhook_blocked::RULE,
    &f2_probes_blocked::RULE,
    &f4_endpoints::RULE,
    &f4_feature_off::RULE,
    &f4_no_backend::RULE,
    &f4_no_middleware::RULE,
    &f4_rollout_target::RULE,
    &f4_route_refused::RULE,
    &f4_unheard::RULE,
    &f4_unscraped::RULE,
    &f4_unknown_host::RULE,
    &f4_wrong_protocol::RULE,
];

/// The rule of an id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|rule| rule.id == id)
}
