//! Three managers that apply, update and patch the same objects in random order: what a merge comes to, who
//! owns what, and which conflicts arise.

use serde_json::{Value, json};

use super::{
    corpus::{Exchange, Sequence},
    random::Random,
};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/gen/deployments";

/// So many objects, each with a few steps.
pub(super) fn sequence(objects: usize, seed: u64) -> Sequence {
    let mut random = Random::new(seed);
    let mut exchanges = Vec::new();
    for number in 0..objects {
        let name = format!("shared-{number}");
        let steps = 3 + random.number_below(5);
        for step in 0..steps {
            exchanges.push(random_exchange(&name, step == 0, &mut random));
        }
        exchanges.push(Exchange::new("DELETE", format!("{DEPLOYMENTS}/{name}"), &Value::Null));
    }
    Sequence { name: "managers".to_owned(), exchanges }
}

fn random_exchange(name: &str, is_first: bool, random: &mut Random) -> Exchange {
    let manager = *random.pick(&["a", "b", "c"]);
    let url = format!("{DEPLOYMENTS}/{name}");
    let patch = |kind: &str, body: &Value| {
        Exchange::new("PATCH", format!("{url}?fieldManager={manager}"), body)
            .of_type(&format!("application/{kind}"))
    };
    match if is_first { random.number_below(7) } else { random.number_below(9) } {
        0..6 => {
            let force = random.chance(50);
            let body = deployment(name, random);
            let path = format!("{url}?fieldManager={manager}&force={force}");
            Exchange::new("PATCH", path, &body).of_type("application/apply-patch+yaml")
        }
        6 if is_first => {
            Exchange::new("POST", format!("{DEPLOYMENTS}?fieldManager={manager}"), &deployment(name, random))
        }
        6 => patch("merge-patch+json", &merge(random)),
        7 => patch("strategic-merge-patch+json", &strategic(random)),
        _ => patch("json-patch+json", &json_patch(random)),
    }
}

fn merge(random: &mut Random) -> Value {
    let all = [
        json!({"spec": {"replicas": 4}}),
        json!({"spec": {"replicas": 5}}),
        json!({"metadata": {"labels": {"x": "7"}}}),
        json!({"metadata": {"labels": {"x": null}}}),
        json!({"metadata": {"annotations": {"q": "1"}}}),
        json!({"spec": {"template": {"metadata": {"labels": {"l": null}}}}}),
        json!({"spec": {"paused": true}}),
        json!({"spec": {"paused": null}}),
    ];
    random.pick(&all).clone()
}

fn strategic(random: &mut Random) -> Value {
    let name = *random.pick(&["c1", "c2", "c4"]);
    let all = [
        json!({"name": name, "image": "img:9"}),
        json!({"name": name, "image": "i", "env": [{"name": "A", "value": "z"}]}),
        json!({"name": name, "$patch": "delete"}),
    ];
    let container = random.pick(&all).clone();
    let mut patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    if random.chance(30) {
        let order: Vec<_> = ["c3", "c1", "c4", "c2"].iter().map(|name| json!({"name": name})).collect();
        patch["spec"]["template"]["spec"]["$setElementOrder/containers"] = order.into();
    }
    patch
}

fn json_patch(random: &mut Random) -> Value {
    let all = [
        json!({"op": "replace", "path": "/spec/replicas", "value": 3}),
        json!({"op": "add", "path": "/metadata/labels", "value": {"j": "1"}}),
        json!({"op": "remove", "path": "/spec/template/spec/containers/0"}),
        json!({"op": "test", "path": "/spec/replicas", "value": 2}),
        json!({"op": "replace", "path": "/spec/nope", "value": 2}),
    ];
    json!([random.pick(&all)])
}

fn deployment(name: &str, random: &mut Random) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "gen"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}, "spec": {}}},
    });
    let one_or_two = |random: &mut Random| if random.chance(50) { "1" } else { "2" };
    for key in ["x", "y", "z"] {
        if random.chance(30) {
            object["metadata"]["labels"][key] = one_or_two(random).into();
        }
    }
    if random.chance(50) {
        object["spec"]["replicas"] = (1 + random.number_below(3)).into();
    }
    if random.chance(30) {
        object["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": if random.chance(50) { json!(1) } else { json!("25%") }}});
    }
    let template = &mut object["spec"]["template"];
    for key in ["a/1", "b", "c"] {
        if random.chance(25) {
            template["metadata"]["annotations"][key] = one_or_two(random).into();
        }
    }
    let mut containers = Vec::new();
    for name in ["c1", "c2", "c3"] {
        if random.chance(60) {
            containers.push(container(name, random));
        }
    }
    let containers = if containers.is_empty() { vec![container("c1", random)] } else { containers };
    template["spec"]["containers"] = containers.into();
    for (field, value) in [
        ("volumes", json!([{"name": "v1", "emptyDir": {}}])),
        ("tolerations", json!([{"key": "k", "operator": "Exists"}])),
        ("nodeSelector", json!({"n": one_or_two(random)})),
    ] {
        if random.chance(30) {
            template["spec"][field] = value;
        }
    }
    object
}

fn container(name: &str, random: &mut Random) -> Value {
    let mut container = json!({"name": name, "image": if random.chance(50) { "img:1" } else { "img:2" }});
    if random.chance(50) {
        let ports: Vec<_> = [80, 81]
            .iter()
            .filter(|_| random.chance(70))
            .map(|port| json!({"containerPort": port}))
            .collect();
        container["ports"] = ports.into();
    }
    if random.chance(50) {
        let env: Vec<_> = ["A", "B"]
            .iter()
            .map(|name| json!({"name": name, "value": if random.chance(50) { "x" } else { "y" }}))
            .collect();
        container["env"] = env.into();
    }
    for (field, value) in [
        ("args", json!(["a", "b"])),
        ("resources", json!({"limits": {"cpu": if random.chance(50) { "500m" } else { "0.5" }}})),
        ("securityContext", json!({"runAsUser": 1})),
    ] {
        if random.chance(25) {
            container[field] = value;
        }
    }
    container
}
