//! The fields of parts of pods that charts take among their values and hand on as they are.

use tiphys_value::{FieldPath, Value};

use tiphys_diag::similar_names;

/// Linux capabilities (capabilities(7)).
const CAPABILITIES: [&str; 42] = [
    "ALL",
    "AUDIT_CONTROL",
    "AUDIT_READ",
    "AUDIT_WRITE",
    "BLOCK_SUSPEND",
    "BPF",
    "CHECKPOINT_RESTORE",
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "IPC_OWNER",
    "KILL",
    "LEASE",
    "LINUX_IMMUTABLE",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "PERFMON",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYSLOG",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_CHROOT",
    "SYS_MODULE",
    "SYS_NICE",
    "SYS_PACCT",
    "SYS_PTRACE",
    "SYS_RAWIO",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "WAKE_ALARM",
];

/// What stands under a name among values.
#[derive(Clone, Copy)]
enum Form {
    /// One, with these fields.
    One(&'static [&'static str]),
    /// A list of some.
    List(&'static [&'static str]),
    /// A list of some, or several by name.
    ListOrNamed(&'static [&'static str], &'static [&'static str]),
}

const PROBE: &[&str] = &[
    "custom",
    "enabled",
    "exec",
    "failureThreshold",
    "grpc",
    "httpGet",
    "initialDelaySeconds",
    "path",
    "periodSeconds",
    "port",
    "scheme",
    "spec",
    "successThreshold",
    "tcpSocket",
    "terminationGracePeriodSeconds",
    "timeoutSeconds",
    "type",
];
const SECURITY: &[&str] = &[
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "enabled",
    "fsGroup",
    "fsGroupChangePolicy",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seLinuxChangePolicy",
    "seLinuxOptions",
    "seccompProfile",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
    "windowsOptions",
];
const SOURCES: &[&str] = &["configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"];
const TERMS: &[&str] =
    &["preferredDuringSchedulingIgnoredDuringExecution", "requiredDuringSchedulingIgnoredDuringExecution"];

/// The fields of the API of pods, and those that charts add to them.
const FORMS: &[(&str, Form)] = &[
    ("affinity", Form::One(&["nodeAffinity", "podAffinity", "podAntiAffinity"])),
    ("capabilities", Form::One(&["add", "drop"])),
    ("containerSecurityContext", Form::One(SECURITY)),
    (
        "env",
        Form::ListOrNamed(
            &["dependsOn", "name", "value", "valueFrom"],
            &[
                "configMapKeyRef",
                "dependsOn",
                "fieldRef",
                "resourceFieldRef",
                "secretKeyRef",
                "value",
                "valueFrom",
            ],
        ),
    ),
    ("envFrom", Form::List(&["configMap", "configMapRef", "prefix", "secret", "secretRef"])),
    ("httpGet", Form::One(&["host", "httpHeaders", "path", "port", "scheme"])),
    ("labelSelector", Form::One(&["matchExpressions", "matchLabels"])),
    ("livenessProbe", Form::One(PROBE)),
    ("nodeAffinity", Form::One(TERMS)),
    ("parentRefs", Form::List(&["group", "kind", "name", "namespace", "port", "sectionName"])),
    ("podAffinity", Form::One(TERMS)),
    ("podAntiAffinity", Form::One(TERMS)),
    ("podSecurityContext", Form::One(SECURITY)),
    ("readinessProbe", Form::One(PROBE)),
    ("securityContext", Form::One(SECURITY)),
    ("startupProbe", Form::One(PROBE)),
    (
        "topologySpreadConstraints",
        Form::List(&[
            "labelSelector",
            "matchLabelKeys",
            "maxSkew",
            "minDomains",
            "nodeAffinityPolicy",
            "nodeTaintsPolicy",
            "topologyKey",
            "whenUnsatisfiable",
        ]),
    ),
    ("valueFrom", Form::One(SOURCES)),
    (
        "volumeMounts",
        Form::List(&[
            "mountPath",
            "mountPropagation",
            "name",
            "readOnly",
            "recursiveReadOnly",
            "subPath",
            "subPathExpr",
        ]),
    ),
];

/// A misspelt field: what it is in, how it is called, and what is meant.
pub(crate) type Slip = (FieldPath, String, &'static str);

/// The fields that are nearly those that Kubernetes has, in what stands under a name.
pub(crate) fn slips(name: &str, value: &Value, path: &FieldPath, wrong: &mut Vec<Slip>) {
    let Some((_, form)) = FORMS.iter().find(|(known, _)| *known == name) else { return };
    let items = |items: &Vec<Value>, known, wrong: &mut Vec<Slip>| {
        items.iter().enumerate().for_each(|(at, item)| misspelt(item, &path.index(at), known, wrong));
    };
    match (form, value) {
        (Form::One(known), Value::Object(_)) => misspelt(value, path, known, wrong),
        (Form::List(known) | Form::ListOrNamed(known, _), Value::Array(all)) => items(all, known, wrong),
        (Form::ListOrNamed(_, known), Value::Object(map)) => {
            map.iter().for_each(|(key, item)| misspelt(item, &path.key(key), known, wrong));
        }
        _ => {}
    }
}

/// Notes the fields of an object that are nearly one that is known.
pub(crate) fn misspelt(
    value: &Value,
    path: &FieldPath,
    known: &'static [&'static str],
    wrong: &mut Vec<Slip>,
) {
    let names = value.as_object().into_iter().flat_map(|map| map.keys());
    for name in names.filter(|name| !known.contains(&name.as_str())) {
        let meant = similar_names::nearest_slip(name, known.iter().copied());
        if let Some(meant) = meant.and_then(|meant| known.iter().find(|it| **it == meant)) {
            // Where both are there, the other one is the chart's.
            if value.get(*meant).is_none() {
                wrong.push((path.clone(), name.clone(), meant));
            }
        }
    }
}

/// What Kubernetes refuses of what stands under a name, whatever the chart: each with its place, its text and
/// why.
pub(crate) fn refused(
    name: &str,
    value: &Value,
    path: &FieldPath,
    found: &mut Vec<(FieldPath, String, String)>,
) {
    match (name, value) {
        ("tolerations", Value::Object(map)) if map.contains_key("operator") || map.contains_key("effect") => {
            let why = "tolerations are a list, and this is one alone; write it behind a dash".to_owned();
            found.push((path.clone(), "tolerations".to_owned(), why));
        }
        ("nodeSelector", Value::Object(map)) => {
            let marks =
                map.iter().filter(|(key, it)| key.contains('/') && (it.is_boolean() || it.is_number()));
            for (key, mark) in marks {
                let why = format!("the value of a label is a text: write \"{mark}\" between quotes");
                found.push((path.key(key), format!("{key}: {mark}"), why));
            }
        }
        ("capabilities", Value::Object(map)) => {
            let lists = map.iter().filter_map(|(key, it)| Some((key, it.as_array()?)));
            for (key, items) in lists {
                capabilities(&path.key(key), items, found);
            }
        }
        _ => {}
    }
}

fn capabilities(path: &FieldPath, items: &[Value], found: &mut Vec<(FieldPath, String, String)>) {
    for (at, text) in items.iter().enumerate().filter_map(|(at, item)| Some((at, item.as_str()?))) {
        let bare = text.strip_prefix("CAP_").unwrap_or(text);
        let is_known = CAPABILITIES.iter().any(|it| it.eq_ignore_ascii_case(bare));
        if let Some(meant) = similar_names::nearest_slip(bare, CAPABILITIES.into_iter()).filter(|_| !is_known)
        {
            let why = format!("there is no such capability, {meant} is meant; the container does not start");
            found.push((path.index(at), text.to_owned(), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use tiphys_value::{FieldPath, json};

    use super::{refused, slips};

    #[test]
    fn slips_are_told_and_what_charts_add_is_not() {
        let of = |name: &str, value| {
            let mut wrong = Vec::new();
            slips(name, &value, &FieldPath::default(), &mut wrong);
            wrong.into_iter().map(|(_, name, meant)| (name, meant)).collect::<Vec<_>>()
        };
        for (name, value, meant) in [
            ("env", json!([{"name": "A", "valeFrom": {}}]), "valueFrom"),
            ("env", json!({"A": {"secretKeyref": {}}}), "secretKeyRef"),
            ("securityContext", json!({"runAsuser": 1}), "runAsUser"),
            ("livenessProbe", json!({"initalDelaySeconds": 1}), "initialDelaySeconds"),
            ("nodeAffinity", json!({"requiredDuringSchedulingIgnoreDuringExecution": {}}), super::TERMS[1]),
        ] {
            assert_eq!(of(name, value.clone()).first().map(|it| it.1), Some(meant), "{value}");
        }
        for (name, value) in [
            ("env", json!([{"name": "A", "value": "b"}])),
            ("env", json!({"A": "b", "C": {"secretKeyRef": {}}})),
            ("securityContext", json!({"enabled": true, "someThing": 1})),
            ("livenessProbe", json!({"enabled": true, "custom": true, "spec": {}})),
        ] {
            assert!(of(name, value.clone()).is_empty(), "{value}");
        }
    }

    #[test]
    fn what_no_chart_can_make_right_is_told() {
        let of = |name: &str, value| {
            let mut found = Vec::new();
            refused(name, &value, &FieldPath::default(), &mut found);
            found.len()
        };
        assert_eq!(of("capabilities", json!({"add": ["PERMON", "CAP_NET_RAW", "net_admin"]})), 1);
        assert_eq!(of("tolerations", json!({"key": "a", "operator": "Exists"})), 1);
        assert_eq!(of("tolerations", json!({})), 0);
        assert_eq!(of("nodeSelector", json!({"example.com/gpu": true, "a": "b"})), 1);
    }
}
