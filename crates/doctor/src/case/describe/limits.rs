//! What limits others: quotas, ranges, disruption budgets.

use tiphys_value::{Value, json};

use super::text::{Field, below, cell, fields, number, rows, selector, value, values};

pub(super) fn quota(described: &[Field<'_>]) -> Value {
    let mut live = json!({"spec": {"hard": {}}, "status": {"hard": {}, "used": {}}});
    for row in table(described) {
        let resource = cell(&row, "Resource");
        live["spec"]["hard"][resource] = json!(cell(&row, "Hard"));
        live["status"]["hard"][resource] = json!(cell(&row, "Hard"));
        live["status"]["used"][resource] = json!(cell(&row, "Used"));
    }
    live
}

pub(super) fn range(described: &[Field<'_>]) -> Value {
    const COLUMNS: &[(&str, &str)] = &[
        ("Min", "min"),
        ("Max", "max"),
        ("Default Request", "defaultRequest"),
        ("Default Limit", "default"),
    ];
    let limits = table(described).into_iter().map(|row| {
        let mut limit = json!({"type": cell(&row, "Type")});
        for (title, key) in COLUMNS {
            let amount = cell(&row, title);
            if !matches!(amount, "" | "-") {
                limit[*key][cell(&row, "Resource")] = json!(amount);
            }
        }
        limit
    });
    json!({"spec": {"limits": limits.collect::<Vec<Value>>()}})
}

/// The table without a title of its own, which stands below the last field before it.
fn table<'a>(described: &[Field<'a>]) -> Vec<Vec<(&'a str, &'a str)>> {
    let is_title = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("Resource ") || line.starts_with("Type ")
    };
    let lines = described.iter().map(|field| field.lines.as_slice()).find(|lines| lines.iter().any(is_title));
    let lines = lines.unwrap_or_default();
    let start = lines.iter().position(is_title).unwrap_or(0);
    rows(&lines[start..])
}

pub(super) fn budget(described: &[Field<'_>]) -> Value {
    let status = fields(below(described, "Status"));
    let told = |title: &str| value(&status, title).and_then(number);
    let mut live = json!({
        "spec": {"selector": selector(&values(described, "Selector").join(","))},
        "status": {
            "disruptionsAllowed": told("Allowed disruptions"),
            "currentHealthy": told("Current"),
            "desiredHealthy": told("Desired"),
            "expectedPods": told("Total"),
        },
    });
    for (title, key) in [("Min available", "minAvailable"), ("Max unavailable", "maxUnavailable")] {
        if let Some(text) = value(described, title) {
            live["spec"][key] = text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number));
        }
    }
    live
}
