//! Access logs of Envoy: the status that a proxy answered, why it gave it itself, and for which host.

use crate::pattern::pattern;

pattern!(
    ACCESS,
    r#"^\[[^\]]+\] "[A-Z]+ [^"]*" (\d{1,3}) ([A-Z,]{2,}) .*?\boutbound(?:_\.\d+_\.[^|\s]*)?\|(\d{1,5})\|([^|]*)\|([a-z0-9._-]+)"#
);

/// An answer that a proxy gave without the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// Envoy's response flags, as `UO` or `UF,URX`.
    pub flags: String,
    /// The host that the request was for, as the mesh names it.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl ProxyAnswer {
    /// Whether the flag is one of those.
    #[must_use]
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.split(',').any(|known| known == flag)
    }
}

/// Reads a line of Envoy's access log in its usual format; `None` for answers of the other side.
#[must_use]
pub fn proxy_answer(line: &str) -> Option<ProxyAnswer> {
    let it = ACCESS.captures(line)?;
    Some(ProxyAnswer {
        status: it[1].parse().ok()?,
        flags: it[2].to_owned(),
        host: it[5].to_owned(),
        port: it[3].parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_proxy_itself() {
        let line = r#"[2026-05-04T10:00:00.001Z] "GET /v1 HTTP/1.1" 503 UO overflow - "-" 0 81 0 - "-" "-" "r" "shop" "-" outbound|8080|v1|cart.shop.svc.cluster.local - 10.0.0.1:80 10.0.0.2:1 - -"#;
        let read = proxy_answer(line).unwrap();
        assert_eq!((read.status, read.port, read.host.as_str()), (503, 8080, "cart.shop.svc.cluster.local"));
        assert!(read.has_flag("UO") && !read.has_flag("UF"));
        assert_eq!(proxy_answer(&line.replace("503 UO", "200 -")), None);
        assert_eq!(proxy_answer("GET /v1 503"), None);
    }
}
