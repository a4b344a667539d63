//! Programs that end, or are taken to be ill.

use tiphys_value::{ObjectExt as _, Value, json};

use super::{Planted, Scene, container, place, pods_of};

pub(super) fn plant(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    for workload in scene.programs() {
        crash(scene, workload, found);
        memory(scene, workload, found);
        probe(scene, workload, found);
        liveness(scene, workload, found);
        init(scene, workload, found);
    }
    overload(scene, found);
}

/// An edit that makes new pods.
fn touch(workload: &mut Value) {
    workload["spec"]["template"]["metadata"]["annotations"] = json!({"acme.example.com/rev": "2"});
}

fn crash(scene: &Scene<'_>, workload: &Value, found: &mut Vec<Planted>) {
    let place = place(workload);
    let exits = |code: i32| json!({"containers": [{"pods": pods_of(workload), "exits": {"code": code, "after": "2s"}}]});
    let lines: [(&'static str, i32, &[&'static str], &str); 5] = [
        (
            "run: crash",
            1,
            &["run/exits"],
            "panic: runtime error: index out of range [3] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:41 +0x1d",
        ),
        (
            "run: crash",
            1,
            &["run/exits"],
            "Traceback (most recent call last):\n  File \"/app/server.py\", line 12, in <module>\n    main()\nKeyError: 'region'",
        ),
        (
            "run: command",
            1,
            &["run/command"],
            "Error: unknown flag: --listen-adress\nUsage:\n  server [flags]",
        ),
        (
            "run: command",
            1,
            &["run/command"],
            "ERROR:    Error loading ASGI app. Could not import module \"main\".",
        ),
        (
            "config: credentials",
            1,
            &["config/credentials"],
            "FATAL: password authentication failed for user \"app\"",
        ),
    ];
    let at = place.bytes().map(usize::from).sum::<usize>();
    for (kind, code, causes, line) in [lines[at % 2], lines[2 + at % 2], lines[4]] {
        let planted = Planted::new(kind, place.clone(), causes)
            .at_workload(workload)
            .rules(exits(code))
            .line(workload, line);
        // Credentials that are refused are those of a Secret, if the program has one.
        let planted = match kind {
            "config: credentials" => planted.with_object("Secret", workload.namespace(), "*"),
            _ => planted,
        };
        found.extend(planted.edit(scene.edited(workload, touch)));
    }
}

fn memory(scene: &Scene<'_>, workload: &Value, found: &mut Vec<Planted>) {
    let rules = json!({"containers": [{"pods": pods_of(workload), "exits": {"code": 137, "after": "40s", "reason": "OOMKilled"}}]});
    let tree = scene.edited(workload, |workload| {
        container(workload)["resources"] =
            json!({"requests": {"memory": "16Mi"}, "limits": {"memory": "32Mi"}});
    });
    let planted =
        Planted::new("run: out of memory", place(workload), &["run/oom"]).at_workload(workload).rules(rules);
    found.extend(planted.edit(tree));
}

fn probe(scene: &Scene<'_>, workload: &Value, found: &mut Vec<Planted>) {
    let edit =
        |probe: Value| scene.edited(workload, |workload| container(workload)["readinessProbe"] = probe);
    let never = |text: &str| json!({"containers": [{"pods": pods_of(workload), "ready": {"never": text}}]});
    let wrong_port = edit(json!({"httpGet": {"path": "/healthz", "port": 9999}}));
    let planted = Planted::new("run: probe of a wrong port", place(workload), &["run/readiness"])
        .at_workload(workload)
        .rules(never(
            "Get \"http://10.244.1.17:9999/healthz\": dial tcp 10.244.1.17:9999: connect: connection refused",
        ))
        .edit(wrong_port);
    found.extend(planted);
    let wrong_path = edit(json!({"httpGet": {"path": "/helthz", "port": 8080}}));
    let planted = Planted::new("run: probe of a wrong path", place(workload), &["run/readiness"])
        .at_workload(workload)
        .rules(never("HTTP probe failed with statuscode: 404"))
        .edit(wrong_path);
    found.extend(planted);
}

/// A liveness probe that asks a port on which nothing listens: the kubelet ends the container each time.
fn liveness(scene: &Scene<'_>, workload: &Value, found: &mut Vec<Planted>) {
    let tree = scene.edited(workload, |workload| {
        container(workload)["livenessProbe"] = json!({"httpGet": {"path": "/livez", "port": 9998}});
    });
    let rules = json!({"containers": [{"pods": pods_of(workload), "exits": {"code": 137, "after": "30s"}}]});
    let refused = "Liveness probe failed: Get \"http://10.244.1.17:9998/livez\": dial tcp 10.244.1.17:9998: connect: connection refused";
    let killed = "Container failed liveness probe, will be restarted";
    let mut planted = Planted::new("run: liveness of a wrong port", place(workload), &["run/liveness"]);
    // Without a declared port, or a probe that passes, nobody can tell it from a program that starts slowly.
    let container = workload.at(&["spec", "template", "spec", "containers"]).and_then(|it| it.get(0));
    if container.is_some_and(|it| it.get("ports").is_none()) {
        planted.expected.also.push("run/liveness-strict");
    }
    let planted = planted
        .at_workload(workload)
        .rules(rules)
        .with_event(workload, "Unhealthy", refused)
        .with_event(workload, "Killing", killed);
    found.extend(planted.edit(tree));
}

/// The API server turns clients away, and operators lose their leases.
fn overload(scene: &Scene<'_>, found: &mut Vec<Planted>) {
    let own = ["cert-manager", "external-secrets"];
    let operators: Vec<&Value> =
        scene.declared("Deployment").filter(|it| own.contains(&it.namespace())).collect();
    let (Some(first), true) = (operators.first(), operators.len() > 1) else { return };
    let line = "E0105 09:10:40.000001       1 leaderelection.go:332] error retrieving resource lock: the server has received too many requests and has asked us to try again later (get leases.coordination.k8s.io)\nF0105 09:10:41.000001       1 main.go:99] leader election lost";
    let rules: Vec<Value> = operators
        .iter()
        .map(|it| json!({"pods": pods_of(it), "exits": {"code": 1, "after": "20s"}}))
        .collect();
    let planted = Planted::new("api: requests are turned away", place(first), &["api/overload"]);
    let planted =
        operators.iter().fold(planted, |planted, it| planted.at_workload(it).line(it, line).restart(it));
    found.push(planted.rules(json!({"containers": rules})));
}

/// An init container that waits for a Service that nobody declares.
fn init(scene: &Scene<'_>, workload: &Value, found: &mut Vec<Planted>) {
    let waits = json!([{"name": "wait", "image": "docker.io/library/busybox:1.36",
        "command": ["sh", "-c", "until nc -z rabbit 5672; do echo waiting for rabbit:5672; sleep 2; done"]}]);
    let tree =
        scene.edited(workload, |workload| workload["spec"]["template"]["spec"]["initContainers"] = waits);
    let rules = json!({"containers": [{"pods": pods_of(workload), "container": "wait", "exits": {"code": 0, "after": "100000s"}}]});
    let planted = Planted::new("run: init waits for nobody", place(workload), &["run/init-wait", "service/missing"])
        .at_workload(workload)
        .with_object("Service", workload.namespace(), "rabbit")
        .rules(rules)
        .line(workload, "waiting for rabbit:5672\nnc: bad address 'rabbit'\nwaiting for rabbit:5672\nnc: bad address 'rabbit'");
    found.extend(planted.edit(tree));
}
