//! What a pod asks of a node, and what a node has.

use std::collections::BTreeMap;

use serde_json::Value;
use tiphys_schema::Quantity;
use tiphys_value::ObjectExt;

/// Amounts by resource: CPU in thousandths, everything else in units.
pub(super) type Amounts = BTreeMap<String, i64>;

/// Reads a map of quantities; what is no quantity counts nothing.
pub(super) fn amounts(value: Option<&Value>) -> Amounts {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.map(|(name, quantity)| (name.clone(), amount(name, quantity))).collect()
}

fn amount(name: &str, quantity: &Value) -> i64 {
    let text = match quantity {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let Ok(quantity) = text.parse::<Quantity>() else { return 0 };
    if name == "cpu" { quantity.milli() } else { quantity.units() }
}

/// What a pod asks for: the sum of its containers and of the init containers that go on running, or what the
/// largest other init container needs beside those started before it; plus overhead.
pub(super) fn requests(pod: &Value) -> Amounts {
    let of = |container: &Value| {
        let mut limits = amounts(container.at(&["resources", "limits"]));
        limits.extend(amounts(container.at(&["resources", "requests"])));
        limits
    };
    let list = |field: &str| pod.at(&["spec", field]).and_then(Value::as_array).into_iter().flatten();
    let mut sum = Amounts::new();
    list("containers").for_each(|container| add(&mut sum, &of(container)));
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        let mut need = of(container);
        if container.str_at(&["restartPolicy"]) == Some("Always") {
            add(&mut sum, &need);
            add(&mut sidecars, &need);
            need.clone_from(&sidecars);
        } else {
            add(&mut need, &sidecars);
        }
        raise(&mut peak, &need);
    }
    raise(&mut sum, &peak);
    add(&mut sum, &amounts(pod.at(&["spec", "overhead"])));
    sum
}

/// Adds amounts to others.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        let have = to.entry(name.clone()).or_default();
        *have = (*have).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn init_containers_count_by_their_peak() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = container("100m");
        sidecar["restartPolicy"] = "Always".into();
        let pod = json!({"spec": {"containers": [container("200m"), container("1")],
            "initContainers": [container("500m"), sidecar, container("2")]}});
        assert_eq!(requests(&pod)["cpu"], 2100);
    }
}
