//! Manifests are created in a cluster, time passes, they are applied again and deleted; nothing panics, and
//! the controllers come to rest.
#![no_main]

use std::time::Duration;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tiphys_apiserver::{ApiServer, ApiServerOptions, DeleteOptions, Patch};
use tiphys_value::{GroupVersionKind, GroupVersionResource, ObjectExt};
use tiphys_world::{Driver, Settings, VirtualClock};

const MAX_OBJECTS: usize = 8;

fn resource(server: &ApiServer, object: &Value) -> Option<(GroupVersionResource, bool)> {
    let (group, version) = object.api_version().split_once('/').unwrap_or(("", object.api_version()));
    let kind = GroupVersionKind::new(group, version, object.kind());
    let (id, namespaced) = server.resource_of_kind(&kind)?;
    Some((GroupVersionResource::new(id.group(), version, id.resource()), namespaced))
}

fuzz_target!(|text: &str| {
    let documents = text.split("\n---\n").filter_map(|document| tiphys_yaml::from_yaml(document).ok());
    let clock = VirtualClock::starting_at(Timestamp::from_second(1_700_000_000).expect("in range"));
    let options = ApiServerOptions { clock: Some(clock.clone()), seed: Some(7), ..Default::default() };
    let server = ApiServer::new(options).expect("a server in memory starts");
    let mut driver = Driver::new(&server, Settings::default()).expect("an empty server takes nodes");
    let client = server.client("fuzz");
    driver.pass(&clock, Duration::from_secs(1));
    let mut made = Vec::new();
    for object in documents.take(MAX_OBJECTS) {
        let Some((resource, namespaced)) = resource(&server, &object) else { continue };
        let namespace = match (namespaced, object.namespace()) {
            (false, _) => String::new(),
            (true, "") => "default".to_owned(),
            (true, namespace) => namespace.to_owned(),
        };
        let name = object.name().to_owned();
        let _ = client.create(&resource, &namespace, object.clone());
        driver.pass(&clock, Duration::from_secs(30));
        made.push((resource, namespace, name, object));
    }
    for (resource, namespace, name, object) in &made {
        let patch = Patch::apply(object.clone(), true);
        let _ = client.patch(resource, namespace, name, None, &patch);
    }
    driver.pass(&clock, Duration::from_secs(600));
    for (resource, namespace, name, _) in &made {
        let _ = client.delete(resource, namespace, name, &DeleteOptions::default());
    }
    driver.pass(&clock, Duration::from_secs(600));
});
