//! Objects that break one rule each, with what the real API server said of them: `cargo xtask conformance
//! invalid --freeze 20` writes them down. `TIPHYS_INVALID_CASES` names another such file, as `--record`
//! writes it.

use http::Method;
use serde_json::{Map, Value, json};
use tiphys_apiserver::{ApiServer, ApiServerOptions};
use tiphys_value::ObjectExt;

use crate::api::answer;

const BASES: &str = include_str!("../invalid/bases.yaml");
const EXPECTED: &str = include_str!("../invalid/expected.jsonl");
/// How many may differ: what is not done yet must not become more.
const LEFT: usize = 0;

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Carries out `{set: POINTER, to: VALUE}` or `{remove: POINTER}`.
fn edit(object: &mut Value, edit: &Value) {
    let pointer = edit["set"].as_str().or(edit["remove"].as_str()).unwrap();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let last = unescaped(last);
    let mut slot = object;
    for step in parent.split('/').skip(1).map(unescaped) {
        slot = match slot {
            Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
            Value::Object(fields) => fields.entry(step).or_insert_with(|| Map::new().into()),
            _ => panic!("{pointer} leads through a scalar"),
        };
    }
    match (slot, edit["set"].is_string()) {
        (Value::Array(items), true) if last == "-" => items.push(edit["to"].clone()),
        (Value::Array(items), true) => items[last.parse::<usize>().unwrap()] = edit["to"].clone(),
        (Value::Array(items), false) => drop(items.remove(last.parse::<usize>().unwrap())),
        (Value::Object(fields), true) => drop(fields.insert(last, edit["to"].clone())),
        (Value::Object(fields), false) => drop(fields.remove(&last).unwrap()),
        _ => panic!("{pointer} leads through a scalar"),
    }
}

/// Code, reason, and of each cause field and type, in any order.
fn verdict(code: u16, body: &Value) -> Value {
    if code < 400 {
        return json!({"code": code});
    }
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let causes = body["details"]["causes"].as_array().into_iter().flatten();
    let mut causes: Vec<String> =
        causes.map(|cause| format!("{} {}", text(cause, "field"), text(cause, "reason"))).collect();
    causes.sort();
    json!({"code": code, "reason": body["reason"], "causes": causes})
}

#[tokio::test]
async fn invalid_objects_are_refused_as_the_real_server_refuses_them() {
    let bases = tiphys_yaml::from_yaml(BASES).unwrap();
    let server = ApiServer::new(ApiServerOptions { seed: Some(1), ..ApiServerOptions::default() }).unwrap();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    answer(&server, Method::POST, accounts, "application/json", &account).await;
    let other = std::env::var("TIPHYS_INVALID_CASES").ok().map(|path| std::fs::read_to_string(path).unwrap());
    let (mut count, mut wrong) = (0, Vec::new());
    for line in other.as_deref().unwrap_or(EXPECTED).lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut object = bases[case["base"].as_str().unwrap()].clone();
        case["edits"].as_array().unwrap().iter().for_each(|change| edit(&mut object, change));
        let (id, namespaced) = server.resource_of_kind(&object.gvk()).unwrap();
        let root = if object.api_version().contains('/') { "apis" } else { "api" };
        let scope = if namespaced { "/namespaces/default" } else { "" };
        let path = format!(
            "/{root}/{}{scope}/{}?dryRun=All&fieldValidation=Strict",
            object.api_version(),
            id.resource()
        );
        let (code, body) = answer(&server, Method::POST, &path, "application/json", &object).await;
        let found = verdict(code, &body);
        count += 1;
        if found != case["answer"] {
            wrong.push(format!(
                "{} {}\n  real {}\n  ours {found}",
                case["base"], case["edits"], case["answer"]
            ));
        }
    }
    println!("{} of {count} differ", wrong.len());
    assert!(count >= 400, "{count} cases");
    assert_eq!(wrong.len(), LEFT, "{}", wrong.join("\n"));
}
