//! Controllers, one story each.

use tiphys_apiserver::Propagation;
use tiphys_value::{Value, json};

use crate::support::{Cluster, MINUTE, daemon_set, pods, resource, template, workload};

fn job(spec: Value) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work", "namespace": "shop"}, "spec": spec})
}

fn job_template() -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}})
}

#[test]
fn an_indexed_job_gives_every_index_a_pod() {
    let mut cluster = Cluster::new();
    let jobs = resource("batch", "v1", "jobs");
    cluster.create(
        &jobs,
        job(json!({"completionMode": "Indexed", "completions": 4, "parallelism": 2,
        "ttlSecondsAfterFinished": 600, "template": job_template()})),
    );
    cluster.run(MINUTE);
    let done = cluster.get(&jobs, "shop", "work").unwrap();
    assert_eq!(done["status"]["completedIndexes"], "0-3");
    assert_eq!(done["status"]["conditions"][1]["type"], "Complete");
    let reasons: Vec<_> = cluster.events("shop", "work").into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(reasons.iter().filter(|reason| *reason == "SuccessfulCreate").count(), 4);
    assert!(reasons.contains(&"Completed".to_owned()));
    cluster.run(10 * MINUTE);
    assert_eq!(cluster.get(&jobs, "shop", "work"), None);
    assert_eq!(cluster.names(&pods(), "shop"), Vec::<String>::new());
}

#[test]
fn a_job_that_takes_too_long_fails() {
    let mut cluster = Cluster::new();
    cluster.behave("containers: [{image: i, exits: {code: 0, after: 1h}}]");
    let jobs = resource("batch", "v1", "jobs");
    cluster.create(&jobs, job(json!({"activeDeadlineSeconds": 30, "template": job_template()})));
    cluster.run(MINUTE);
    let failed = cluster.get(&jobs, "shop", "work").unwrap();
    assert_eq!(failed["status"]["conditions"][1]["reason"], "DeadlineExceeded");
    assert_eq!(cluster.names(&pods(), "shop"), Vec::<String>::new());
}

#[test]
fn a_cron_job_starts_jobs_and_keeps_the_last_ones() {
    let mut cluster = Cluster::new();
    let crons = resource("batch", "v1", "cronjobs");
    cluster.create(
        &crons,
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": "shop"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": job_template()}}}}),
    );
    cluster.run(60 * MINUTE);
    let cron = cluster.get(&crons, "shop", "tick").unwrap();
    assert!(cron["status"]["lastScheduleTime"].is_string());
    assert_eq!(cluster.names(&resource("batch", "v1", "jobs"), "shop").len(), 3);
    let reasons: Vec<_> = cluster.events("shop", "tick").into_iter().map(|(reason, _)| reason).collect();
    assert!(reasons.iter().filter(|reason| *reason == "SawCompletedJob").count() >= 11, "{reasons:?}");
}

#[test]
fn a_volume_goes_with_its_claim_and_a_claim_stays_while_it_is_used() {
    let mut cluster = Cluster::new();
    let claims = resource("", "v1", "persistentvolumeclaims");
    cluster.create(&claims, json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop", "finalizers": ["kubernetes.io/pvc-protection"]}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}}}));
    cluster.create(&pods(), json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}}));
    cluster.run(MINUTE);
    let claim = cluster.get(&claims, "shop", "data").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"], "node-1");
    cluster.delete(&claims, "shop", "data", Propagation::Background);
    cluster.run(MINUTE);
    assert!(cluster.get(&claims, "shop", "data").is_some());
    cluster.delete(&pods(), "shop", "user", Propagation::Background);
    cluster.run(MINUTE);
    assert_eq!(cluster.get(&claims, "shop", "data"), None);
    let volumes = resource("", "v1", "persistentvolumes");
    assert_eq!(cluster.client.list(&volumes, None, &Default::default()).unwrap().items.len(), 0);
}

#[test]
fn spread_pods_are_spread_and_those_that_shun_each_other_are_apart() {
    let mut cluster = Cluster::new();
    let mut set = workload("Deployment", "web", 4);
    set["spec"]["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}});
    cluster.create(&resource("apps", "v1", "deployments"), set);
    cluster.run(MINUTE);
    let names = cluster.names(&pods(), "shop");
    let node = |name: &String| {
        cluster.get(&pods(), "shop", name).unwrap()["spec"]["nodeName"].as_str().map(str::to_owned)
    };
    let nodes: std::collections::BTreeSet<_> = names.iter().filter_map(node).collect();
    assert_eq!(nodes.len(), 3);
    let lonely = names.iter().find(|name| node(name).is_none()).unwrap();
    let message = &cluster.events("shop", lonely)[0].1;
    assert!(
        message.starts_with("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."),
        "{message}"
    );
}

/// An autoscaler of the Deployment `web`, between 2 and 5 pods.
fn scaler(metrics: Value) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"}, "spec": {"minReplicas": 2, "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "metrics": metrics}})
}

fn by_utilization(resource: &str, percent: i64) -> Value {
    json!({"type": "Resource", "resource": {"name": resource,
        "target": {"type": "Utilization", "averageUtilization": percent}}})
}

/// The Deployment `web` with requests, or without.
fn scaled(requests: Value) -> Value {
    let mut web = workload("Deployment", "web", 1);
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": requests});
    web
}

/// Reason, status and message of a condition of the autoscaler `web`.
fn of_scaler(cluster: &Cluster, kind: &str) -> (String, String, String) {
    let scaler =
        cluster.get(&resource("autoscaling", "v2", "horizontalpodautoscalers"), "shop", "web").unwrap();
    let conditions = scaler["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let told = conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
    let text = |field: &str| told[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("status"), text("message"))
}

#[test]
fn an_autoscaler_keeps_its_target_within_bounds_and_finds_it_at_its_target() {
    let mut cluster = Cluster::new();
    let web = scaled(json!({"cpu": "250m", "memory": "64Mi"}));
    cluster.create(&resource("apps", "v1", "deployments"), web);
    let scalers = resource("autoscaling", "v2", "horizontalpodautoscalers");
    let by_value = json!({"type": "Resource", "resource": {"name": "memory",
        "target": {"type": "AverageValue", "averageValue": "100Mi"}}});
    let metrics = json!([by_utilization("cpu", 80), by_utilization("memory", 75), by_value]);
    cluster.create(&scalers, scaler(metrics));
    cluster.run(MINUTE);
    let scaler = cluster.get(&scalers, "shop", "web").unwrap();
    assert_eq!(scaler["status"]["currentReplicas"], 2);
    assert_eq!(scaler["status"]["desiredReplicas"], 2);
    let measured = |name: &str, current: Value| json!({"type": "Resource", "resource": {"name": name, "current": current}});
    let expected = json!([
        measured("cpu", json!({"averageUtilization": 80, "averageValue": "200m"})),
        measured("memory", json!({"averageUtilization": 75, "averageValue": "48Mi"})),
        measured("memory", json!({"averageValue": "100Mi"})),
    ]);
    assert_eq!(scaler["status"]["currentMetrics"], expected);
    let found = "the HPA was able to successfully calculate a replica count from cpu resource utilization \
                 (percentage of request)";
    let told = |kind: &str| of_scaler(&cluster, kind);
    assert_eq!(told("ScalingActive"), ("ValidMetricFound".into(), "True".into(), found.into()));
    assert_eq!(told("AbleToScale").0, "ReadyForNewScale");
    assert_eq!(told("ScalingLimited").0, "DesiredWithinRange");
}

#[test]
fn an_autoscaler_of_pods_without_requests_cannot_know_their_utilization() {
    let mut cluster = Cluster::new();
    cluster.create(&resource("apps", "v1", "deployments"), scaled(json!({"memory": "64Mi"})));
    let scalers = resource("autoscaling", "v2", "horizontalpodautoscalers");
    cluster.create(&scalers, scaler(json!([by_utilization("cpu", 80)])));
    cluster.run(MINUTE);
    let pods = cluster.names(&pods(), "shop");
    let scaler = cluster.get(&scalers, "shop", "web").unwrap();
    assert_eq!(scaler["status"]["currentMetrics"], json!([{"type": ""}]));
    let container =
        &cluster.get(&resource("", "v1", "pods"), "shop", &pods[0]).unwrap()["spec"]["containers"][0];
    let why = format!(
        "failed to get cpu utilization: missing request for cpu in container {} of Pod {}",
        container["name"].as_str().unwrap(),
        pods[0]
    );
    let message = format!("the HPA was unable to compute the replica count: {why}");
    assert_eq!(
        of_scaler(&cluster, "ScalingActive"),
        ("FailedGetResourceMetric".into(), "False".into(), message)
    );
    let failed = format!(
        "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {why}"
    );
    assert!(cluster.events("shop", "web").contains(&("FailedComputeMetricsReplicas".into(), failed)));
}

#[test]
fn an_autoscaler_misses_the_metrics_of_adapters_and_of_pods_that_do_not_come_up() {
    let mut cluster = Cluster::new();
    let mut web = scaled(json!({"cpu": "250m"}));
    web["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "none"});
    web["spec"]["replicas"] = 2.into();
    cluster.create(&resource("apps", "v1", "deployments"), web);
    let scalers = resource("autoscaling", "v2", "horizontalpodautoscalers");
    let queue = json!({"type": "External", "external": {"metric": {"name": "queue"},
        "target": {"type": "AverageValue", "averageValue": "30"}}});
    cluster.create(&scalers, scaler(json!([by_utilization("cpu", 80), queue])));
    cluster.run(MINUTE / 2);
    assert_eq!(of_scaler(&cluster, "ScalingActive").0, "", "the pods may still be starting");
    cluster.run(MINUTE);
    let (reason, status, message) = of_scaler(&cluster, "ScalingActive");
    assert_eq!((reason.as_str(), status.as_str()), ("FailedGetResourceMetric", "False"));
    assert!(message.ends_with("no metrics returned from resource metrics API"), "{message}");
    assert!(cluster.events("shop", "web").iter().any(|(reason, _)| reason == "FailedGetExternalMetric"));
}

fn budget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

#[test]
fn an_empty_selector_of_a_budget_guards_the_whole_namespace() {
    let mut cluster = Cluster::new();
    let budgets = resource("policy", "v1", "poddisruptionbudgets");
    cluster.create(&resource("apps", "v1", "deployments"), workload("Deployment", "web", 3));
    cluster.create(&budgets, budget("all", json!({"maxUnavailable": 1, "selector": {}})));
    cluster.create(&budgets, budget("none", json!({"maxUnavailable": 1})));
    cluster.run(MINUTE);
    let all = cluster.get(&budgets, "shop", "all").unwrap();
    assert_eq!(
        (&all["status"]["expectedPods"], &all["status"]["disruptionsAllowed"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(cluster.get(&budgets, "shop", "none").unwrap()["status"]["expectedPods"], 0);
    let evict = |name: &str| {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "shop"}});
        cluster.client.create_subresource(&pods(), "shop", name, "eviction", body)
    };
    let names = cluster.names(&pods(), "shop");
    evict(&names[0]).unwrap();
    let gone = cluster.get(&pods(), "shop", &names[0]).unwrap();
    assert_eq!(
        gone["status"]["conditions"].as_array().unwrap().last().unwrap()["reason"],
        "EvictionByEvictionAPI"
    );
    assert_eq!(evict(&names[1]).unwrap_err().code(), 429);
    cluster.run(5 * MINUTE);
    let all = cluster.get(&budgets, "shop", "all").unwrap();
    assert_eq!(all["status"]["disruptionsAllowed"], 1);
    assert_eq!(all["status"].get("disruptedPods"), None);
}

#[test]
fn unhealthy_pods_are_evicted_as_the_budget_says() {
    let mut cluster = Cluster::new();
    cluster.behave("containers: [{image: 'web:1', exits: {code: 1, after: 1s}}]");
    let budgets = resource("policy", "v1", "poddisruptionbudgets");
    cluster.create(&resource("apps", "v1", "deployments"), workload("Deployment", "web", 2));
    cluster.create(&budgets, budget("guard", json!({"minAvailable": 1, "selector": {}})));
    cluster.run(MINUTE);
    let name = cluster.names(&pods(), "shop").remove(0);
    assert_eq!(cluster.get(&pods(), "shop", &name).unwrap()["status"]["phase"], "Running");
    let evict = || {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "shop"}});
        cluster.client.create_subresource(&pods(), "shop", &name, "eviction", body)
    };
    let refused = evict().unwrap_err();
    assert_eq!(refused.code(), 429);
    assert_eq!(
        refused.to_value()["details"]["causes"][0]["message"],
        "The disruption budget guard needs 1 healthy pods and has 0 currently"
    );
    let mut guard = cluster.get(&budgets, "shop", "guard").unwrap();
    guard["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    cluster.update(&budgets, guard);
    evict().unwrap();
}

#[test]
fn a_budget_over_a_daemon_set_fails_to_sync() {
    let mut cluster = Cluster::new();
    let budgets = resource("policy", "v1", "poddisruptionbudgets");
    cluster.create(&resource("apps", "v1", "daemonsets"), daemon_set("agent"));
    cluster.create(&budgets, budget("guard", json!({"maxUnavailable": 1, "selector": {}})));
    cluster.run(MINUTE);
    let guard = cluster.get(&budgets, "shop", "guard").unwrap();
    let condition = &guard["status"]["conditions"][0];
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("SyncFailed")));
    assert_eq!(condition["message"], "daemonsets.apps does not implement the scale subresource");
    assert_eq!(guard["status"]["disruptionsAllowed"], 0);
}

#[test]
fn an_operator_works_while_its_pod_is_ready_and_holds_its_objects_back_when_it_is_gone() {
    let mut cluster = Cluster::new();
    let definitions = resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    cluster.create(&definitions, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "installations.operator.tigera.io"}, "spec": {"group": "operator.tigera.io", "scope": "Cluster",
            "names": {"plural": "installations", "singular": "installation", "kind": "Installation", "listKind": "InstallationList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}));
    cluster.create(
        &pods(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "registry.example/tigera/operator:v1"}]}}),
    );
    let installations = resource("operator.tigera.io", "v1", "installations");
    cluster.run(MINUTE);
    cluster.create(
        &installations,
        json!({"apiVersion": "operator.tigera.io/v1", "kind": "Installation",
        "metadata": {"name": "default"}, "spec": {}}),
    );
    cluster.run(2 * MINUTE);
    let installed = cluster.get(&installations, "", "default").unwrap();
    assert_eq!(installed["status"]["conditions"][0]["status"], "True", "{installed}");
    assert!(cluster.get(&resource("apps", "v1", "daemonsets"), "calico-system", "calico-node").is_some());

    let fork = cluster.fork();
    cluster.delete(&pods(), "shop", "operator", Propagation::Background);
    cluster.run(MINUTE);
    for mut cluster in [fork, cluster] {
        let has_operator = cluster.get(&pods(), "shop", "operator").is_some();
        cluster.delete(&installations, "", "default", Propagation::Background);
        cluster.run(5 * MINUTE);
        assert_eq!(cluster.get(&installations, "", "default").is_none(), has_operator);
    }
}

#[test]
fn a_quota_counts_what_is_used() {
    let mut cluster = Cluster::new();
    let quotas = resource("", "v1", "resourcequotas");
    cluster.create(
        &quotas,
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"},
        "spec": {"hard": {"pods": "9", "requests.cpu": "4", "count/deployments.apps": "3"}}}),
    );
    let mut set = workload("Deployment", "web", 3);
    set["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "150m"}, "limits": {"cpu": "1"}});
    cluster.create(&resource("apps", "v1", "deployments"), set);
    cluster.run(MINUTE);
    let used = cluster.get(&quotas, "shop", "q").unwrap()["status"]["used"].clone();
    assert_eq!(used, json!({"pods": "3", "requests.cpu": "450m", "count/deployments.apps": "1"}));
}

/// The API server and the controller count in the same way: a load balancer has node ports, amounts have one
/// form.
#[test]
fn a_quota_comes_to_rest() {
    let mut cluster = Cluster::new();
    let quotas = resource("", "v1", "resourcequotas");
    let hard = json!({"services.nodeports": "5", "services.loadbalancers": "2", "requests.cpu": "1000m", "requests.storage": "1024Mi",
        "configmaps": "9", "count/configmaps": "9", "hugepages-2Mi": "1Gi"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"}, "spec": {"hard": hard}});
    cluster.create(&quotas, quota);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "shop"},
        "spec": {"type": "LoadBalancer", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}});
    cluster.create(&resource("", "v1", "services"), service);
    cluster.run(MINUTE);
    let settled = cluster.get(&quotas, "shop", "q").unwrap();
    assert_eq!(settled["status"]["used"]["services.nodeports"], "2");
    assert_eq!(settled["status"]["used"]["services.loadbalancers"], "1");
    cluster.run(5 * MINUTE);
    let later = cluster.get(&quotas, "shop", "q").unwrap();
    assert_eq!(later["metadata"]["resourceVersion"], settled["metadata"]["resourceVersion"]);
    // Another bound is taken into the account.
    let mut quota = cluster.get(&quotas, "shop", "q").unwrap();
    quota["spec"]["hard"] = json!({"services": "4", "services.nodeports": "5"});
    cluster.update(&quotas, quota);
    cluster.run(MINUTE);
    let status = cluster.get(&quotas, "shop", "q").unwrap()["status"].clone();
    assert_eq!((&status["hard"]["services"], &status["used"]["services"]), (&json!("4"), &json!("1")));
    assert!(status["hard"].get("configmaps").is_none() && status["used"].get("configmaps").is_none());
}

#[test]
fn a_circle_of_owners_goes_and_what_another_owner_keeps_stays() {
    let mut cluster = Cluster::new();
    let config_maps = resource("", "v1", "configmaps");
    let create = |cluster: &Cluster, name: &str| {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}});
        cluster.create(&config_maps, object);
    };
    for name in ["a", "b", "c", "keeper", "kept"] {
        create(&cluster, name);
    }
    let own = |cluster: &Cluster, name: &str, owners: &[&str]| {
        let reference = |owner: &&str| {
            let owner = cluster.get(&config_maps, "shop", owner).unwrap();
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true})
        };
        let mut object = cluster.get(&config_maps, "shop", name).unwrap();
        object["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
        cluster.update(&config_maps, object);
    };
    own(&cluster, "a", &["c"]);
    own(&cluster, "b", &["a"]);
    own(&cluster, "c", &["b"]);
    own(&cluster, "kept", &["a", "keeper"]);
    cluster.delete(&config_maps, "shop", "a", Propagation::Foreground);
    cluster.run(MINUTE);
    assert_eq!(cluster.names(&config_maps, "shop"), ["keeper", "kept", "kube-root-ca.crt"]);
}

#[test]
fn sets_of_a_deployment_that_rolls_are_scaled_in_proportion() {
    let mut cluster = Cluster::new();
    cluster.behave("images: [{image: 'web:2', pull: notFound}]");
    let (deployments, sets) = (resource("apps", "v1", "deployments"), resource("apps", "v1", "replicasets"));
    let mut web = workload("Deployment", "web", 10);
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
    cluster.create(&deployments, web);
    cluster.run(MINUTE);
    let mut web = cluster.get(&deployments, "shop", "web").unwrap();
    web["spec"]["template"] = template("web:2");
    cluster.update(&deployments, web);
    cluster.run(MINUTE);
    let sizes = |cluster: &Cluster| {
        let names = cluster.names(&sets, "shop");
        let size = |name: &String| {
            let set = cluster.get(&sets, "shop", name).unwrap();
            let image =
                set["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
            (image, set["spec"]["replicas"].as_i64().unwrap())
        };
        let mut sizes: Vec<_> = names.iter().map(size).collect();
        sizes.sort();
        sizes
    };
    let of = |old: i64, new: i64| vec![("web:1".to_owned(), old), ("web:2".to_owned(), new)];
    assert_eq!(sizes(&cluster), of(8, 5));
    let scale = |cluster: &mut Cluster, replicas: i64| {
        let mut web = cluster.get(&deployments, "shop", "web").unwrap();
        web["spec"]["replicas"] = replicas.into();
        cluster.update(&deployments, web);
        cluster.run(MINUTE);
    };
    scale(&mut cluster, 15);
    assert_eq!(sizes(&cluster).iter().map(|(_, size)| size).sum::<i64>(), 18);
    assert_eq!(sizes(&cluster), of(11, 7));
    scale(&mut cluster, 0);
    assert_eq!(sizes(&cluster), of(0, 0));
}

fn slices_of(cluster: &Cluster, service: &str) -> Vec<Value> {
    let slices = resource("discovery.k8s.io", "v1", "endpointslices");
    let names = cluster.names(&slices, "shop");
    let all = names.iter().filter_map(|name| cluster.get(&slices, "shop", name));
    all.filter(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == service).collect()
}

#[test]
fn endpoints_by_hand_have_slices_and_keep_them_in_step() {
    let mut cluster = Cluster::new();
    let endpoints = resource("", "v1", "endpoints");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"ports": [{"port": 5432}]}});
    cluster.create(&resource("", "v1", "services"), service);
    let by_hand = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "db", "namespace": "shop"},
        "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "notReadyAddresses": [{"ip": "10.1.2.4"}], "ports": [{"port": 5432}]}]});
    cluster.create(&endpoints, by_hand);
    cluster.run(MINUTE);
    let found = slices_of(&cluster, "db");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["endpoints"][0]["addresses"], json!(["10.1.2.3"]));
    assert_eq!(found[0]["endpoints"][1]["conditions"]["ready"], false);
    let mut changed = cluster.get(&endpoints, "shop", "db").unwrap();
    changed["subsets"] = json!([{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 5433}]}]);
    cluster.update(&endpoints, changed);
    cluster.run(MINUTE);
    let found = slices_of(&cluster, "db");
    assert_eq!(found[0]["endpoints"].as_array().unwrap().len(), 1);
    assert_eq!(found[0]["ports"][0]["port"], 5433);
    cluster.delete(&endpoints, "shop", "db", Propagation::Background);
    cluster.run(MINUTE);
    assert_eq!(slices_of(&cluster, "db"), Vec::<Value>::new());
}

#[test]
fn a_named_port_is_what_each_pod_calls_so() {
    let mut cluster = Cluster::new();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}});
    cluster.create(&resource("", "v1", "services"), service);
    for (name, port) in [("old", 8080), ("new", 9090)] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": port}]}]}});
        cluster.create(&pods(), pod);
    }
    cluster.run(MINUTE);
    let mut ports: Vec<i64> =
        slices_of(&cluster, "web").iter().filter_map(|slice| slice["ports"][0]["port"].as_i64()).collect();
    ports.sort_unstable();
    assert_eq!(ports, [8080, 9090]);
    let older = cluster.get(&resource("", "v1", "endpoints"), "shop", "web").unwrap();
    assert_eq!(older["subsets"].as_array().unwrap().len(), 2);
}

#[test]
fn what_a_namespace_must_hold_is_put_back_and_an_event_of_long_ago_is_kept() {
    let mut cluster = Cluster::new();
    let config_maps = resource("", "v1", "configmaps");
    let events = resource("", "v1", "events");
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "told", "namespace": "shop"},
        "involvedObject": {"namespace": "shop"}, "reason": "Test", "lastTimestamp": "2017-09-19T13:49:16Z"});
    cluster.create(&events, event);
    cluster.run(MINUTE);
    let before = cluster.get(&config_maps, "shop", "kube-root-ca.crt").unwrap();
    let mut changed = before.clone();
    changed["data"] = json!({"ca.crt": "another"});
    cluster.update(&config_maps, changed);
    cluster.run(MINUTE);
    let after = cluster.get(&config_maps, "shop", "kube-root-ca.crt").unwrap();
    assert_eq!(after["data"], before["data"]);
    assert!(cluster.get(&events, "shop", "told").is_some());
}

#[test]
fn a_container_to_look_into_a_pod_with_runs() {
    let mut cluster = Cluster::new();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    cluster.create(&pods(), pod);
    cluster.run(MINUTE);
    let mut changed = cluster.get(&pods(), "shop", "web").unwrap();
    changed["spec"]["ephemeralContainers"] = json!([{"name": "look", "image": "busybox"}]);
    cluster.update_at(&pods(), changed, "ephemeralcontainers");
    cluster.run(MINUTE);
    let status = &cluster.get(&pods(), "shop", "web").unwrap()["status"]["ephemeralContainerStatuses"][0];
    assert_eq!(status["name"], "look");
    assert!(status["state"]["running"]["startedAt"].is_string());
}
