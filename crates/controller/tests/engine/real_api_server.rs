//! The incidents on a real API server: it alone, without controllers, in real time.

use std::{path::Path, pin::Pin, process::Command};

use tiphys_cluster::Cluster;
use tiphys_oracles::RealApiServer;
use tiphys_value::GroupKind;

use crate::{
    incidents::{admission, endless_operations, owners, rendering},
    stage::{ENGINE, Stage, application, config_map, on_real, on_real_as},
};

type Scenario = Pin<Box<dyn Future<Output = ()>>>;

macro_rules! scenarios {
    ($($module:ident::$name:ident),* $(,)?) => {
        [$((stringify!($name), (|| Box::pin($module::$name())) as fn() -> Scenario)),*]
    };
}

/// One server for all: it takes seconds to start.
#[test]
fn incidents_on_a_real_api_server() {
    let Some(server) = RealApiServer::start_or_skip() else { return };
    let scenarios = scenarios![
        endless_operations::a1_an_application_among_its_own_objects,
        endless_operations::a1_a_chain_of_applications_that_leads_back,
        endless_operations::a2_a_deletion_that_a_finalizer_holds_for_ever,
        endless_operations::a2_a_wait_for_a_deletion_names_who_holds_it_and_since_and_until_when,
        endless_operations::a2_a_wait_for_a_deletion_ends,
        endless_operations::a3_an_operation_that_only_waits_gives_way,
        endless_operations::a4_a_project_of_a_later_wave_is_not_waited_for,
        endless_operations::a4_what_another_application_blocks_is_given_up,
        endless_operations::a4_what_another_application_blocks_resumes_by_itself,
        owners::b1_another_tool_owns_the_object,
        owners::b1_a_helm_release_owns_its_objects_while_it_is_there,
        owners::b3_one_object_in_two_applications,
        owners::b4_a_secret_that_bears_a_copied_label,
        owners::b4_what_something_that_stays_needs_is_not_pruned,
        owners::b5_a_repair_by_hand_is_taken_back_every_time,
        owners::b5_a_repair_by_hand_is_told_of,
        owners::b5_a_repair_by_hand_can_be_held,
        admission::c1_large_objects_need_no_annotation,
        admission::c2_a_violated_schema_leaves_half_of_an_application,
        admission::c2_a_violated_schema_stops_everything_before_the_first_write,
        admission::c2_a_port_of_two_names_is_applied_and_what_leaves_the_sources_goes,
        admission::c3_a_webhook_whose_backend_is_down_burns_the_retries,
        admission::c3_a_webhook_whose_backend_is_down,
        admission::c4_an_immutable_field_leaves_half_of_a_revision,
        admission::c4_an_immutable_field_is_refused_before_anything_is_written,
        admission::c4_a_selector_is_replaced_if_that_is_allowed,
        admission::c5_custom_resources_before_their_definition_fail_for_ever,
        admission::c5_custom_resources_wait_for_what_a_later_wave_brings,
        admission::c5_custom_resources_wait_for_their_definition,
        admission::c5_custom_resources_wait_for_a_definition_of_another_application,
        rendering::d1_what_does_not_render_leaves_the_last_good_state_in_force,
        rendering::e1_the_pod_network_is_not_pruned_unconfirmed,
        rendering::e1_a_storage_driver_is_not_pruned_unconfirmed,
    ];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let cluster = Cluster::connect(Some(&server.kubeconfig()), None).await.unwrap().cluster;
        for (name, scenario) in scenarios {
            // Shown if a scenario fails.
            eprintln!("{name}");
            let start = std::time::Instant::now();
            on_real(&cluster, scenario()).await;
            eprintln!("  {:.1} s", start.elapsed().as_secs_f64());
        }
    });
}

/// Runs kubectl as the administrator; returns what it says.
fn kubectl(server: &RealApiServer, args: &[&str]) -> String {
    let mut command = Command::new(tiphys_oracles::find("kubectl").unwrap());
    let output = command.arg("--kubeconfig").arg(server.kubeconfig()).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What `deploy/` installs is accepted, and the rights of its service account are enough to work.
#[test]
fn the_installation_and_its_rights_on_a_real_api_server() {
    let Some(server) = RealApiServer::start_or_skip() else { return };
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    kubectl(&server, &["create", "namespace", "argocd"]);
    for overlay in ["install", "shadow"] {
        let folder = deploy.join(overlay);
        kubectl(&server, &["apply", "--server-side", "--force-conflicts", "-k", folder.to_str().unwrap()]);
    }
    kubectl(&server, &["delete", "clusterrolebinding", "tiphys-shadow"]);
    let token = kubectl(&server, &["create", "token", "tiphys-controller", "--namespace", "argocd"]);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("kubeconfig");
    std::fs::write(&config, server.kubeconfig_of("tiphys-controller", token.trim())).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let people = Cluster::connect(Some(&server.kubeconfig()), None).await.unwrap().cluster;
        let engine = Cluster::connect(Some(&config), None).await.unwrap().cluster;
        on_real_as(&people, &engine, admission::c5_custom_resources_wait_for_their_definition()).await;
        on_real_as(&people, &engine, owners::b5_a_repair_by_hand_is_told_of()).await;
    });
}

/// An API server takes objects that are deeper than a JSON parser of Rust reads. Whoever may create one must
/// not stop everybody.
#[test]
fn one_object_too_deep_keeps_no_others_from_being_read() {
    let Some(server) = RealApiServer::start_or_skip() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep.json");
    let values = format!("{}1{}", r#"{"a":"#.repeat(300), "}".repeat(300));
    let deep = application("deep", "app").to_string();
    let deep =
        deep.replace(r#""path":"app""#, &format!(r#""path":"app","helm":{{"valuesObject":{values}}}"#));
    std::fs::write(&file, deep).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let cluster = Cluster::connect(Some(&server.kubeconfig()), None).await.unwrap().cluster;
        on_real(&cluster, async {
            let mut stage = Stage::idle(&[("app/a.yaml", &config_map("a", "1"))], |_| {}).await;
            kubectl(&server, &["create", "-f", file.to_str().unwrap()]);
            stage.apply(application("app", "app")).await;
            stage.start().await;
            stage.until_green("app").await;
            let broken = cluster
                .discovery()
                .preferred_resource(&GroupKind::new("argoproj.io", "Application"))
                .cloned();
            let list = cluster.list(&broken.unwrap(), ENGINE).await.unwrap();
            let deep = list.items.iter().find(|app| app["metadata"]["name"] == "deep").unwrap();
            assert_eq!(deep.get("spec"), None, "it is told by its name only");
        })
        .await;
    });
}
