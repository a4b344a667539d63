//! What the webhook of CloudNativePG and its plugin for Barman refuse in a Cluster (CloudNativePG docs,
//! "PostgreSQL Configuration", fixed parameters; plugin-barman-cloud, `internal/cnpgi/operator/config`).

use tiphys_value::{ObjectExt, Value};

use super::refused_fields::Refusals;
use crate::support::{
    field_paths::keys,
    pods::{list, text},
};

/// Parameters that the operator sets by itself, each with the value that it sets, which is taken: `*` where
/// that is another in every cluster, nothing where no value is.
const FIXED: [(&str, &str); 52] = [
    ("allow_system_table_mods", ""),
    ("archive_cleanup_command", ""),
    ("archive_command", "*"),
    ("archive_mode", "*"),
    ("bonjour", ""),
    ("bonjour_name", ""),
    ("cluster_name", "*"),
    ("config_file", ""),
    ("data_directory", ""),
    ("data_sync_retry", ""),
    ("event_source", ""),
    ("external_pid_file", ""),
    ("hba_file", ""),
    ("hot_standby", "true"),
    ("ident_file", ""),
    ("jit_provider", ""),
    ("listen_addresses", "*"),
    ("log_destination", "csvlog"),
    ("log_directory", "/controller/log"),
    ("log_file_mode", ""),
    ("log_filename", "postgres"),
    ("log_rotation_age", "0"),
    ("log_rotation_size", "0"),
    ("log_truncate_on_rotation", "false"),
    ("logging_collector", "on"),
    ("port", "5432"),
    ("primary_conninfo", ""),
    ("primary_slot_name", ""),
    ("promote_trigger_file", ""),
    ("recovery_end_command", ""),
    ("recovery_min_apply_delay", "*"),
    ("recovery_target", ""),
    ("recovery_target_action", ""),
    ("recovery_target_inclusive", ""),
    ("recovery_target_lsn", ""),
    ("recovery_target_name", ""),
    ("recovery_target_time", ""),
    ("recovery_target_timeline", ""),
    ("recovery_target_xid", ""),
    ("restart_after_crash", "false"),
    ("restore_command", ""),
    ("shared_preload_libraries", ""),
    ("ssl", "on"),
    ("ssl_ca_file", "*"),
    ("ssl_cert_file", "*"),
    ("ssl_crl_file", ""),
    ("ssl_dh_params_file", ""),
    ("ssl_ecdh_curve", ""),
    ("ssl_key_file", "*"),
    ("stats_temp_directory", ""),
    ("synchronous_standby_names", "*"),
    ("unix_socket_directories", "*"),
];

/// How the plugin for Barman is called.
const BARMAN: &str = "barman-cloud.cloudnative-pg.io";

/// Looks at a Cluster.
pub(super) fn check(kind: &str, spec: &Value, found: &mut Refusals) {
    if kind != "Cluster" {
        return;
    }
    parameters(spec, found);
    for (at, plugin) in list(spec, "plugins").iter().enumerate() {
        let parameters = &plugin["parameters"];
        let is_off = plugin["enabled"] == Value::Bool(false);
        let is_for_recovery = list(spec, "externalClusters").iter().any(|it| it.get("plugin").is_some());
        if text(plugin, "name") == BARMAN
            && !is_off
            && !is_for_recovery
            && text(parameters, "barmanObjectName").is_empty()
        {
            let field = keys(&["spec", "plugins"]).index(at).key("parameters");
            found.add(field, "no reference to barmanObjectName have been included");
        }
    }
}

fn parameters(spec: &Value, found: &mut Refusals) {
    let parameters = spec.at(&["postgresql", "parameters"]).and_then(Value::as_object);
    for (name, value) in parameters.into_iter().flatten() {
        let Some((_, own)) = FIXED.iter().find(|(fixed, _)| fixed == name) else { continue };
        // What is not written as a text is refused for that.
        let Some(value) = value.as_str().filter(|_| *own != "*") else { continue };
        if value.is_empty() || value == *own {
            continue;
        }
        let message = format!(
            "spec.postgresql.parameters.{name}: Invalid value: {value:?}: Can't set fixed configuration parameter"
        );
        found.add(keys(&["spec", "postgresql", "parameters"]).key(name), message);
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::{Value, json};

    use super::{Refusals, check};

    fn refused(spec: &Value) -> Vec<String> {
        let mut found = Refusals::default();
        check("Cluster", spec, &mut found);
        found.0.into_iter().map(|it| it.field.to_string()).collect()
    }

    #[test]
    fn what_the_operator_sets_is_refused_in_another_value() {
        let with = |parameters: Value| json!({"postgresql": {"parameters": parameters}});
        assert!(refused(&with(json!({"max_connections": "200", "logging_collector": "on"}))).is_empty());
        let refused =
            refused(&with(json!({"log_destination": "stderr", "shared_preload_libraries": "vector"})));
        assert_eq!(
            refused,
            [
                ".spec.postgresql.parameters.log_destination",
                ".spec.postgresql.parameters.shared_preload_libraries"
            ]
        );
    }

    #[test]
    fn barman_wants_the_name_of_its_store() {
        let with =
            |parameters: Value| json!({"plugins": [{"name": super::BARMAN, "parameters": parameters}]});
        assert_eq!(refused(&with(json!({"objectStoreName": "backups"}))), [".spec.plugins[0].parameters"]);
        assert!(refused(&with(json!({"barmanObjectName": "backups"}))).is_empty());
    }
}
