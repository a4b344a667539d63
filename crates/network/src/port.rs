//! Ports and protocols.

use serde_json::Value;

/// A port by number or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortName {
    /// A number.
    Number(u16),
    /// The name of a container's port.
    Name(String),
}

impl PortName {
    /// Reads a number or name.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self::Number(u16::try_from(number.as_u64()?).ok()?)),
            Value::String(name) => Some(name.parse().map_or_else(|_| Self::Name(name.clone()), Self::Number)),
            _ => None,
        }
    }
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Any other.
    Other,
}

impl Protocol {
    /// Reads its name; TCP if there is none.
    pub fn from_name(name: Option<&str>) -> Self {
        match name {
            None | Some("TCP" | "tcp") => Self::Tcp,
            Some("UDP" | "udp") => Self::Udp,
            _ => Self::Other,
        }
    }

    /// Its name, as manifests write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Other => "SCTP",
        }
    }
}

/// Ports that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// `None` for any.
    pub protocol: Option<Protocol>,
    /// The first or only one; `None` for all.
    pub port: Option<PortName>,
    /// The last one of a range.
    pub end: Option<u16>,
}
