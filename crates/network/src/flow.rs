//! A connection that something needs.

use std::net::IpAddr;

use tiphys_value::FieldPath;

use crate::{object::ObjectId, port::Protocol};

/// Which way a connection is opened, seen from the pod whose policies judge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Towards the pod.
    Ingress,
    /// From the pod.
    Egress,
}

/// The other side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// A pod: a position in [`Network::pods`].
    Pod(usize),
    /// The API server: a node's address, or one of the cloud's.
    ApiServer,
    /// The cluster's DNS.
    Dns,
    /// Somewhere outside of the cluster.
    World,
    /// The metadata service of the cloud.
    Metadata,
    /// A node that the CNI does not recognise as one.
    Node,
    /// A node of the cluster that the CNI knows as one, or what runs on its network.
    Host,
}

/// Why a connection is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Something tried it, as a live cluster says.
    Observed,
    /// The pod watches or changes objects.
    ApiServer,
    /// It looks names up.
    Dns,
    /// It calls the cloud's API.
    CloudApi,
    /// It asks the node's metadata service for credentials.
    Metadata,
    /// The API server calls it as a webhook of this configuration.
    Webhook(ObjectId),
    /// It names this Service, at this field of its specification.
    Upstream {
        /// `name.namespace` of the Service.
        service: String,
        /// The field.
        field: FieldPath,
        /// The pod that names it.
        from: usize,
    },
    /// The kubelet probes it.
    Probe,
    /// This Service of type LoadBalancer brings in what comes from outside.
    Outside(ObjectId),
    /// Prometheus reads its metrics, as this monitor says.
    Metrics(ObjectId),
    /// The controller of this Ingress, or the Gateway of this route, sends it what comes for a host.
    Route(ObjectId),
    /// The API server calls it as a webhook, or for an API of its own, as its chart is known to register.
    ChartWebhook,
    /// The operator of this custom resource asks the pods that it made of it.
    Operator(ObjectId),
    /// It names this host of the internet, at this field of its specification.
    Internet {
        /// The host.
        host: String,
        /// The field.
        field: FieldPath,
    },
}

/// A connection that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The pod whose policies judge it: a position in [`Network::pods`].
    pub pod: usize,
    /// Which way.
    pub direction: Direction,
    /// The other side.
    pub other: Destination,
    /// The addresses of the other side, where they are known, as on a live cluster; empty otherwise.
    pub addresses: Vec<IpAddr>,
    /// The ports, behind the translation of Services; one of them has to pass.
    pub ports: Vec<(Protocol, u16)>,
    /// Why.
    pub need: Need,
}
