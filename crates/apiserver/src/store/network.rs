//! The network that Services get their addresses from.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

use ipnet::Ipv4Net;

/// The addresses of Services (`--service-cluster-ip-range` of kube-apiserver): a range of IPv4. Its first
/// address is that of the API server itself, the first sixteenth (256 at most) is for those who ask for
/// addresses by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceNetwork(Ipv4Net);

/// The largest and the smallest range, by the length of the prefix.
const LENGTHS: std::ops::RangeInclusive<u32> = 12..=28;

/// A text that names no network for Services.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceNetworkError {
    /// Not `ADDRESS/LENGTH`.
    #[error("{0:?} is no range of addresses such as 10.96.0.0/16")]
    Format(String),
    /// Two families, or the other one.
    #[error("Services have IPv4 addresses of one range only: IPv6 and dual-stack are not supported")]
    Family,
    /// Too large or too small.
    #[error("the range has a prefix of {0} bits; from {least} to {most} are possible", least = LENGTHS.start(), most = LENGTHS.end())]
    Length(u32),
}

impl Default for ServiceNetwork {
    /// 10.96.0.0/16
    fn default() -> Self {
        Self(Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 16))
    }
}

impl FromStr for ServiceNetwork {
    type Err = ServiceNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let format = || ServiceNetworkError::Format(text.to_owned());
        if text.contains(',') {
            return Err(ServiceNetworkError::Family);
        }
        let (address, bits) = text.split_once('/').ok_or_else(format)?;
        let IpAddr::V4(address) = address.parse().map_err(|_| format())? else {
            return Err(ServiceNetworkError::Family);
        };
        let bits: u32 = bits.parse().map_err(|_| format())?;
        if !LENGTHS.contains(&bits) {
            return Err(ServiceNetworkError::Length(bits));
        }
        let bits = u8::try_from(bits).map_err(|_| format())?;
        Ipv4Net::new(address, bits).map(|network| Self(network.trunc())).map_err(|_| format())
    }
}

impl fmt::Display for ServiceNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ServiceNetwork {
    /// The address of the API server's own Service.
    pub fn first(self) -> Ipv4Addr {
        self.numbered(1)
    }

    /// Whether an address is in the range.
    pub fn contains(self, address: IpAddr) -> bool {
        matches!(address, IpAddr::V4(v4) if self.0.contains(&v4))
    }

    /// How many addresses there are to give out, and how many of them, at the start, are for those who ask.
    pub(super) fn room(self) -> (u32, u32) {
        // Neither the network's own address nor the last one.
        let size = 1_u32 << (u32::BITS - u32::from(self.0.prefix_len()));
        let usable = size - 2;
        (usable, (size / 16).clamp(16.min(usable / 2), 256))
    }

    /// An address by its place among those to give out.
    pub(super) fn address(self, place: u32) -> IpAddr {
        IpAddr::V4(self.numbered(1 + place))
    }

    /// An address by its distance from the network's own.
    fn numbered(self, distance: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.0.network()) + distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ranges() {
        let range: ServiceNetwork = "10.43.7.0/16".parse().unwrap();
        assert_eq!(
            (range.to_string(), range.first()),
            ("10.43.0.0/16".to_owned(), Ipv4Addr::new(10, 43, 0, 1))
        );
        assert!(
            range.contains("10.43.255.1".parse().unwrap()) && !range.contains("10.44.0.1".parse().unwrap())
        );
        assert_eq!(range.room(), (65534, 256));
        for (text, expected) in [
            ("10.43.0.0", ServiceNetworkError::Format("10.43.0.0".into())),
            ("10.43.0.0/x", ServiceNetworkError::Format("10.43.0.0/x".into())),
            ("10.0.0.0/8", ServiceNetworkError::Length(8)),
            ("fd00::/108", ServiceNetworkError::Family),
            ("10.96.0.0/16,fd00::/108", ServiceNetworkError::Family),
        ] {
            assert_eq!(text.parse::<ServiceNetwork>(), Err(expected));
        }
    }
}
