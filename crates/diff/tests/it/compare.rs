//! What counts as a difference and what does not.

use serde_json::{Value, json};
use tiphys_diff::{
    DiffOptions, Fields, IgnoreRules, compare, encoded_secret, mask_secret, respect_ignored, unified,
};
use tiphys_model::IgnoreDifference;
use tiphys_value::ObjectExt;

fn paths(target: &Value, live: &Value) -> Vec<String> {
    let fields = Fields::built_in(&target.gvk());
    let difference = compare(target, live, &DiffOptions { fields, ..DiffOptions::default() });
    difference.paths.iter().map(ToString::to_string).collect()
}

fn deployment(container: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}}})
}

#[test]
fn defaults_of_the_api_server_are_no_difference() {
    let target =
        deployment(json!({"name": "c", "image": "i", "resources": {}, "ports": [{"containerPort": 80}]}));
    let mut live = deployment(
        json!({"name": "c", "image": "i", "imagePullPolicy": "Always", "resources": {},
        "terminationMessagePath": "/dev/termination-log", "ports": [{"containerPort": 80, "protocol": "TCP"}]}),
    );
    live["metadata"]["uid"] = "u".into();
    live["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    live["spec"]["strategy"] = json!({"type": "RollingUpdate"});
    live["status"] = json!({"replicas": 2});
    assert_eq!(paths(&target, &live), Vec::<String>::new());
}

#[test]
fn v12_quantities_are_equal_by_value_in_built_in_kinds_only() {
    let with =
        |cpu: Value| deployment(json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}));
    assert!(paths(&with(json!("1000m")), &with(json!("1"))).is_empty());
    assert!(paths(&with(json!(1)), &with(json!("1"))).is_empty());
    assert_eq!(
        paths(&with(json!("2")), &with(json!("1"))),
        [".spec.template.spec.containers[0].resources.requests.cpu"]
    );
    let custom = |cpu: &str| json!({"apiVersion": "e.org/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"cpu": cpu}});
    assert_eq!(paths(&custom("1000m"), &custom("1")), [".spec.cpu"]);
}

#[test]
fn v13_what_others_added_is_no_difference_what_they_changed_is() {
    let target = deployment(json!({"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}]}));
    let mut live = deployment(
        json!({"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
    );
    assert!(paths(&target, &live).is_empty());
    live["spec"]["replicas"] = json!(5);
    assert_eq!(paths(&target, &live), [".spec.replicas"]);
}

#[test]
fn v14_string_data_equals_encoded_data() {
    let target =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}});
    let live = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "dg=="}, "type": "Opaque"});
    assert!(paths(&target, &live).is_empty());
    assert_eq!(encoded_secret(&target).expect("a Secret")["data"], json!({"k": "dg=="}));
    assert_eq!(encoded_secret(&live), None);

    // A client-side apply of what had one key more.
    let mut live = live;
    live["data"]["old"] = "dg==".into();
    let mut last = target.clone();
    last["stringData"]["old"] = "v".into();
    live["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": last.to_string()});
    let mut entry = owned("argocd-controller", json!({"f:data": {".": {}, "f:k": {}, "f:old": {}}}));
    entry["operation"] = "Update".into();
    live["metadata"]["managedFields"] = json!([entry]);
    assert_eq!(paths(&target, &live), [".data.old"]);
}

fn owned(manager: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields})
}

#[test]
fn a_field_that_left_the_target_is_a_difference_if_only_we_own_it() {
    let target =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}});
    let fields = json!({"f:data": {"f:a": {}, "f:gone": {}}});
    let mut live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c",
        "managedFields": [owned("tiphys", fields)]}, "data": {"a": "1", "gone": "x", "theirs": "y"}});
    assert_eq!(paths(&target, &live), [".data.gone"]);
    let shared = owned("kubectl", json!({"f:data": {"f:gone": {}}}));
    live["metadata"]["managedFields"].as_array_mut().expect("list").push(shared);
    assert!(paths(&target, &live).is_empty());
}

#[test]
fn a_list_item_that_left_the_target_is_found_by_its_key() {
    let target = deployment(json!({"name": "c", "image": "i"}));
    let mut live = deployment(json!({"name": "c", "image": "i"}));
    let list = live["spec"]["template"]["spec"]["containers"].as_array_mut().expect("list");
    list.push(json!({"name": "old", "image": "i"}));
    let container =
        |name: &str| (format!("k:{{\"name\":\"{name}\"}}"), json!({".": {}, "f:name": {}, "f:image": {}}));
    let containers: serde_json::Map<String, Value> = [container("c"), container("old")].into_iter().collect();
    let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": containers}}}});
    live["metadata"]["managedFields"] = json!([owned("tiphys", fields)]);
    assert_eq!(paths(&target, &live), [".spec.template.spec.containers[1]"]);
}

#[test]
fn the_order_of_lists_is_the_targets() {
    let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}});
    let (a, b) = (json!({"port": 80, "name": "http"}), json!({"port": 443, "name": "https"}));
    let found = paths(&service(json!([a, b])), &service(json!([b, a])));
    assert!(found.contains(&".spec.ports[0].name".to_owned()), "{found:?}");
    let others = json!({"port": 9090, "name": "metrics", "protocol": "TCP", "targetPort": 9090});
    let at_end = json!([a, b, others]);
    assert!(
        paths(&service(json!([a, b])), &service(at_end)).is_empty(),
        "items of others stay where they are"
    );
    let custom = |list: Value| json!({"apiVersion": "e.org/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"l": list}});
    assert!(!paths(&custom(json!(["a", "b"])), &custom(json!(["b", "a"]))).is_empty());
}

#[test]
fn what_is_applied_as_a_whole_differs_in_all_but_defaults() {
    let policy = |peer: Value, port: Value| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [peer], "ports": [port]}]}})
    };
    let (all, shop) = (
        json!({"namespaceSelector": {}}),
        json!({"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "shop"}}}),
    );
    let (port, filled) = (json!({"port": 80}), json!({"port": 80, "protocol": "TCP"}));
    assert!(
        paths(&policy(all.clone(), port.clone()), &policy(all.clone(), filled.clone())).is_empty(),
        "a default"
    );
    assert_eq!(paths(&policy(all, port), &policy(shop, filled)), [".spec.ingress[0].from[0].podSelector"]);

    let service = |selector: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"selector": selector}})
    };
    let (one, two) = (json!({"app": "shop"}), json!({"app": "shop", "track": "canary"}));
    assert_eq!(paths(&service(one), &service(two.clone())), [".spec.selector.track"]);
    assert_eq!(paths(&service(json!({})), &service(two)), [".spec.selector.app", ".spec.selector.track"]);
    let pod = |source: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": source}}]}]}})
    };
    let (given, live) =
        (json!({"resource": "limits.cpu"}), json!({"resource": "limits.cpu", "divisor": "0"}));
    assert!(paths(&pod(given), &pod(live)).is_empty(), "a quantity that is always written");
}

#[test]
fn lists_of_custom_resources_have_the_defaults_of_their_definition() {
    let custom = |list: Value| json!({"apiVersion": "e.org/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"l": list}});
    let definition = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"l": {"type": "array",
        "items": {"type": "object", "properties": {"k": {"type": "integer"}, "added": {"type": "boolean", "default": true},
            "more": {"type": "string"}}}}}}}});
    let schema = tiphys_schema::StructuralSchema::new(&definition);
    let paths = |target: Value, live: Value, fields: Option<Fields<'_>>| {
        let found =
            compare(&custom(target), &custom(live), &DiffOptions { fields, ..DiffOptions::default() });
        found.paths.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (given, defaulted) = (json!([{"k": 1}]), json!([{"k": 1, "added": true}]));
    let changed = json!([{"k": 1, "added": true, "more": "x"}]);
    let known = Some(Fields::Custom(&schema));
    assert!(paths(given.clone(), defaulted.clone(), known).is_empty());
    assert_eq!(paths(given.clone(), changed, known), [".spec.l[0].more"]);
    assert_eq!(
        paths(json!([{"k": 1, "more": ""}]), defaulted.clone(), known),
        [".spec.l[0].more"],
        "empty is not absent"
    );
    assert_eq!(
        paths(given.clone(), defaulted.clone(), None),
        [".spec.l[0].added"],
        "what nobody declares was not given"
    );
    // What is ignored does not come back as a default.
    let ignore = rules(
        &custom(json!([])),
        json!({"group": "e.org", "kind": "X", "jqPathExpressions": [".spec.l[].added"]}),
    );
    for live in [defaulted, json!([{"k": 1, "added": false}])] {
        let options = DiffOptions { fields: known, ignore: Some(&ignore), ..DiffOptions::default() };
        let found = compare(&custom(given.clone()), &custom(live), &options);
        assert!(!found.is_modified(), "{:?}", found.paths);
    }
}

#[test]
fn what_is_given_no_more_and_comes_back_as_the_default_is_no_difference() {
    let deployment = |replicas: Option<i64>| {
        let mut object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {}});
        if let Some(replicas) = replicas {
            object["spec"]["replicas"] = replicas.into();
        }
        object
    };
    let live = |replicas: i64| {
        let mut object = deployment(Some(replicas));
        object["metadata"]["managedFields"] = json!([owned("tiphys", json!({"f:spec": {"f:replicas": {}}}))]);
        object
    };
    assert!(paths(&deployment(None), &live(1)).is_empty());
    assert_eq!(paths(&deployment(None), &live(3)), [".spec.replicas"]);
}

#[test]
fn what_the_api_server_adds_to_an_empty_map_of_a_client_side_apply_is_not_ours() {
    let target = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {}});
    let mut live = target.clone();
    let last = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "annotations": {}}, "spec": {}});
    live["metadata"]["annotations"] = json!({"deprecated.daemonset.template.generation": "1",
        "kubectl.kubernetes.io/last-applied-configuration": last.to_string()});
    let mut entry = owned(
        "argocd-controller",
        json!({"f:metadata": {"f:annotations": {".": {},
        "f:deprecated.daemonset.template.generation": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}}}}),
    );
    entry["operation"] = "Update".into();
    live["metadata"]["managedFields"] = json!([entry]);
    assert!(paths(&target, &live).is_empty());
}

fn rules(object: &Value, rule: Value) -> IgnoreRules {
    let rule: IgnoreDifference = serde_json::from_value(rule).expect("valid");
    IgnoreRules::for_object(object, &[rule]).expect("usable")
}

#[test]
fn ignored_differences_of_all_three_forms() {
    let target = deployment(json!({"name": "c", "image": "i:1"}));
    let mut live = deployment(json!({"name": "c", "image": "i:2"}));
    live["spec"]["replicas"] = json!(9);
    live["metadata"]["managedFields"] = json!([owned("hpa", json!({"f:spec": {"f:replicas": {}}}))]);
    let image = ".spec.template.spec.containers[] | select(.name == \"c\") | .image";
    let with = |rule: Value| {
        let ignore = rules(&target, rule);
        let fields = Fields::built_in(&target.gvk());
        let options = DiffOptions { fields, ignore: Some(&ignore), ..DiffOptions::default() };
        let shown: Vec<_> = compare(&target, &live, &options).paths.iter().map(ToString::to_string).collect();
        let respected = respect_ignored(&target, &live, &options);
        (shown, respected)
    };
    let (shown, respected) =
        with(json!({"group": "*", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}));
    assert_eq!(shown, [".spec.template.spec.containers[0].image"]);
    assert_eq!(respected["spec"]["replicas"], 9);
    let (shown, respected) = with(json!({"group": "apps", "kind": "Depl*", "jqPathExpressions": [image]}));
    assert_eq!(shown, [".spec.replicas"]);
    assert_eq!(respected["spec"]["template"]["spec"]["containers"][0]["image"], "i:2");
    let (shown, respected) = with(json!({"group": "apps", "kind": "*", "managedFieldsManagers": ["hpa"]}));
    assert_eq!(shown, [".spec.template.spec.containers[0].image"]);
    assert_eq!(respected["spec"]["replicas"], 9);
    let (shown, _) = with(json!({"group": "batch", "kind": "*", "jsonPointers": ["/spec"]}));
    assert_eq!(shown.len(), 2);
}

#[test]
fn who_is_trusted_is_so_for_what_came_by_a_subresource() {
    let target = deployment(json!({"name": "c", "image": "i:1"}));
    let mut live = target.clone();
    live["spec"]["replicas"] = json!(9);
    let mut entry = owned("kube-controller-manager", json!({"f:spec": {"f:replicas": {}}}));
    entry["operation"] = "Update".into();
    entry["subresource"] = "scale".into();
    live["metadata"]["managedFields"] = json!([entry]);
    let rule =
        json!({"group": "apps", "kind": "Deployment", "managedFieldsManagers": ["kube-controller-manager"]});
    let ignore = rules(&target, rule);
    let options = DiffOptions {
        fields: Fields::built_in(&target.gvk()),
        ignore: Some(&ignore),
        ..DiffOptions::default()
    };
    assert!(!compare(&target, &live, &options).is_modified());
    assert_eq!(respect_ignored(&target, &live, &options)["spec"]["replicas"], 9);
}

#[test]
fn ignored_fields_are_respected_only_in_parts_that_the_target_has() {
    let mut target = deployment(json!({"name": "c", "image": "i:1"}));
    let mut live = target.clone();
    live["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 5}});
    live["metadata"]["labels"] = json!({"controller": "set"});
    let pointers = ["/spec/strategy/rollingUpdate", "/metadata/labels/controller"];
    let ignore = rules(&target, json!({"group": "apps", "kind": "Deployment", "jsonPointers": pointers}));
    let options = DiffOptions { ignore: Some(&ignore), ..DiffOptions::default() };
    assert_eq!(respect_ignored(&target, &live, &options), target);
    target["spec"]["strategy"] = json!({"type": "RollingUpdate"});
    target["metadata"]["labels"] = json!({"app": "c"});
    let respected = respect_ignored(&target, &live, &options);
    assert_eq!(respected["spec"]["strategy"], live["spec"]["strategy"]);
    assert_eq!(respected["metadata"]["labels"], json!({"app": "c", "controller": "set"}));
}

#[test]
fn an_expression_that_closes_argo_cds_parenthesis_is_a_program() {
    let object = |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"c": text}});
    let rule = |tail: &str| json!({"kind": "ConfigMap", "jqPathExpressions": [format!(".none) | .data.c |= (fromjson | {tail}")]});
    let inside = rules(&object(""), rule("del(.secret) | tojson"));
    let options = DiffOptions { ignore: Some(&inside), ..DiffOptions::default() };
    let (target, live) = (object(r#"{"secret":"x","a":1,"b":2}"#), object(r#"{"b":2,"a":1,"secret":"y"}"#));
    assert!(!compare(&target, &live, &options).is_modified());
    assert_eq!(respect_ignored(&target, &live, &options), live);
    let other = object(r#"{"secret":"y","a":3,"b":2}"#);
    assert_eq!(compare(&target, &other, &options).paths.len(), 1);
    assert_eq!(respect_ignored(&target, &other, &options), target);
    assert!(compare(&object("no json"), &object("none"), &options).is_modified());
    assert!(!accepts(".none) | .data.c |= (nosuch"));
    let chosen =
        json!({"kind": "ConfigMap", "jqPathExpressions": [".data | select(.c | fromjson | .b == 2) | .c"]});
    let chosen = rules(&object(""), chosen);
    let options = DiffOptions { ignore: Some(&chosen), ..DiffOptions::default() };
    assert!(!compare(&target, &other, &options).is_modified());
    assert!(!accepts(".none)"));
}

fn accepts(expression: &str) -> bool {
    let rule = IgnoreDifference {
        kind: "*".into(),
        group: "*".into(),
        jq_path_expressions: vec![expression.into()],
        ..Default::default()
    };
    IgnoreRules::for_object(&json!({"kind": "X"}), &[rule]).is_ok()
}

#[test]
fn expressions_that_do_not_parse_or_are_about_the_process_are_refused() {
    for expression in
        [".a |", "", "nosuch(.a)", "env.HOME", "$ENV.HOME", "halt", "input", "debug", "import \"a\" as b; ."]
    {
        assert!(!accepts(expression), "{expression}");
    }
    let rule = IgnoreDifference { jq_path_expressions: vec!["nosuch(.a)".into()], ..Default::default() };
    let error = IgnoreRules::check(&[rule]).expect_err("is not defined");
    assert_eq!(
        error.to_string(),
        r#"ignoreDifferences: jq path expression "nosuch(.a)": function not defined: nosuch/1"#
    );
}

/// Whether an expression names the one field in which two objects differ.
fn names_the_difference(expression: &str) -> bool {
    let object = |text: &str| json!({"kind": "X", "data": {"a": text, "b": [1, 2, 3]}});
    let ignore = rules(&object(""), json!({"group": "*", "kind": "*", "jqPathExpressions": [expression]}));
    let options = DiffOptions { ignore: Some(&ignore), ..DiffOptions::default() };
    compare(&object("x"), &object("y"), &options).paths.is_empty()
}

#[test]
fn expressions_may_count_and_repeat() {
    for expression in [
        "limit(1; .data[])",
        "reduce [\"data\", \"a\"][] as $key (.; .[$key])",
        "first(recurse | select(type == \"object\" and has(\"a\"))) | .a",
        "def last_of(f): last(f); last_of(.data, .data.a)",
        "until(type != \"object\"; .data? // .a)",
        ".data | select((.b | map(. * 2) | add) == 12) | .a",
        ".data | select([range(3)] | length == 3).a",
    ] {
        assert!(names_the_difference(expression), "{expression}");
    }
}

#[test]
fn expressions_without_end_end_and_name_nothing() {
    let doubled = |start: &str, step: &str| format!(".data | select(({start}{}) == 1)", step.repeat(60));
    let deep = "reduce range(1000000) as $i (1; [.])";
    for expression in [
        "repeat(.data.a)",
        "def f: f; f",
        "def f: [f]; f",
        "def f: try f catch f; f",
        "last(try (range(infinite) | error) catch .)",
        "select(until(false; .))",
        ".data.a | select(\"a\" * 1000000000000 == .)",
        ".data.a | select(1000000000000 * \"a\" == .)",
        ".data | (.a *= 100000000000000000000000) | .a",
        ".data.a | select(\"[\" * 1000000 | fromjson)",
        &format!(".data | select(({deep}) == 1)"),
        &doubled("2", "| . * ."),
        &doubled("\"a\"", "| . + ."),
        &doubled("1", "| [., .]"),
        &format!("{}.data.a", "(., .) | ".repeat(60)),
    ] {
        assert!(!names_the_difference(expression), "{expression}");
    }
}

#[test]
fn an_expression_that_fits_in_part_names_nothing() {
    assert!(names_the_difference(".data.a"));
    assert!(!names_the_difference(".data.a, .data.a.c"));
    assert!(names_the_difference(".data.a, .data.a.c?"));
}

#[test]
fn keys_may_be_named_like_functions() {
    let interpolated = r#".a["\(.b | (.c))limit"]"#;
    let annotation = r#".metadata.annotations["example.org/limit-connections"]"#;
    for expression in [r#".spec.containers[]["env"]"#, annotation, r#".a["say \"input\""]"#, interpolated] {
        assert!(accepts(expression), "{expression}");
    }
}

#[test]
fn secrets_are_masked_so_that_equality_shows_and_nothing_else() {
    let secret = |a: &str, b: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": a, "b": b}});
    let (mut live, mut target) = (secret("c2VjcmV0", "eA=="), secret("b3RoZXI=", "eA=="));
    mask_secret(&mut [&mut live, &mut target], &[]);
    assert_eq!(live["data"]["b"], target["data"]["b"]);
    assert_ne!(live["data"]["a"], target["data"]["a"]);
    let shown = unified(&live, &target, "live", "target");
    assert!(shown.contains("-  a: ++++") && !shown.contains("c2VjcmV0"), "{shown}");
    assert_eq!(unified(&live, &live, "a", "b"), "");
}

#[test]
fn empty_rules_and_zero_values_are_no_difference() {
    let role = |rules: Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": rules});
    assert!(paths(&role(json!([])), &role(Value::Null)).is_empty());
    let mut target = deployment(json!({"name": "c", "image": "i"}));
    target["spec"]["template"]["spec"]["hostNetwork"] = json!(false);
    target["spec"]["template"]["metadata"] = json!({"creationTimestamp": null});
    let live = deployment(json!({"name": "c", "image": "i"}));
    let mut live_with_template = live;
    live_with_template["spec"]["template"]["metadata"] = json!({});
    assert!(paths(&target, &live_with_template).is_empty());
}

#[test]
fn a_null_that_a_custom_resource_keeps_is_no_difference() {
    let sealed = |metadata: Value| {
        json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": {"name": "s"},
            "spec": {"template": {"metadata": metadata}}})
    };
    let target = sealed(json!({"name": "s", "creationTimestamp": null}));
    let mut live = target.clone();
    let fields = json!({"f:spec": {"f:template": {"f:metadata": {"f:name": {}, "f:creationTimestamp": {}}}}});
    live["metadata"]["managedFields"] =
        json!([{"manager": "tiphys", "operation": "Apply", "fieldsV1": fields}]);
    assert!(paths(&target, &live).is_empty());
    assert!(paths(&sealed(json!({"name": "s"})), &live).is_empty());
    assert_eq!(paths(&sealed(json!({})), &live), [".spec.template.metadata.name"]);
}

/// The speakers of MetalLB and many resolvers have one port by TCP, left to the default, and by UDP.
#[test]
fn one_port_of_two_protocols_is_two_ports() {
    let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}});
    let (tcp, udp) = (json!({"port": 53, "name": "t"}), json!({"port": 53, "name": "u", "protocol": "UDP"}));
    let mut live = service(json!([
        {"port": 53, "name": "t", "protocol": "TCP", "targetPort": 53}, {"port": 53, "name": "u", "protocol": "UDP", "targetPort": 53}
    ]));
    live["metadata"]["managedFields"] = json!([{"manager": "tiphys", "operation": "Apply", "fieldsV1": {"f:spec": {"f:ports": {
        "k:{\"port\":53,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
        "k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:name": {}, "f:protocol": {}}}}}}]);
    assert!(paths(&service(json!([tcp, udp])), &live).is_empty());
    assert_eq!(paths(&service(json!([tcp])), &live), [".spec.ports[1]"]);
    assert!(paths(&service(json!([udp])), &live).contains(&".spec.ports[1]".to_owned()));
}

#[test]
fn what_a_creation_filled_in_is_not_abandoned() {
    let target = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let mut live = target.clone();
    live["spec"]["type"] = "ClusterIP".into();
    live["spec"]["old"] = "x".into();
    let fields = json!({"f:spec": {"f:type": {}, "f:old": {}, "f:ports": {}}});
    let by = |operation: &str| json!([{"manager": "tiphys", "operation": operation, "fieldsV1": fields}]);
    live["metadata"]["managedFields"] = by("Update");
    assert_eq!(compare(&target, &live, &DiffOptions::default()).paths, []);
    live["metadata"]["managedFields"] = by("Apply");
    assert_eq!(compare(&target, &live, &DiffOptions::default()).paths.len(), 2);
    live["metadata"]["managedFields"] = by("Update");
    live["metadata"]["managedFields"][0]["manager"] = "kubectl-client-side-apply".into();
    live["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": "{\"spec\":{\"old\":\"x\"}}"});
    let paths = compare(&target, &live, &DiffOptions::default()).paths;
    assert_eq!(paths.iter().map(ToString::to_string).collect::<Vec<_>>(), [".spec.old"]);
}

#[test]
fn finalizers_that_others_add_are_no_difference_of_a_custom_resource() {
    let object = |finalizers: serde_json::Value| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "finalizers": finalizers}});
    let options = DiffOptions::default();
    assert!(!compare(&object(json!(["a"])), &object(json!(["a", "b"])), &options).is_modified());
    assert!(compare(&object(json!(["a", "c"])), &object(json!(["a", "b"])), &options).is_modified());
}

#[test]
fn v12_known_types_of_custom_resources_count() {
    let thing = |cpu: &str, every: &str, first: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
            "spec": {"cpu": cpu, "every": every, "list": [{"limits": {"memory": first}}]}})
    };
    let (target, live) = (thing("1000m", "60s", "1024Mi"), thing("1", "1m0s", "1Gi"));
    assert!(compare(&target, &live, &DiffOptions::default()).is_modified());
    let known = [
        ("spec.cpu", "core/Quantity"),
        ("spec.every", "meta/v1/Duration"),
        ("spec.list.limits", "core/v1/ResourceList"),
    ]
    .map(|(field, type_name)| tiphys_model::settings::KnownTypeField {
        field: field.into(),
        type_name: type_name.into(),
    });
    let options = DiffOptions { known: &known, ..DiffOptions::default() };
    assert!(!compare(&target, &live, &options).is_modified());
    assert!(compare(&thing("1100m", "60s", "1024Mi"), &live, &options).is_modified());
    let rollout = |cpu: &str| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "a"},
            "spec": {"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": cpu}}}]}}}})
    };
    let gvk = tiphys_value::GroupVersionKind::new("argoproj.io", "v1alpha1", "Rollout");
    let known = tiphys_diff::known_types(&gvk, &Default::default());
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema =
        tiphys_schema::StructuralSchema::new(&json!({"type": "object", "properties": {"spec": open}}));
    for fields in [None, Some(Fields::Custom(&schema))] {
        let options = DiffOptions { known: &known, fields, ..DiffOptions::default() };
        assert!(!compare(&rollout("1000m"), &rollout("1"), &options).is_modified());
        assert!(compare(&rollout("1000m"), &rollout("2"), &options).is_modified());
    }
}

/// The API server stores all of them, and each may have an effect: a variable adds to its earlier self, a
/// port has two names. Server-side apply takes one of each key.
#[test]
fn items_of_one_key_all_count_unless_they_are_the_same() {
    use tiphys_diff::{has_rivals, items_once, last_only};
    let fields = Fields::built_in(&deployment(json!({})).gvk()).expect("known");
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let object = |env: &[Value]| deployment(json!({"name": "c", "image": "i", "env": env}));
    let (info, debug) = (variable("LEVEL", "info"), variable("LEVEL", "debug"));
    let (other, more) = (variable("OTHER", "a"), variable("LEVEL", "$(LEVEL) more"));
    let both = object(&[info.clone(), other.clone(), more.clone()]);
    assert!(has_rivals(&both, fields) && !has_rivals(&object(&[info.clone(), other.clone()]), fields));
    assert_eq!(items_once(&both, fields), None);
    assert_eq!(last_only(&both, fields), object(&[other.clone(), more.clone()]));
    assert!(paths(&both, &both).is_empty());
    assert_ne!(paths(&both, &object(&[more.clone(), other.clone()])), [] as [&str; 0]);
    assert_ne!(
        paths(&object(&[info.clone(), debug.clone()]), &object(&[debug, info.clone()])),
        [] as [&str; 0]
    );
    // The same twice is one, unless it means something else in the second place.
    let twice = object(&[info.clone(), other.clone(), info.clone()]);
    assert_eq!(items_once(&twice, fields), Some(object(&[info.clone(), other.clone()])));
    assert!(paths(&twice, &object(&[info.clone(), other.clone()])).is_empty());
    assert!(paths(&object(&[info.clone(), other.clone()]), &twice).is_empty());
    assert_eq!(items_once(&object(&[more.clone(), info, more]), fields), None);
    let mut finalizers = object(&[]);
    finalizers["metadata"]["finalizers"] = json!(["a.example/x", "a.example/x", "b.example/y"]);
    let once = items_once(&finalizers, fields).expect("one stands twice");
    assert_eq!(once["metadata"]["finalizers"], json!(["a.example/x", "b.example/y"]));
    assert!(!has_rivals(&once, fields));
}

/// What was read from an API server is applied without what only that sets.
#[test]
fn an_exported_object_is_applied_without_what_the_api_server_sets() {
    use tiphys_diff::applied_form;
    let exported = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u",
        "resourceVersion": "5", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2, "selfLink": "/x",
        "managedFields": [{"manager": "kubectl"}], "labels": {"a": "b"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n"}}, "data": {"k": "v"}});
    let fields = Fields::built_in(&exported.gvk());
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"note": "n"}}, "data": {"k": "v"}});
    assert_eq!(*applied_form(&exported, fields), applied);
    assert!(matches!(applied_form(&applied, fields), std::borrow::Cow::Borrowed(_)));
}

/// A key that says nothing is one that is not given: server-side apply would tell the item from the live one.
#[test]
fn a_key_that_is_null_or_empty_is_not_sent() {
    use tiphys_diff::applied_form;
    let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}});
    let fields = Fields::built_in(&service(json!([])).gvk());
    let stored = service(json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]));
    for protocol in [json!(""), Value::Null] {
        let target = service(json!([{"port": 80, "protocol": protocol, "name": ""}]));
        assert_eq!(*applied_form(&target, fields), service(json!([{"port": 80, "name": ""}])));
        assert!(paths(&target, &stored).is_empty());
    }
}

/// What an API server gives a Service stays where a target sets it to nothing.
#[test]
fn addresses_and_ports_that_were_given_are_no_difference() {
    let service =
        |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec});
    let live = service(json!({"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
        "externalTrafficPolicy": "Cluster", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30080}]}));
    for nothing in [json!(""), Value::Null] {
        let target = service(
            json!({"type": "NodePort", "clusterIP": nothing, "ipFamilies": null, "ipFamilyPolicy": null,
            "sessionAffinity": nothing, "ports": [{"port": 80, "nodePort": null}]}),
        );
        assert_eq!(paths(&target, &live), [] as [&str; 0]);
    }
    let zero = service(
        json!({"type": "NodePort", "healthCheckNodePort": 0, "ports": [{"port": 80, "nodePort": 0}]}),
    );
    assert!(paths(&zero, &live).is_empty());
    let other = service(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30081}]}));
    assert_eq!(paths(&other, &live), [".spec.ports[0].nodePort"]);
}

/// In a map a null is the zero of its values.
#[test]
fn a_null_in_a_map_is_an_empty_value() {
    let map = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": {"a": data["a"]}}, "data": data});
    let target = map(json!({"a": null, "b": "x"}));
    assert!(paths(&target, &map(json!({"a": "", "b": "x"}))).is_empty());
    assert_eq!(paths(&target, &map(json!({"a": "y", "b": "x"}))), [".data.a", ".metadata.labels.a"]);
    assert_eq!(
        paths(
            &target,
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": {"a": ""}}, "data": {"b": "x"}})
        ),
        [".data.a"]
    );
}

/// Before the first apply of ours what Argo CD applied counts as ours: what the target does not set will go.
#[test]
fn a_dry_run_does_not_know_what_is_to_be_moved() {
    let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [
        {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": {"f:data": {"f:k": {}, "f:drop": {}}}},
        {"manager": "somebody", "operation": "Update", "fieldsV1": {"f:data": {"f:theirs": {}}}}]},
        "data": {"k": "1", "drop": "2", "theirs": "3"}});
    let target =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}});
    let options = DiffOptions { fields: Fields::built_in(&target.gvk()), ..DiffOptions::default() };
    let asked = tiphys_diff::compare_predicted(&target, &live, &live, false, &options);
    assert_eq!(asked.paths.iter().map(ToString::to_string).collect::<Vec<_>>(), [".data.drop"]);
    assert_eq!(paths(&target, &live), [".data.drop"]);
}

#[test]
fn of_a_dry_run_only_what_the_apply_changed_counts_unless_mutations_do() {
    let object = |data: serde_json::Value, extra: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"by-webhook": extra},
            "managedFields": [{"manager": "tiphys", "operation": "Apply", "fieldsV1": {"f:data": {"f:k": {}}}}]},
            "data": data})
    };
    let live = object(json!({"k": "1"}), "x");
    let compared = |predicted: &serde_json::Value, mutations| {
        tiphys_diff::compare_predicted(&live, &live, predicted, mutations, &DiffOptions::default())
            .is_modified()
    };
    assert!(!compared(&object(json!({"k": "1"}), "y"), false));
    assert!(compared(&object(json!({"k": "1"}), "y"), true));
    assert!(compared(&object(json!({"k": "2"}), "x"), false));
}

#[test]
fn what_the_api_server_fills_in_for_a_null_or_an_empty_field_is_no_difference() {
    let target = |scheme: Value, limits: Value| {
        deployment(
            json!({"name": "c", "image": "i", "resources": limits, "livenessProbe": {"httpGet": {"port": 80, "scheme": scheme}}}),
        )
    };
    let own = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {},
        "f:resources": {}, "f:livenessProbe": {"f:httpGet": {"f:port": {}, "f:scheme": {}}}}}}}}});
    let live = |scheme: &str, limits: Value| {
        let mut live = target(json!(scheme), limits);
        live["metadata"]["managedFields"] =
            json!([{"manager": "tiphys", "operation": "Apply", "fieldsV1": own}]);
        live
    };
    let wanted = target(Value::Null, Value::Null);
    assert_eq!(paths(&wanted, &live("HTTP", json!({}))), Vec::<String>::new());
    assert_eq!(paths(&target(json!(""), json!({})), &live("HTTP", json!({}))), Vec::<String>::new());
    // What was set before and is null now goes back to the default.
    let probe = ".spec.template.spec.containers[0].livenessProbe.httpGet.scheme";
    assert_eq!(paths(&wanted, &live("HTTPS", json!({}))), [probe]);
    assert_eq!(paths(&target(json!(""), json!({})), &live("HTTPS", json!({}))), [probe]);
    let limited = live("HTTP", json!({"limits": {"cpu": "1"}}));
    assert_eq!(paths(&wanted, &limited), [".spec.template.spec.containers[0].resources"]);
}

#[test]
fn binary_data_on_several_lines_are_no_difference() {
    let map = |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "binaryData": {"a": text}});
    assert!(paths(&map("AAEC\nAwQF\n"), &map("AAECAwQF")).is_empty());
    assert_eq!(paths(&map("AAEC\nAwQG\n"), &map("AAECAwQF")), [".binaryData.a"]);
    let secret = |text: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": text}});
    assert!(paths(&secret("AAECAwQF\n"), &secret("AAECAwQF")).is_empty());
}

/// The API server stores the zero of a map's values where a target gives none: `{{ .Values.absent | quote }}`
/// in a ConfigMap.
#[test]
fn a_null_in_a_map_is_the_zero_that_is_stored() {
    let map = |data: Value, labels: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": labels}, "data": data});
    let target = map(json!({"a": null, "b": "x"}), json!({"l": null}));
    let live = map(json!({"a": "", "b": "x"}), json!({"l": ""}));
    assert_eq!(paths(&target, &live), [] as [&str; 0]);
    let by_hand = map(json!({"a": "by hand", "b": "x"}), json!({"l": ""}));
    assert_eq!(paths(&target, &by_hand), [".data.a"]);
}
