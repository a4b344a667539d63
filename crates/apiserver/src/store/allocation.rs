//! Addresses and ports that Services own: given out under the store's lock, so that no two objects
//! can get the same one.

use std::{net::IpAddr, sync::Arc};

use rpds::RedBlackTreeMapSync;
use tiphys_value::{ObjectExt, Value};

use super::{Object, ResourceId, network::ServiceNetwork, snapshot::Snapshot};

/// Ports of type NodePort.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;
/// Ports below this are for those who ask for them.
const STATIC_PORTS: u16 = 86;

/// Who owns which service address and node port.
#[derive(Clone, Default)]
pub(super) struct Allocations {
    pub(super) network: ServiceNetwork,
    /// Whether nothing is given: the real server then looks into another list, whose words are other ones.
    is_trial: bool,
    addresses: RedBlackTreeMapSync<IpAddr, Arc<str>>,
    ports: RedBlackTreeMapSync<(u16, String), Arc<str>>,
    next_address: u32,
    next_port: u16,
}

/// An address or port cannot be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllocationConflict {
    /// Field at fault.
    pub field: String,
    /// Value asked for.
    pub value: Value,
    /// Why not.
    pub why: String,
}

impl Snapshot {
    /// What a Service would get, without giving it: who only tries is refused the same addresses.
    pub(crate) fn try_allocate(
        &self,
        resource: &ResourceId,
        service: &mut Value,
    ) -> Result<(), AllocationConflict> {
        let mut trial = self.clone();
        trial.allocations.is_trial = true;
        trial.allocate(resource, None, Some(service))
    }

    /// Gives a Service its addresses and ports, and takes back what its previous version had.
    pub(super) fn allocate(
        &mut self,
        resource: &ResourceId,
        previous: Option<&Object>,
        next: Option<&mut Value>,
    ) -> Result<(), AllocationConflict> {
        if resource.resource() != "services" || !resource.group().is_empty() {
            return Ok(());
        }
        let mut trial = self.allocations.clone();
        if let Some(previous) = previous {
            trial.release(previous);
        }
        if let Some(next) = next {
            trial.assign(next)?;
        }
        self.allocations = trial;
        Ok(())
    }
}

impl Allocations {
    /// Takes note of what a Service of another cluster has, whatever its network.
    pub(super) fn adopt(&mut self, service: &Value) {
        let owner: Arc<str> = super::snapshot::key(service.namespace(), service.name()).into();
        for address in addresses_of(service) {
            self.addresses.insert_mut(address, Arc::clone(&owner));
        }
        for port in ports_of(service) {
            self.ports.insert_mut(port, Arc::clone(&owner));
        }
    }

    pub(super) fn release(&mut self, service: &Value) {
        for address in addresses_of(service) {
            self.addresses.remove_mut(&address);
        }
        for (port, protocol) in ports_of(service) {
            self.ports.remove_mut(&(port, protocol));
        }
    }

    fn assign(&mut self, service: &mut Value) -> Result<(), AllocationConflict> {
        let owner: Arc<str> = super::snapshot::key(service.namespace(), service.name()).into();
        let kind = service.str_at(&["spec", "type"]).unwrap_or("ClusterIP").to_owned();
        if kind == "ExternalName" {
            return Ok(());
        }
        self.assign_addresses(service, &owner)?;
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
            self.assign_ports(service, &owner)?;
        }
        if needs_health_check_port(service) {
            self.assign_health_check_port(service, &owner)?;
        }
        Ok(())
    }

    /// The port on which nodes say whether they have endpoints of a Service.
    fn assign_health_check_port(
        &mut self,
        service: &mut Value,
        owner: &Arc<str>,
    ) -> Result<(), AllocationConflict> {
        let asked = service.int_at(&["spec", "healthCheckNodePort"]).unwrap_or(0);
        let refuse = |why: &str| AllocationConflict {
            field: "spec.healthCheckNodePort".into(),
            value: asked.into(),
            why: format!("failed to allocate requested HealthCheck NodePort {asked}: {why}"),
        };
        let number = match u16::try_from(asked) {
            Ok(0) => self.free_port("TCP").ok_or_else(|| refuse("range is full"))?,
            Ok(number) if NODE_PORTS.contains(&number) => number,
            // A trial takes no port, so nobody looks for it in the range.
            Ok(_) if self.is_trial => return Ok(()),
            _ => {
                return Err(refuse(
                    "provided port is not in the valid range. The range of valid ports is 30000-32767",
                ));
            }
        };
        if self.ports.contains_key(&(number, "TCP".to_owned())) {
            return Err(refuse("provided port is already allocated"));
        }
        self.ports.insert_mut((number, "TCP".to_owned()), Arc::clone(owner));
        service["spec"]["healthCheckNodePort"] = number.into();
        Ok(())
    }

    fn assign_addresses(&mut self, service: &mut Value, owner: &Arc<str>) -> Result<(), AllocationConflict> {
        match service.str_at(&["spec", "clusterIP"]).unwrap_or_default() {
            "None" => {}
            "" => {
                let address = self.free_address().ok_or_else(|| AllocationConflict {
                    field: "spec.clusterIPs".into(),
                    value: Value::Null,
                    why: "failed to allocate a serviceIP: range is full".into(),
                })?;
                self.addresses.insert_mut(address, Arc::clone(owner));
                let text = address.to_string();
                service["spec"]["clusterIP"] = text.clone().into();
                service["spec"]["clusterIPs"] = Value::from(vec![text]);
            }
            _ => {
                for (at, address) in addresses_of(service).into_iter().enumerate() {
                    if self.addresses.contains_key(&address) {
                        return Err(AllocationConflict {
                            field: "spec.clusterIPs".into(),
                            value: Value::from(vec![address.to_string()]),
                            why: format!("failed to allocate IP {address}: provided IP is already allocated"),
                        });
                    }
                    if at == 0 && address.is_ipv6() {
                        return Err(AllocationConflict {
                            field: "spec.clusterIPs[0]".into(),
                            value: Value::from(vec![address.to_string()]),
                            why: "IPv6 is not configured on this cluster".into(),
                        });
                    }
                    if at == 0 && !self.network.contains(address) {
                        return Err(AllocationConflict {
                            field: "spec.clusterIPs".into(),
                            value: Value::from(vec![address.to_string()]),
                            why: format!("failed to allocate IP {address}: {}", self.out_of_range(address)),
                        });
                    }
                    self.addresses.insert_mut(address, Arc::clone(owner));
                }
            }
        }
        Ok(())
    }

    /// What is said of an address of another network.
    fn out_of_range(&self, address: IpAddr) -> String {
        if !self.is_trial {
            return "the provided network does not match the current range".to_owned();
        }
        let network = self.network;
        format!("the provided IP ({address}) is not in the valid range. The range of valid IPs is {network}")
    }

    fn assign_ports(&mut self, service: &mut Value, owner: &Arc<str>) -> Result<(), AllocationConflict> {
        let wants = service.at(&["spec", "allocateLoadBalancerNodePorts"]) != Some(&Value::Bool(false));
        let Some(ports) = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut) else {
            return Ok(());
        };
        for (index, port) in ports.iter_mut().enumerate() {
            let protocol = port.str_at(&["protocol"]).unwrap_or("TCP").to_owned();
            let asked = port.int_at(&["nodePort"]).unwrap_or(0);
            let refuse = |why: &str| AllocationConflict {
                field: format!("spec.ports[{index}].nodePort"),
                value: asked.into(),
                why: why.into(),
            };
            let number = match u16::try_from(asked) {
                Ok(0) if !wants => continue,
                Ok(0) => self
                    .free_port(&protocol)
                    .ok_or_else(|| refuse("failed to allocate a nodePort: range is full"))?,
                Ok(number) if NODE_PORTS.contains(&number) => number,
                Ok(_) if self.is_trial => continue,
                _ => {
                    return Err(refuse(
                        "provided port is not in the valid range. The range of valid ports is 30000-32767",
                    ));
                }
            };
            if self.ports.contains_key(&(number, protocol.clone())) {
                return Err(refuse("provided port is already allocated"));
            }
            self.ports.insert_mut((number, protocol), Arc::clone(owner));
            port["nodePort"] = number.into();
        }
        Ok(())
    }

    fn free_address(&mut self) -> Option<IpAddr> {
        let (usable, asked_for) = self.network.room();
        let room = usable - asked_for;
        for _ in 0..room {
            let place = asked_for + self.next_address % room;
            self.next_address = self.next_address.wrapping_add(1);
            let address = self.network.address(place);
            if !self.addresses.contains_key(&address) {
                return Some(address);
            }
        }
        // When all others are gone, those that could be asked for are given out too.
        (0..asked_for).map(|place| self.network.address(place)).find(|at| !self.addresses.contains_key(at))
    }

    fn free_port(&mut self, protocol: &str) -> Option<u16> {
        let first = NODE_PORTS.start() + STATIC_PORTS;
        let room = NODE_PORTS.end() - first + 1;
        for _ in 0..room {
            let port = first + self.next_port % room;
            self.next_port = self.next_port.wrapping_add(1);
            if !self.ports.contains_key(&(port, protocol.to_owned())) {
                return Some(port);
            }
        }
        None
    }
}

fn addresses_of(service: &Value) -> Vec<IpAddr> {
    let listed = service.at(&["spec", "clusterIPs"]).and_then(Value::as_array);
    let mut texts: Vec<&str> = listed.into_iter().flatten().filter_map(Value::as_str).collect();
    if texts.is_empty() {
        texts.extend(service.str_at(&["spec", "clusterIP"]));
    }
    texts.into_iter().filter_map(|text| text.parse().ok()).collect()
}

fn ports_of(service: &Value) -> Vec<(u16, String)> {
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array);
    let numbered = ports.into_iter().flatten().filter_map(|port| {
        let number = u16::try_from(port.int_at(&["nodePort"])?).ok().filter(|n| *n != 0)?;
        Some((number, port.str_at(&["protocol"]).unwrap_or("TCP").to_owned()))
    });
    let health =
        service.int_at(&["spec", "healthCheckNodePort"]).and_then(|number| u16::try_from(number).ok());
    let health = health.filter(|number| *number != 0).map(|number| (number, "TCP".to_owned()));
    numbered.chain(health).collect()
}

/// Whether a load balancer has to know which nodes have endpoints: it keeps traffic on the node that it
/// reaches.
pub(crate) fn needs_health_check_port(service: &Value) -> bool {
    service.str_at(&["spec", "type"]) == Some("LoadBalancer")
        && service.str_at(&["spec", "externalTrafficPolicy"]) == Some("Local")
}
