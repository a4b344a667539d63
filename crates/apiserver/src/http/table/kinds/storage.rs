//! Volumes, what they are made of, and what CSI drivers say of themselves.

use jiff::Timestamp;
use tiphys_value::{ObjectExt, Value};

use super::{Printer, UNSET, joined, name, row, size, text, text_or};
use crate::{http::table::cells::age, ops::items};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "PersistentVolume" => (
            &[
                "Name",
                "Capacity",
                "Access Modes",
                "Reclaim Policy",
                "Status",
                "Claim",
                "StorageClass",
                "VolumeAttributesClass",
                "Reason",
                "Age",
                "!VolumeMode",
            ],
            volume,
        ),
        "PersistentVolumeClaim" => (
            &[
                "Name",
                "Status",
                "Volume",
                "Capacity",
                "Access Modes",
                "StorageClass",
                "VolumeAttributesClass",
                "Age",
                "!VolumeMode",
            ],
            claim,
        ),
        "StorageClass" => (
            &["Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"],
            storage_class,
        ),
        "VolumeAttributesClass" => (&["Name", "DriverName", "Age"], |o, now| {
            row([name(o), text_or(o, &["driverName"], ""), age(o, now)])
        }),
        "VolumeAttachment" => {
            (&["Name", "Attacher:string:name", "PV", "Node", "Attached:boolean", "Age"], attachment)
        }
        "CSINode" => (&["Name", "Drivers:integer", "Age"], |o, now| {
            row([name(o), size(o.at(&["spec", "drivers"])).into(), age(o, now)])
        }),
        "CSIDriver" => (
            &[
                "Name",
                "AttachRequired:boolean",
                "PodInfoOnMount:boolean",
                "StorageCapacity:boolean",
                "TokenRequests",
                "RequiresRepublish:boolean",
                "Modes",
                "Age",
            ],
            driver,
        ),
        _ => return None,
    })
}

fn attachment(object: &Value, now: Timestamp) -> Vec<Value> {
    row([
        name(object),
        text_or(object, &["spec", "attacher"], ""),
        text_or(object, &["spec", "source", "persistentVolumeName"], ""),
        text_or(object, &["spec", "nodeName"], ""),
        (object.at(&["status", "attached"]) == Some(&Value::Bool(true))).into(),
        age(object, now),
    ])
}

fn driver(object: &Value, now: Timestamp) -> Vec<Value> {
    let flag = |key: &str, otherwise: bool| {
        Value::from(object.at(&["spec", key]).and_then(Value::as_bool).unwrap_or(otherwise))
    };
    let audiences = object.at(&["spec", "tokenRequests"]).and_then(Value::as_array).map(|requests| {
        let all = requests.iter().map(|request| request.str_at(&["audience"]).unwrap_or_default());
        all.collect::<Vec<_>>().join(",")
    });
    let modes = joined(items(object, "/spec/volumeLifecycleModes").filter_map(Value::as_str));
    row([
        name(object),
        flag("attachRequired", true),
        flag("podInfoOnMount", false),
        flag("storageCapacity", false),
        audiences.unwrap_or_else(|| UNSET.to_owned()).into(),
        flag("requiresRepublish", false),
        modes.into(),
        age(object, now),
    ])
}

fn access_modes(object: &Value, pointer: &str) -> String {
    let short = |mode: &str| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    let modes: Vec<&str> = items(object, pointer).filter_map(Value::as_str).map(short).collect();
    modes.join(",")
}

fn volume(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = object.at(&["spec", "claimRef"]).map(|c| {
        format!(
            "{}/{}",
            c.str_at(&["namespace"]).unwrap_or_default(),
            c.str_at(&["name"]).unwrap_or_default()
        )
    });
    let phase = if object.is_terminating() {
        "Terminating".into()
    } else {
        text_or(object, &["status", "phase"], "")
    };
    row([
        name(object),
        text_or(object, &["spec", "capacity", "storage"], ""),
        access_modes(object, "/spec/accessModes").into(),
        text_or(object, &["spec", "persistentVolumeReclaimPolicy"], ""),
        phase,
        claim.unwrap_or_default().into(),
        text_or(object, &["spec", "storageClassName"], ""),
        text_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
        text_or(object, &["status", "reason"], ""),
        age(object, now),
        text_or(object, &["spec", "volumeMode"], "<unset>"),
    ])
}

fn claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let phase = if object.is_terminating() {
        "Terminating".into()
    } else {
        text_or(object, &["status", "phase"], "")
    };
    let bound = object.str_at(&["spec", "volumeName"]).is_some_and(|v| !v.is_empty());
    let capacity = if bound { text_or(object, &["status", "capacity", "storage"], "") } else { "".into() };
    let modes = if bound { access_modes(object, "/status/accessModes") } else { String::new() };
    row([
        name(object),
        phase,
        text_or(object, &["spec", "volumeName"], ""),
        capacity,
        modes.into(),
        text_or(object, &["spec", "storageClassName"], ""),
        text_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
        age(object, now),
        text_or(object, &["spec", "volumeMode"], "<unset>"),
    ])
}

fn storage_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let default = object.annotation("storageclass.kubernetes.io/is-default-class") == Some("true");
    let shown = if default { format!("{} (default)", object.name()) } else { object.name().to_owned() };
    row([
        shown.into(),
        text(object, &["provisioner"]),
        text_or(object, &["reclaimPolicy"], "Delete"),
        text_or(object, &["volumeBindingMode"], "Immediate"),
        (object["allowVolumeExpansion"] == true).into(),
        age(object, now),
    ])
}
