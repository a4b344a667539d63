//! Whole stories on an embedded API server, in virtual time.

use std::time::Duration;

use tiphys_apiserver::Propagation;
use tiphys_value::{ObjectExt, json};
use tiphys_world::Settings;

use crate::support::{Cluster, MINUTE, daemon_set, deployments, pods, resource, template, workload};

#[test]
fn a_deployment_comes_up_and_rolls_over_without_losing_availability() {
    let mut cluster = Cluster::new();
    cluster.create(&deployments(), workload("Deployment", "web", 3));
    cluster.run(MINUTE);
    let web = cluster.get(&deployments(), "shop", "web").unwrap();
    assert_eq!(web["status"]["readyReplicas"], 3);
    assert_eq!(web["status"]["observedGeneration"], web["metadata"]["generation"]);
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");

    let mut changed = web;
    changed["spec"]["template"] = template("web:2");
    cluster.update(&deployments(), changed);
    cluster.run(MINUTE);
    let web = cluster.get(&deployments(), "shop", "web").unwrap();
    assert_eq!(web["status"]["updatedReplicas"], 3);
    assert_eq!(web["status"]["replicas"], 3);
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    assert_eq!(web["status"]["conditions"][1]["reason"], "NewReplicaSetAvailable");
    assert_eq!(cluster.names(&pods(), "shop").len(), 3);
    assert_eq!(cluster.names(&resource("apps", "v1", "replicasets"), "shop").len(), 2);
}

#[test]
fn a_stateful_set_starts_one_pod_after_the_other_with_claims_that_bind() {
    let mut cluster = Cluster::new();
    let mut set = workload("StatefulSet", "db", 2);
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}}}]);
    cluster.create(&resource("apps", "v1", "statefulsets"), set);
    cluster.run(MINUTE);
    assert_eq!(cluster.names(&pods(), "shop"), ["db-0", "db-1"]);
    let claim = cluster.get(&resource("", "v1", "persistentvolumeclaims"), "shop", "data-db-1").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    let set = cluster.get(&resource("apps", "v1", "statefulsets"), "shop", "db").unwrap();
    assert_eq!(set["status"]["readyReplicas"], 2);
    let history = cluster.history();
    let is_ready = |line: &String| {
        line.starts_with("Modified pods")
            && line.contains("\"name\":\"db-0\"")
            && line.contains("\"phase\":\"Running\"")
    };
    let first_ready = history.iter().position(is_ready).unwrap();
    let is_second = |line: &String| line.starts_with("Added pods") && line.contains("\"name\":\"db-1\"");
    assert!(first_ready < history.iter().position(is_second).unwrap());
}

#[test]
fn a_claim_that_waits_for_a_consumer_stays_pending_without_one() {
    let mut cluster = Cluster::new();
    let claims = resource("", "v1", "persistentvolumeclaims");
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "lonely", "namespace": "shop"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}}});
    cluster.create(&claims, claim);
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&claims, "shop", "lonely").unwrap()["status"]["phase"], "Pending");
}

#[test]
fn no_number_of_pods_fills_the_memory() {
    let most = i64::from(i32::MAX);
    let mut parallel = workload("StatefulSet", "web", most);
    parallel["spec"]["podManagementPolicy"] = "Parallel".into();
    let mut job = workload("Job", "web", 0);
    job["apiVersion"] = "batch/v1".into();
    job["spec"] = json!({"parallelism": most, "completions": most, "template": template("web:1")});
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    let events = resource("", "v1", "events");
    for (resource, object) in [
        (deployments(), workload("Deployment", "web", most)),
        (resource("apps", "v1", "statefulsets"), parallel),
        (resource("batch", "v1", "jobs"), job),
    ] {
        let mut cluster = Cluster::with(Settings { most_pods: 30, ..Settings::default() });
        cluster.create(&resource, object);
        cluster.run(Duration::from_secs(5));
        assert!(cluster.names(&pods(), "shop").len() <= 30, "{resource:?}");
        let told = cluster.names(&events, "shop");
        let is_told = |name: &String| {
            let event = cluster.get(&events, "shop", name).unwrap();
            let message = event.str_at(&["message"]).unwrap_or_default();
            event["reason"] == "FailedCreate" && message.contains("no more than 30 pods")
        };
        assert!(told.iter().any(is_told), "{resource:?}");
    }
}

#[test]
fn a_job_completes_and_one_that_keeps_failing_gives_up() {
    let mut cluster = Cluster::new();
    let jobs = resource("batch", "v1", "jobs");
    let job = |name: &str, image: &str| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"backoffLimit": 2, "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}}}})
    };
    cluster.behave("containers: [{image: bad, exits: {code: 1}}]");
    cluster.create(&jobs, job("good", "good"));
    cluster.create(&jobs, job("bad", "bad"));
    cluster.run(MINUTE);
    let good = cluster.get(&jobs, "shop", "good").unwrap();
    assert_eq!(good["status"]["succeeded"], 1);
    let bad = cluster.get(&jobs, "shop", "bad").unwrap();
    assert_eq!(bad["status"]["failed"], 3);
    assert_eq!(bad["status"]["conditions"][1]["reason"], "BackoffLimitExceeded");
}

#[test]
fn deleting_an_owner_takes_what_it_owns_and_orphans_nothing_else() {
    let mut cluster = Cluster::new();
    cluster.create(&deployments(), workload("Deployment", "web", 2));
    cluster.create(
        &pods(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "free", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}),
    );
    cluster.run(MINUTE);
    cluster.delete(&deployments(), "shop", "web", Propagation::Foreground);
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&deployments(), "shop", "web"), None);
    assert_eq!(cluster.names(&resource("apps", "v1", "replicasets"), "shop"), Vec::<String>::new());
    assert_eq!(cluster.names(&pods(), "shop"), ["free"]);
}

#[test]
fn a_namespace_is_filled_and_empties_before_it_goes() {
    let mut cluster = Cluster::new();
    let namespaces = resource("", "v1", "namespaces");
    cluster.create(&deployments(), workload("Deployment", "web", 2));
    cluster.run(MINUTE);
    assert!(cluster.get(&resource("", "v1", "serviceaccounts"), "shop", "default").is_some());
    cluster.delete(&namespaces, "", "shop", Propagation::Background);
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&namespaces, "", "shop"), None);
    assert_eq!(cluster.names(&pods(), "shop"), Vec::<String>::new());
    assert_eq!(cluster.names(&resource("", "v1", "configmaps"), "shop"), Vec::<String>::new());
}

#[test]
fn a_service_lists_the_ready_pods_behind_it() {
    let mut cluster = Cluster::new();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}});
    cluster.create(&resource("", "v1", "services"), service);
    cluster.create(&deployments(), workload("Deployment", "web", 2));
    cluster.run(MINUTE);
    let slices = resource("discovery.k8s.io", "v1", "endpointslices");
    let slice = cluster.get(&slices, "shop", &cluster.names(&slices, "shop")[0]).unwrap();
    let endpoints = slice["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 2);
    assert!(endpoints.iter().all(|endpoint| endpoint["conditions"]["ready"] == true));
    assert_eq!(slice["ports"][0]["port"], 8080);
}

#[test]
fn an_aggregated_api_is_available_while_its_service_has_endpoints() {
    let mut cluster = Cluster::new();
    let services = resource("apiregistration.k8s.io", "v1", "apiservices");
    cluster.create(&services, json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.web.example.com"},
        "spec": {"group": "web.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": "shop", "name": "web", "port": 80}}}));
    let available = |cluster: &Cluster| {
        let condition =
            cluster.get(&services, "", "v1.web.example.com").unwrap()["status"]["conditions"][0].clone();
        format!("{} {}", condition["status"].as_str().unwrap(), condition["reason"].as_str().unwrap())
    };
    assert_eq!(available(&cluster), "False ServiceNotFound");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}});
    cluster.create(&resource("", "v1", "services"), service);
    cluster.run(MINUTE);
    assert_eq!(available(&cluster), "False MissingEndpoints");
    cluster.create(&deployments(), workload("Deployment", "web", 1));
    cluster.run(MINUTE);
    assert_eq!(available(&cluster), "True Passed");
    cluster.delete(&deployments(), "shop", "web", Propagation::Background);
    cluster.run(2 * MINUTE);
    assert_eq!(available(&cluster), "False MissingEndpoints");
}

#[test]
fn pods_are_made_as_soon_as_their_priority_class_is_there() {
    let mut cluster = Cluster::new();
    let mut web = workload("Deployment", "web", 1);
    web["spec"]["template"]["spec"]["priorityClassName"] = "gold".into();
    cluster.create(&deployments(), web);
    cluster.run(10 * MINUTE);
    assert_eq!(cluster.names(&pods(), "shop"), Vec::<String>::new());
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"}, "value": 1});
    cluster.create(&resource("scheduling.k8s.io", "v1", "priorityclasses"), class);
    cluster.run(Duration::from_secs(2));
    assert_eq!(cluster.names(&pods(), "shop").len(), 1);
}

#[test]
fn the_same_story_gives_the_same_log_every_time() {
    let story = || {
        let mut cluster = Cluster::new();
        cluster.create(&deployments(), workload("Deployment", "web", 5));
        cluster.create(&resource("apps", "v1", "statefulsets"), workload("StatefulSet", "db", 3));
        cluster.create(&resource("apps", "v1", "daemonsets"), daemon_set("agent"));
        cluster.run(MINUTE);
        cluster.history()
    };
    let first = story();
    assert!(first.len() > 50);
    for _ in 0..100 {
        assert_eq!(story(), first);
    }
}
